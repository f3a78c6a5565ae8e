"""A site as documents: read once, read again for what changed, stopped and taken up where it was left."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from ragnar_core.documents.crawl_settings import (
    DOCUMENT_EXTENSIONS,
    NEVER_READ,
    NEVER_READ_TYPES,
    READABLE_KINDS,
    CrawlProgress,
    CrawlSettings,
)
from ragnar_core.documents.crawl_state import CrawlProblem, CrawlResult, CrawlState, PageRecord
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.documents.encoding import decode
from ragnar_core.documents.fetch import Fetcher, FetchError, Page
from ragnar_core.documents.links import LinkProblem, links_of, parse_html, raw_links
from ragnar_core.documents.sitemap import is_sitemap
from ragnar_core.documents.sniff import extension, kind_of
from ragnar_core.documents.urls import Scope, canonical, origin_of, resolve
from ragnar_core.documents.walk import Visit, Walk, WalkSettings
from ragnar_core.documents.web import file_name, read_page
from ragnar_core.errors import CrawlError, DocumentError


def crawl(
    start: str | Iterable[str],
    settings: CrawlSettings | None = None,
    *,
    progress: Callable[[CrawlProgress], None] | None = None,
    cancel: threading.Event | None = None,
    resume: CrawlState | None = None,
    retry_failed: bool = False,
    previous: CrawlState | None = None,
    on_document: Callable[[MarkdownDocument], None] | None = None,
    fetcher: Fetcher | None = None,
) -> CrawlResult:
    """Read a site.

    Args:
        start: one address or several (pages, or sitemaps).
        settings: what belongs to the site, limits, politeness.
        progress: called in this thread after each address.
        cancel: set from another thread, ends the crawl; the result's state can be resumed.
        resume: the state of an earlier crawl that was stopped: goes on with what was queued.
        retry_failed: with `resume`, also tries the failed addresses again.
        previous: the state of an earlier crawl of the same site: pages are sent only if they changed, and the
            result tells new, changed, unchanged and vanished ones. Unchanged pages give no document.
        on_document: called with each document as it comes; the result then holds none (for large sites).
        fetcher: a client to use; by default one is made from `settings.fetch`.

    Returns:
        Documents, one a page under the address it answered from; problems; what was skipped; the state.

    Raises:
        CrawlError: a start is no http(s) address, or nothing at all could be read.
    """
    how = CrawlSettings() if settings is None else settings
    if not isinstance(how, CrawlSettings):
        raise CrawlError(f"settings must be CrawlSettings, not {type(how).__name__}.")
    starts = [start] if isinstance(start, str) else list(start) if isinstance(start, Iterable) else [start]
    if not starts or not all(isinstance(address, str) for address in starts):
        raise CrawlError(f"A crawl needs an http(s) address to start from, or a list of them, not {start!r}.")
    own = fetcher or Fetcher(how.fetch, connections=how.concurrency, cancel=cancel)
    try:
        return _Crawl(starts, how, own, progress, cancel, previous, on_document).run(resume, retry_failed)
    finally:
        if fetcher is None:
            own.close()


@dataclass
class _Prepared:
    """What a worker made of a page."""

    kind: str
    document: MarkdownDocument | None = None
    links: tuple[str, ...] = ()
    problem: str | None = None
    notes: list[LinkProblem] = field(default_factory=list)


class _Crawl:
    def __init__(
        self,
        starts: list[str],
        settings: CrawlSettings,
        fetcher: Fetcher,
        progress: Callable[[CrawlProgress], None] | None,
        cancel: threading.Event | None,
        previous: CrawlState | None,
        on_document: Callable[[MarkdownDocument], None] | None,
    ) -> None:
        self._starts = starts
        self._settings = settings
        self._fetcher = fetcher
        self._progress = progress
        self._previous = dict(previous.records) if previous is not None else {}
        self._on_document = on_document
        self._scopes: dict[
            str, Scope
        ] = {}  # by start, so that one that redirects takes the scope of where it leads
        self._sites: dict[str, Scope] = {}
        self._landed: dict[str, str] = {}
        for address in starts:
            self._admit(address, address)
        self._documents: list[MarkdownDocument] = []
        self._read = 0
        self._records: dict[str, PageRecord] = {}
        self._changes: dict[str, str] = {}
        self._problems: dict[str, CrawlProblem] = {}
        self._skipped: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        self._duplicates: dict[str, str] = {}
        self._walk = Walk(
            fetcher,
            WalkSettings(
                max_depth=settings.max_depth,
                max_pages=settings.max_pages,
                max_seconds=settings.max_seconds,
                concurrency=settings.concurrency,
                per_host=settings.per_host,
                delay=settings.delay,
                retries=settings.retries,
                respect_robots=settings.respect_robots,
                drop_tracking=settings.drop_tracking,
                max_queries=settings.max_queries,
                wanted=_wanted,
            ),
            self._visit,
            prepare=self._prepare,
            headers=self._conditions,
            cancel=cancel,
        )

    def run(self, resume: CrawlState | None, retry_failed: bool) -> CrawlResult:
        if resume is not None:
            self._take_up(resume, retry_failed)
        else:
            for address in self._starts:
                self._walk.add(address, 0)
            if self._settings.sitemap:
                self._add_sitemaps()
        self._walk.run()
        if resume is None and not self._read and self._walk.stopped is None and not self._records:
            raise CrawlError(self._nothing())
        return self._result()

    def _admit(self, start: str, address: str) -> None:
        whole = self._settings.scope == "site"
        scope = Scope.of(address, same_scheme=self._settings.same_scheme, whole_site=whole)
        site = Scope.of(address, same_scheme=self._settings.same_scheme, whole_site=True)
        if scope is None or site is None:
            raise CrawlError(f"{address} is no http or https address; a crawl starts from one.")
        self._scopes[canonical(start) or start] = scope
        self._sites[canonical(start) or start] = site

    def _take_up(self, state: CrawlState, retry_failed: bool) -> None:
        for start, address in state.landed.items():
            self._admit(start, address)
        self._landed.update(state.landed)
        carried = {url: state.records[url] for url in state.carried if url in state.records}
        self._previous.update(carried)
        self._records.update({url: record for url, record in state.records.items() if url not in carried})
        self._duplicates.update(state.duplicates)
        self._texts.update(
            {record.text_hash: url for url, record in state.records.items() if record.text_hash}
        )
        again = [(p.url, p.depth) for p in state.problems] if retry_failed else []
        self._problems = {} if retry_failed else {problem.url: problem for problem in state.problems}
        queued = [*state.waiting, *again]
        self._walk.seen.update(set(state.seen) - {url for url, _ in queued})
        for url, depth in queued:
            self._walk.add(url, depth)

    def _add_sitemaps(self) -> None:
        for address in dict.fromkeys(origin_of(canonical(start) or start) for start in self._starts):
            named = self._walk.robots_of(address + "/").sitemaps or (f"{address}/sitemap.xml",)
            for sitemap in named:
                try:
                    page = self._fetcher.get(sitemap)
                except FetchError as error:
                    self._problem(error.url, error.reason, error.status, 0)
                    continue
                problems: list[LinkProblem] = []
                for link in links_of(page.body or b"", page.url, page.charset, self._fetcher, problems):
                    if self._belongs(link):
                        self._walk.add(link, 1)
                for problem in problems:
                    self._problem(problem.url, problem.problem, None, 0)

    def _conditions(self, url: str) -> Mapping[str, str]:
        known = self._previous.get(url)
        if known is None:
            return {}
        headers = {}
        if known.etag:
            headers["If-None-Match"] = known.etag
        if known.last_modified:
            headers["If-Modified-Since"] = known.last_modified
        return headers

    def _prepare(self, page: Page) -> _Prepared | None:
        """In a worker thread: the document and the links of a page."""
        if page.body is None:
            return None
        kind = kind_of(page.body, file_name(page), page.content_type)
        prepared = _Prepared(kind)
        if is_sitemap(page.body):
            prepared.kind = "sitemap"
            links = links_of(page.body, page.url, page.charset, self._fetcher, prepared.notes)
            prepared.links = tuple(links)
            return prepared
        if kind not in READABLE_KINDS:
            return prepared
        origin = page.url
        if kind == "html":
            text = decode(page.body, declared=page.charset, markup=True).text
            hrefs, base = raw_links(text, page.url)
            found = (resolve(base or page.url, href) for href in hrefs)
            prepared.links = tuple(dict.fromkeys(link for link in found if link))
            origin = _stated_origin(text, page.url)
        prepared.document, prepared.problem = self._document(page, origin)
        return prepared

    def _document(self, page: Page, origin: str) -> tuple[MarkdownDocument | None, str | None]:
        try:
            document = read_page(page, origin=origin, options=self._settings.read)
        except DocumentError as error:
            return None, str(error).replace(f"{origin} ", "", 1)
        if not document.text.strip():
            reasons = document.report.problems if document.report is not None else []
            return None, " ".join(reasons) or "No text was found."
        return document, None

    def _visit(self, visit: Visit) -> Iterable[str]:
        links = self._links_after(visit)
        self._tell(visit.url)
        return [link for link in links if self._belongs(link)]

    def _links_after(self, visit: Visit) -> Iterable[str]:
        if visit.error is not None:
            error = visit.error
            self._problem(visit.asked, error.reason, error.status, visit.depth, temporary=error.temporary)
            return ()
        page = visit.page
        assert page is not None
        if visit.depth == 0 and page.url != visit.asked:
            self._admit(visit.asked, page.url)
            self._landed[visit.asked] = page.url
        if not self._belongs(page.url, filters=False):
            self._problem(visit.asked, f"redirects out of the site, to {page.url}", None, visit.depth)
            return ()
        known = self._previous.get(visit.asked) or self._previous.get(page.url)
        if page.status == 304 and known is not None:
            self._remember(known, "unchanged")
            return known.links
        prepared = self._walk.prepared.get(page.url)
        if not isinstance(prepared, _Prepared):
            self._skipped[page.content_type or "unknown type"] += 1
            return ()
        for note in prepared.notes:
            self._problem(note.url, note.problem, None, visit.depth)
        if prepared.kind not in READABLE_KINDS and prepared.kind != "sitemap":
            self._skipped[page.content_type or prepared.kind] += 1
        if prepared.problem is not None:
            self._problem(page.url, prepared.problem, page.status, visit.depth)
        if prepared.document is not None:
            self._keep(page, visit.depth, prepared, known)
        return prepared.links

    def _keep(self, page: Page, depth: int, prepared: _Prepared, known: PageRecord | None) -> None:
        document = prepared.document
        assert document is not None
        first = self._texts.setdefault(document.hash, page.url)
        if first != page.url:
            self._duplicates[page.url] = first
            return
        record = PageRecord(
            url=page.url,
            origin=document.origin or page.url,
            depth=depth,
            etag=page.headers.get("etag"),
            last_modified=page.headers.get("last-modified"),
            text_hash=document.hash,
            links=tuple(link for link in prepared.links if self._belongs(link)),
        )
        if known is not None and known.text_hash == document.hash:
            self._remember(record, "unchanged")
            return
        self._remember(record, "changed" if known is not None else "new")
        self._read += 1
        if self._on_document is not None:
            self._on_document(document)
        else:
            self._documents.append(document)

    def _remember(self, record: PageRecord, change: str) -> None:
        self._records[record.url] = record
        self._changes[record.url] = change

    def _belongs(self, link: str, *, filters: bool = True) -> bool:
        suffix = extension(link)
        if suffix in NEVER_READ:
            if filters and any(site.holds(link) for site in self._sites.values()):
                self._skipped[f".{suffix}"] += link not in self._walk.seen
                self._walk.seen.add(link)
            return False
        scopes = self._scopes
        if suffix in DOCUMENT_EXTENSIONS:
            if not self._settings.documents:
                return False
            scopes = self._sites
        if not any(scope.holds(link) for scope in scopes.values()):
            return False
        if not filters:
            return True
        include, exclude = self._settings.include, self._settings.exclude
        if include and not any(fnmatchcase(link, pattern) for pattern in include):
            return False
        return not any(fnmatchcase(link, pattern) for pattern in exclude)

    def _problem(
        self, url: str, reason: str, status: int | None, depth: int, *, temporary: bool = False
    ) -> None:
        self._problems[url] = CrawlProblem(url, reason, status, depth, temporary)

    def _tell(self, url: str) -> None:
        if self._progress is not None:
            queued = self._walk.queued
            self._progress(
                CrawlProgress(
                    len(self._walk.seen), queued, self._read, len(self._problems), self._skipped.total(), url
                )
            )

    def _result(self) -> CrawlResult:
        stopped = self._walk.stopped
        complete = stopped is None and not self._walk.limits_hit
        vanished = []
        for url in self._previous:
            problem = self._problems.get(url)
            gone = problem is not None and problem.status in (404, 410)
            if gone or (
                complete and url not in self._records and problem is None and url not in self._duplicates
            ):
                vanished.append(url)
        left = set(self._previous) - set(self._records) - set(vanished) - set(self._duplicates)
        carried = {url: self._previous[url] for url in sorted(left)}
        state = CrawlState(
            starts=tuple(self._starts),
            records={**carried, **self._records},
            waiting=tuple(self._walk.waiting()),
            seen=tuple(sorted(self._walk.seen)),
            problems=tuple(self._problems.values()),
            duplicates=dict(self._duplicates),
            carried=tuple(carried),
            landed=dict(self._landed),
        )
        return CrawlResult(
            documents=sorted(self._documents, key=lambda document: document.origin or ""),
            problems=sorted(self._problems.values(), key=lambda problem: problem.url),
            changes=dict(sorted(self._changes.items())),
            vanished=sorted(vanished),
            duplicates=dict(self._duplicates),
            skipped=dict(self._skipped),
            limits=dict(self._walk.limits_hit),
            stopped=stopped,
            state=state,
        )

    def _nothing(self) -> str:
        what = ", ".join(self._starts)
        reasons = [f"{problem.url}: {problem.reason}" for problem in self._problems.values()]
        if self._skipped:
            reasons.append(f"it is of a kind that is not read ({', '.join(self._skipped)})")
        return f"Nothing could be read from {what}. {reasons[0] if reasons else 'It holds no text.'}"


def _wanted(content_type: str, url: str) -> bool:
    return not content_type.startswith(NEVER_READ_TYPES)


def _stated_origin(html: str, url: str) -> str:
    """The page's `<link rel=canonical>`, where it is the same page by another query or without index.html."""
    if "canonical" not in html:
        return url
    tree = parse_html(html)
    if tree is None:
        return url
    for element in tree.iter("link"):
        if "canonical" in (element.get("rel") or "").lower().split():
            stated = resolve(url, element.get("href") or "")
            if stated is not None and _same_page(stated, url):
                return stated
    return url


def _same_page(one: str, other: str) -> bool:
    def plain(url: str) -> tuple[str, str]:
        parts = urlsplit(url)
        return parts.netloc, parts.path.removesuffix("index.html").rstrip("/")

    return plain(one) == plain(other)
