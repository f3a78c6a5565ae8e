"""The links of a page, and of the pages behind them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from ragnar_core.documents.encoding import decode
from ragnar_core.documents.fetch import Fetcher, FetchError, FetchSettings
from ragnar_core.documents.limits import check_number
from ragnar_core.documents.sitemap import is_sitemap, parse_sitemap
from ragnar_core.documents.urls import Scope, canonical
from ragnar_core.errors import CrawlError, RagnarError

SELF_LINKS = ("", "/", "./", "./index.html")
# What RFC 3986 does not let stand in a reference. ragnar reports such a link as it is written.
NOT_IN_A_URI = re.compile(r"[^\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]")
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class LinkProblem:
    """An address that could not be followed or failed validation, and why."""

    url: str
    problem: str


@dataclass(frozen=True)
class Links:
    """Links in the order of their code points, and what went wrong while finding them."""

    urls: tuple[str, ...]
    problems: tuple[LinkProblem, ...] = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self.urls)

    def __len__(self) -> int:
        return len(self.urls)

    def __contains__(self, url: object) -> bool:
        return url in self.urls


def find_links(
    x: str | Path,
    *,
    depth: int = 0,
    children_only: bool | str = False,
    validate: bool = False,
    url_filter: Callable[[list[str]], list[str]] | None = None,
    progress: Progress | None = None,
    base_url: str | None = None,
    settings: FetchSettings | None = None,
    respect_robots: bool = True,
    max_pages: int = 1_000,
    concurrency: int = 8,
    cancel: threading.Event | None = None,
    fetcher: Fetcher | None = None,
) -> Links:
    """The links on a page, and with `depth` those on the pages it links to, and so on.

    Args:
        x: a URL, the path of a local HTML file, HTML text, or a sitemap (URL or path; an index of sitemaps
            gives the pages of all of them).
        depth: how many levels of links to follow. Only http(s) pages are followed, or for a local file, files
            in its folder.
        children_only: True keeps links in the folder of `x` (same host and port, whole path segments); a
            string keeps those below it.
        validate: ask each http(s) link whether it is there; those that are not move to the problems.
        url_filter: takes a list of links and returns those to keep (and to follow).
        progress: called with (pages read, pages waiting, depth).
        base_url: what relative links of HTML text are relative to.
        settings: time, size, redirects, and whether private addresses may be read.
        respect_robots: leave out what robots.txt forbids (each is a problem).
        max_pages: pages to read at most.
        concurrency: requests at a time, at most four to a host.
        cancel: set from another thread, ends the search with what was found.

    Returns:
        Links as ragnar spells them: resolved, without fragments, each once. A followed page stands under the
        address it redirected to. Links that are no valid reference ("a b.html") stand as written.

    Raises:
        CrawlError: `x` itself cannot be read.
    """
    if not isinstance(x, str | Path) or not str(x).strip():
        raise CrawlError(
            f"A URL, the path of an HTML file or HTML text is needed to find links in, not {x!r}."
        )
    check_number("depth", depth, 0, whole=True, error=CrawlError)
    check_number("max_pages", max_pages, 0, whole=True, error=CrawlError)
    check_number("concurrency", concurrency, 1, whole=True, error=CrawlError)
    own = fetcher or Fetcher(settings, connections=concurrency, cancel=cancel)
    try:
        start = _start(x, base_url, own)
        keep = _keeper(start, children_only, url_filter)
        problems: list[LinkProblem] = list(start.problems)
        if depth <= 0:
            found = set(keep(start.links))
        elif start.is_local:
            found = _walk_files(start, keep, depth, progress, cancel)
        else:
            found = _walk_pages(
                start, keep, depth, own, problems, respect_robots, max_pages, concurrency, progress, cancel
            )
        if validate:
            found = _validated(found, own, problems, concurrency)
    finally:
        if fetcher is None:
            own.close()
    return Links(tuple(sorted(_once(found))), tuple(problems))


def page_links(html: str | bytes, base_url: str | None = None, *, absolute: bool = True) -> list[str]:
    """The links of one HTML page or sitemap, in the order of their code points before they are resolved.

    Fragments and links of the page to itself are left out; a `<base href>` counts (the first one).
    """
    if isinstance(html, bytes) and is_sitemap(html):
        links, base = list(parse_sitemap(html).pages), base_url
    elif isinstance(html, str) and is_sitemap(html.encode("utf-8", "ignore")):
        links, base = list(parse_sitemap(html.encode("utf-8", "ignore")).pages), base_url
    else:
        links, base = raw_links(html, base_url)
    links = [link.split("#", 1)[0] for link in links]
    links = sorted({link for link in links if link not in SELF_LINKS})
    if absolute:
        resolved = [_resolved(link, base) for link in links]
        links = [link for link in resolved if not (link == base_url and link.endswith("/"))]
    return _once(links)


def raw_links(html: str | bytes, base_url: str | None = None) -> tuple[list[str], str | None]:
    """Each `<a href>` as written (entities decoded once), and what they are relative to."""
    text = html if isinstance(html, str) else decode(html, markup=True).text
    document = parse_html(text)
    anchors, bases = _by_parser(text) if document is None else _by_tree(document)
    base = base_url
    if bases:
        try:
            base = urljoin(base_url or "", bases[0].strip())
        except ValueError:
            base = base_url
    return anchors, base


def _by_tree(document: Any) -> tuple[list[str], list[str]]:
    anchors = [element.get("href") for element in document.iter("a")]
    bases = [element.get("href") for element in document.iter("base")]
    return [href for href in anchors if href is not None], [href for href in bases if href is not None]


def _by_parser(text: str) -> tuple[list[str], list[str]]:
    """Without a tree, for pages that are nested too deeply to have one."""
    hrefs: dict[str, list[str]] = {"a": [], "base": []}

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag in hrefs:
                hrefs[tag].extend(value for name, value in attrs if name == "href" and value is not None)

    parser = Anchors()
    parser.feed(text)
    parser.close()
    return hrefs["a"], hrefs["base"]


def parse_html(text: str) -> Any:
    """The page as an lxml tree; None when there is nothing in it, or it is nested deeper than 2,048 elements."""
    from lxml import etree
    from lxml import html as lxml_html

    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text).replace("\0", "\ufffd")
    if not text.strip():
        return None
    parser = lxml_html.HTMLParser(huge_tree=True, encoding="utf-8")
    try:
        document = lxml_html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    too_deep = any("Excessive depth" in entry.message for entry in parser.error_log)
    return None if too_deep else document


@dataclass(frozen=True)
class _Start:
    """The first page: where it is, what it links to, and whether it is a file."""

    url: str | None
    links: list[str]
    is_local: bool = False
    problems: list[LinkProblem] = field(default_factory=list)


def _start(x: str | Path, base_url: str | None, fetcher: Fetcher) -> _Start:
    text = str(x)
    if isinstance(x, str) and text.lstrip().startswith("<"):
        return _Start(base_url, page_links(text, base_url))
    if text.startswith(("http://", "https://")):
        page = fetcher.get(text)
        problems: list[LinkProblem] = []
        return _Start(
            page.url, links_of(page.body or b"", page.url, page.charset, fetcher, problems), problems=problems
        )
    path = Path(text).expanduser()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CrawlError(
            f"{text} cannot be read: {error.strerror}. Give a URL, a path or HTML text."
        ) from None
    problems = []
    return _Start(str(path), links_of(data, str(path), None, fetcher, problems), True, problems)


def links_of(
    body: bytes, url: str, charset: str | None, fetcher: Fetcher, problems: list[LinkProblem]
) -> list[str]:
    """The links of a page that was read; those of a sitemap index are the pages of all its sitemaps."""
    if not is_sitemap(body):
        return page_links(decode(body, declared=charset, markup=True).text, url)
    links: list[str] = []
    waiting, seen = [(url, body, 0)], {url}
    while waiting:
        address, data, level = waiting.pop(0)
        try:
            sitemap = parse_sitemap(data)
        except CrawlError as error:
            problems.append(LinkProblem(address, str(error)))
            continue
        links += [_resolved(page.split("#", 1)[0], address) for page in sitemap.pages]
        for child in sitemap.sitemaps:
            target = _resolved(child, address)
            if target in seen or level >= 3:
                continue
            seen.add(target)
            try:
                waiting.append((target, fetcher.get(target).body or b"", level + 1))
            except FetchError as error:
                problems.append(LinkProblem(target, error.reason))
    return _once(sorted(links))


def _keeper(
    start: _Start, children_only: bool | str, url_filter: Callable[[list[str]], list[str]] | None
) -> Callable[[Sequence[str]], list[str]]:
    def keep(links: Sequence[str]) -> list[str]:
        kept = [link for link in links if belongs(link)]
        return list(url_filter(kept)) if url_filter is not None else kept

    def belongs(link: str) -> bool:
        if children_only is False:
            return True
        if scope is not None:
            return scope.holds(link)
        return folder is not None and link.startswith(folder)

    scope, folder = None, None
    if isinstance(children_only, str):
        scope = Scope.of(children_only, prefix=True, same_scheme=True)
        folder = children_only
    elif children_only and start.url is not None:
        scope = None if start.is_local else Scope.of(start.url)
        folder = start.url[: start.url.rindex("/") + 1] if "/" in start.url else ""
    return keep


def _walk_files(
    start: _Start,
    keep: Callable[[Sequence[str]], list[str]],
    depth: int,
    progress: Progress | None,
    cancel: threading.Event | None,
) -> set[str]:
    root = Path(start.url or "").resolve().parent
    found: set[str] = set(keep(start.links))
    seen = {start.url}
    level = sorted(found)
    for number in range(1, depth + 1):
        following: list[str] = []
        for index, link in enumerate(level):
            path = Path(link.split("?", 1)[0])
            if link in seen or (cancel is not None and cancel.is_set()) or root not in path.resolve().parents:
                continue
            seen.add(link)
            path = path / "index.html" if path.is_dir() else path
            if path.is_file():
                following += keep(page_links(path.read_bytes(), link))
            if progress is not None:
                progress(len(seen), len(level) - index - 1, number)
        found.update(following)
        level = sorted(set(following))
    return found


def _walk_pages(
    start: _Start,
    keep: Callable[[Sequence[str]], list[str]],
    depth: int,
    fetcher: Fetcher,
    problems: list[LinkProblem],
    respect_robots: bool,
    max_pages: int,
    concurrency: int,
    progress: Progress | None,
    cancel: threading.Event | None,
) -> set[str]:
    from ragnar_core.documents.walk import Visit, Walk, WalkSettings

    first = keep(start.links)
    found: set[str] = set(first)
    failed: set[str] = set()
    moved: dict[str, str] = {}

    def visit(task: Visit) -> list[str]:
        if task.error is not None:
            problems.append(LinkProblem(task.url, task.error.reason))
            failed.add(task.asked)
            return []
        assert task.page is not None
        if task.page.url != task.asked:
            moved[task.asked] = task.page.url
        links = keep(page_links_of(task))
        found.update(links)
        if progress is not None:
            progress(task.done, task.waiting, task.depth)
        return links

    def page_links_of(task: Visit) -> list[str]:
        page = task.page
        assert page is not None
        if page.body is None:
            return []
        inner: list[LinkProblem] = []
        links = links_of(page.body, page.url, page.charset, fetcher, inner)
        problems.extend(inner)
        return links

    walk = Walk(
        fetcher,
        WalkSettings(
            max_depth=depth,
            max_pages=max_pages,
            concurrency=concurrency,
            respect_robots=respect_robots,
            wanted=lambda content_type, url: (
                "html" in content_type or "xml" in content_type or not content_type
            ),
        ),
        visit,
        cancel=cancel,
    )
    if start.url is not None:
        walk.seen.add(canonical(start.url) or start.url)
    for link in first:
        walk.add(link, 1)
    walk.run()
    for url, reason in walk.limits_hit.items():
        problems.append(LinkProblem(url, reason))
    moved.update(walk.moved)
    there = {link: canonical(link, drop_tracking=True) or link for link in found}
    kept = {link for link, address in there.items() if address not in failed and address not in moved}
    return kept | set(keep(sorted({moved[address] for address in there.values() if address in moved})))


def _validated(found: set[str], fetcher: Fetcher, problems: list[LinkProblem], concurrency: int) -> set[str]:
    from concurrent.futures import ThreadPoolExecutor

    def check(link: str) -> str | None:
        try:
            fetcher.get(link, method="HEAD")
        except FetchError as error:
            if error.status not in (403, 405, 501):  # some servers know only GET
                return f"{error.reason}."
            try:
                fetcher.get(link, wanted=lambda content_type, url: False)
            except FetchError as second:
                return f"{second.reason}."
        except RagnarError as error:
            return str(error)
        return None

    pages = sorted(link for link in found if urlsplit(link).scheme in ("http", "https"))
    with ThreadPoolExecutor(max(1, min(concurrency, 4))) as pool:
        for link, problem in zip(pages, pool.map(check, pages), strict=True):
            if problem is not None:
                problems.append(LinkProblem(link, problem))
                found.discard(link)
    return found


def _resolved(link: str, base: str | None) -> str:
    if NOT_IN_A_URI.search(link):
        return link
    try:
        return urljoin(base or "", link)
    except ValueError:
        return link


def _once(links: Sequence[str] | set[str]) -> list[str]:
    """Each address once, under its first spelling: `https://a.com` and `https://a.com/` are one."""
    kept: dict[str, str] = {}
    for link in sorted(links) if isinstance(links, set) else links:
        kept.setdefault(canonical(link) or link, link)
    return list(kept.values())
