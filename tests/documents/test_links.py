from __future__ import annotations

import gzip
import json
import os
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragnar_core.documents import FetchSettings, find_links
from ragnar_core.documents.links import page_links
from ragnar_core.errors import CrawlError

HERE = FetchSettings(allow_private=True, timeout=30.0)

# Golden rows whose links differ by more than a kept trailing slash, and what is in ours only. The reasons
# are `<base href>`, the trailing slash that makes "../guide/" a link into the scope "/guide/", and the blanks
# around an address in a sitemap.
OURS_ONLY = {
    "hfl_base": ["https://based.example.com/abs.html", "https://based.example.com/dir/rel.html"],
    "hfl_sitemap": ["{BASE}/deep/one.html"],
    "local_sitemap_FALSE": ["{BASE}/deep/one.html"],
    "http_sitemap_all_d0": ["{BASE}/deep/one.html"],
    "http_sitemap_children_d0": ["{BASE}/deep/one.html"],
    "http_sitemap_children_d1": ["{BASE}/deep/two.html"],
    "http_guide_children_d2": ["{BASE}/guide"],
    "http_guide_children_d3": ["{BASE}/guide"],
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture(scope="module")
def golden(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Any], Path, str]]:
    root = tmp_path_factory.mktemp("parent") / "site"
    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    for line in (shared / "golden/site.jsonl").open(encoding="utf-8", newline="\n"):
        file = json.loads(line)
        path = root / file["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = file["content"].replace("{BASE}", base) if "sitemap" in file["path"] else file["content"]
        path.write_text(content, encoding="utf-8")
    rows = [
        json.loads(line) for line in (shared / "golden/find_links.jsonl").open(encoding="utf-8", newline="\n")
    ]
    yield rows, root, base
    server.shutdown()
    server.server_close()


def test_links_equal_ragnars(golden: tuple[list[Any], Path, str]) -> None:
    rows, root, base = golden

    def real(text: str) -> str:
        return text.replace("{ROOT}", str(root)).replace("{BASE}", base)

    def named(link: str) -> str:
        link = link.replace(str(root), "{ROOT}").replace(str(root.parent) + os.sep, "{PARENT}/")
        return link.replace(base, "{BASE}").rstrip("/")

    compared = 0
    for row in rows:
        x, arguments = real(row["x"]), dict(row["args"])
        if "error" in row:
            continue
        if row["fn"] == "html_find_links":
            is_html = x.lstrip().startswith("<")
            links = page_links(x if is_html else Path(x).read_bytes(), None if is_html else x, **arguments)
            problems: set[str] = set()
        else:
            pattern = arguments.pop("url_filter_regex", None)
            if pattern:
                arguments["url_filter"] = lambda urls, p=pattern: [url for url in urls if re.search(p, url)]
            if isinstance(arguments.get("children_only"), str):
                arguments["children_only"] = real(arguments["children_only"])
            found = find_links(x, settings=HERE, **arguments)
            links, problems = list(found), {named(problem.url) for problem in found.problems}
        assert len(set(links)) == len(links), row["id"]
        ours, theirs = (
            {named(link) for link in links},
            {link.strip("\n ").rstrip("/") for link in row["links"]},
        )
        if not row["id"].startswith("hfl_sitemap") and "sitemap" not in row["id"]:
            theirs = {link.rstrip("/") for link in row["links"]}
        dropped = {"hfl_base": {"/abs.html", "{ROOT}/rel.html"}}.get(row["id"], set())
        extra = set(OURS_ONLY.get(row["id"], ()))
        assert ours - theirs == extra - theirs, row["id"]
        assert theirs - ours == dropped, row["id"]
        wanted = {named(p.get("link") or p.get("url")) for p in row.get("problems") or []}
        assert problems == wanted, row["id"]
        compared += 1
    assert compared >= 48


def test_where_ragnar_stops_with_an_error(golden: tuple[list[Any], Path, str]) -> None:
    _, root, base = golden
    assert list(find_links(root / "nolinks.html")) == []
    assert list(find_links(root / "sitemap.xml", children_only=True)) == []
    with pytest.raises(CrawlError, match="HTTP 404"):
        find_links(base + "/missing.html", settings=HERE)
    with pytest.raises(CrawlError, match="No such file"):
        find_links(root / "none.html")


def test_only_the_first_base_counts_and_it_may_be_relative() -> None:
    page = (
        "<base href='../v2/'><base href='/no/'><a href='x.html'>x</a><a href='?p=2'>p</a><a href='#t'>t</a>"
    )
    assert page_links(page, "http://h/a/b.html") == ["http://h/v2/?p=2", "http://h/v2/x.html"]
    absolute = "<base href='/docs/'><a href='x.html'>x</a><a href='//cdn.h/y'>y</a>"
    assert page_links(absolute, "http://h/a/b.html") == ["http://cdn.h/y", "http://h/docs/x.html"]


def test_a_trailing_slash_is_kept_and_no_link_comes_twice() -> None:
    page = "<a href='guide/'>1</a><a href='guide/#x'>2</a><a href='http://e.com'>3</a><a href='http://E.com/'>4</a>"
    assert page_links(page, "http://h/") == ["http://h/guide/", "http://E.com/"]


def test_entities_are_decoded_once() -> None:
    assert page_links("<a href='?p=2&amp;amp;p=1'>x</a>", "http://h/") == ["http://h/?p=2&amp;p=1"]


def test_links_deep_in_a_broken_page_are_found() -> None:
    page = "<div>" * 5_000 + "<a href='deep.html'>x</a>"
    assert page_links(page, "http://h/") == ["http://h/deep.html"]


def test_sitemap_indexes_are_opened_packed_or_not_and_end(site: Any) -> None:
    index = (
        "<sitemapindex>"
        + "".join(
            f"<sitemap><loc> {site.url}{path} </loc></sitemap>"
            for path in (
                "/index.xml",
                "/map.xml?page=1",
                "/map.xml?page=2",
                "/news.xml.gz",
                "/packed.xml",
                "/none.xml",
            )
        )
        + "</sitemapindex>"
    )

    def urlset(*pages: str) -> bytes:
        image = "<image:image xmlns:image='i'><image:loc>http://h/pic.png</image:loc></image:image>"
        urls = "".join(f"<url><loc>\n{site.url}{page}\n</loc>{image}</url>" for page in pages)
        return f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>".encode()

    site.file("/index.xml", index.encode(), "application/xml")
    site.file("/map.xml?page=1", urlset("/a", "/b?x=1&amp;y=2"), "application/xml")
    site.file("/map.xml?page=2", urlset("/a", "/c/"), "application/xml")
    site.file("/news.xml.gz", gzip.compress(urlset("/news")), "application/x-gzip")
    site.file("/packed.xml", gzip.compress(urlset("/packed")), "application/xml", Content_Encoding="gzip")
    found = find_links(site.url + "/index.xml", settings=HERE)
    assert list(found) == [site.url + path for path in ("/a", "/b?x=1&y=2", "/c/", "/news", "/packed")]
    assert [(p.url, p.problem) for p in found.problems] == [(site.url + "/none.xml", "HTTP 404 Not Found")]
    assert site.paths["/index.xml"] == 1


def test_validation_moves_dead_links_to_the_problems(site: Any) -> None:
    site.page(
        "/", "<a href='/a'>a</a><a href='/dead'>d</a><a href='/get-only'>g</a><a href='mailto:x@y'>m</a>"
    )
    site.page("/a", "a")
    site.routes["/get-only"] = lambda h: h.answer(b"x", status=405 if h.command == "HEAD" else 200)
    found = find_links(site.url, validate=True, settings=HERE)
    assert list(found) == [site.url + "/a", site.url + "/get-only", "mailto:x@y"]
    assert [(p.url, p.problem) for p in found.problems] == [(site.url + "/dead", "HTTP 404 Not Found.")]


def test_robots_txt_is_respected_unless_told_otherwise(site: Any) -> None:
    site.file("/robots.txt", b"User-agent: *\nDisallow: /no/", "text/plain")
    site.page("/", "<a href='/no/x'>x</a><a href='/yes'>y</a>")
    site.page("/yes", "")
    site.page("/no/x", "<a href='/no/y'>y</a>")
    polite = find_links(site.url + "/", depth=1, settings=HERE)
    assert list(polite) == [site.url + "/yes"]
    assert [p.problem for p in polite.problems] == ["robots.txt does not allow it"]
    assert site.paths["/no/x"] == 0
    rude = find_links(site.url + "/", depth=1, respect_robots=False, settings=HERE)
    assert list(rude) == [site.url + path for path in ("/no/x", "/no/y", "/yes")]


def test_progress_and_cancel(site: Any) -> None:
    for number in range(30):
        site.page(f"/{number}", f"<a href='/{number + 1}'>next</a>")
    cancel, told = threading.Event(), []

    def progress(read: int, waiting: int, depth: int) -> None:
        told.append((read, depth))
        if read == 5:
            cancel.set()

    found = find_links(site.url + "/0", depth=25, settings=HERE, progress=progress, cancel=cancel)
    assert told == [(number, number) for number in range(1, 6)]
    assert len(found) == 6


def test_html_text_is_taken_as_it_is() -> None:
    assert list(find_links("<p><a href='b.html'>b</a></p>", base_url="http://h/a/")) == ["http://h/a/b.html"]
    assert list(find_links("<p><a href='b.html'>b</a></p>")) == ["b.html"]


def test_private_addresses_are_closed_by_default(site: Any) -> None:
    site.page("/", "<a href='/a'>a</a>")
    with pytest.raises(CrawlError, match="set allow_private"):
        find_links(site.url)
