from __future__ import annotations

import json
import threading
import time
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents import CrawlSettings, CrawlState, FetchSettings, MarkdownDocument, crawl
from ragnar_core.errors import CrawlError

HERE = FetchSettings(allow_private=True, timeout=30.0, total_timeout=120.0)
QUICK = CrawlSettings(fetch=HERE, respect_robots=False)


def settings(**changes: Any) -> CrawlSettings:
    return CrawlSettings(**{"fetch": HERE, "respect_robots": False, **changes})


def origins(result: Any, site: Any) -> list[str | None]:
    return [document.origin.removeprefix(site.url) for document in result.documents]


def reasons(result: Any, site: Any) -> dict[str, str]:
    return {problem.url.removeprefix(site.url): problem.reason for problem in result.problems}


def test_a_site_becomes_documents_with_its_pages_addresses(site: Any) -> None:
    site.page("/docs/", "<h1>Home</h1><a href='a.html'>a</a><a href='/other/'>out</a>", title="Home")
    site.page("/docs/a.html", "<p>Page <b>A</b></p><a href='./'>up</a>", title="A")
    site.page("/other/", "outside")
    result = crawl(site.url + "/docs/", QUICK)
    assert origins(result, site) == ["/docs/", "/docs/a.html"]
    assert result.documents[1].text == "# A\n\nPage **A**\n\n[up](./)"
    assert result.documents[0].report.title == "Home"
    assert (result.problems, result.stopped, result.state.is_complete) == ([], None, True)
    assert result.changes == {site.url + "/docs/": "new", site.url + "/docs/a.html": "new"}
    assert site.paths["/other/"] == 0


def test_one_page_one_document_however_it_is_reached(site: Any) -> None:
    site.redirect("/old", "/new/")
    site.redirect("/docs", "/docs/", 301)
    site.page("/new/", "new <a href='x'>x</a>")
    site.page("/new/x", "x <a href='/docs'>d</a> <a href='/new/?utm_source=a'>n</a>")
    site.page("/docs/", "docs <a href='a.html'>a</a> <a href='/docs'>again</a>")
    site.page("/docs/a.html", "a")
    result = crawl([site.url + "/old", site.url + "/new/"], settings(scope="site"))
    assert origins(result, site) == ["/docs/", "/docs/a.html", "/new/", "/new/x"]
    assert site.paths["/new/"] <= 2
    assert result.problems == []


def test_a_start_that_redirects_takes_the_scope_of_where_it_leads(site: Any) -> None:
    site.redirect("/guide", "/v2/guide/", 301)
    site.page("/v2/guide/", "guide <a href='a.html'>a</a> <a href='/v2/other'>o</a>")
    site.page("/v2/guide/a.html", "a")
    site.page("/v2/other", "o")
    result = crawl(site.url + "/guide", settings(scope="children"))
    assert origins(result, site) == ["/v2/guide/", "/v2/guide/a.html"]


def test_failures_are_listed_and_never_stop_the_crawl(site: Any, servers: ModuleType) -> None:
    links = "".join(f"<a href='/{name}'>{name}</a>" for name in "abcdefgh")
    site.page("/", "start" + links)
    site.page("/a", "a")
    tries: list[float] = []

    def busy(handler: Any) -> None:
        tries.append(time.monotonic())
        if len(tries) == 1:
            handler.answer(b"wait", status=429, Retry_After="1")
        else:
            handler.answer(b"<p>c at last</p>")

    site.routes["/c"] = busy
    ended = threading.Event()
    site.routes["/d"] = lambda handler: ended.wait(60)
    site.routes["/e"] = servers.hang_up
    site.file("/f", b"", "text/html")
    site.routes["/g"] = servers.cut_short
    site.redirect("/h", "/h2")
    site.redirect("/h2", "/h")
    quick = FetchSettings(allow_private=True, timeout=1.5, total_timeout=10.0)
    result = crawl(site.url, settings(fetch=quick, retries=1))
    ended.set()
    assert origins(result, site) == ["/", "/a", "/c"]
    found = reasons(result, site)
    assert sorted(found) == ["/b", "/d", "/e", "/f", "/g", "/h"]
    assert found["/b"] == "HTTP 404 Not Found"
    assert found["/d"] == "no answer within 1.5 s"
    assert "broke off" in found["/e"]
    assert found["/f"] == "is an empty file (0 bytes)."
    assert "broke off" in found["/g"]
    assert found["/h"] == "redirects in a circle"
    assert tries[1] - tries[0] >= 1.0


def test_failed_pages_can_be_tried_again(site: Any) -> None:
    site.page("/", "start <a href='/late'>x</a>")
    first = crawl(site.url, QUICK)
    assert reasons(first, site) == {"/late": "HTTP 404 Not Found"}
    site.page("/late", "there now")
    state = CrawlState.from_dict(json.loads(json.dumps(first.state.to_dict())))
    second = crawl(site.url, QUICK, resume=state, retry_failed=True)
    assert (origins(second, site), second.problems) == (["/late"], [])
    assert site.paths["/"] == 1


def test_a_stopped_crawl_goes_on_where_it_was(site: Any) -> None:
    for number in range(40):
        site.page(f"/{number}", f"page {number} <a href='/{number + 1}'>next</a> <a href='/0'>first</a>")
    cancel = threading.Event()
    told: list[Any] = []

    def progress(at: Any) -> None:
        told.append(at)
        if at.read == 10:
            cancel.set()

    long = settings(max_depth=100)
    first = crawl(site.url + "/0", long, progress=progress, cancel=cancel)
    assert first.stopped == "cancelled"
    assert len(first.documents) == 10
    assert not first.state.is_complete
    assert told[-1].read == 10
    assert told[-1].url == site.url + "/9"
    state = CrawlState.from_dict(json.loads(json.dumps(first.state.to_dict())))
    second = crawl(site.url + "/0", long, resume=state)
    assert second.stopped is None
    assert {*origins(first, site), *origins(second, site)} == {f"/{number}" for number in range(40)}
    assert len(first.documents) + len(second.documents) == 40
    assert max(site.paths.values()) <= 2  # at most the page under way was fetched twice


def test_a_start_on_another_host_is_gone_on_with_there(site: Any, servers: ModuleType) -> None:
    other = servers.SiteServer("127.0.0.2")
    site.redirect("/", other.url + "/docs/")
    other.page("/docs/", "home <a href='a'>a</a>")
    other.page("/docs/a", "a <a href='b'>b</a>")
    other.page("/docs/b", "b")
    cancel = threading.Event()
    first = crawl(site.url, QUICK, cancel=cancel, progress=lambda at: cancel.set())
    rest = crawl(site.url, QUICK, resume=CrawlState.from_dict(json.loads(json.dumps(first.state.to_dict()))))
    assert [d.origin for d in (*first.documents, *rest.documents)] == [
        other.url + path for path in ("/docs/", "/docs/a", "/docs/b")
    ]
    assert rest.problems == []
    other.stop()


def test_a_second_crawl_asks_for_changes_only(site: Any) -> None:
    def tagged(path: str, body: str, tag: str) -> None:
        html = f"<main>{body}</main>".encode()

        def route(handler: Any) -> None:
            if handler.headers.get("If-None-Match") == tag:
                handler.answer(b"", status=304)
            else:
                handler.answer(html, ETag=tag)

        site.routes[path] = route

    tagged(
        "/", "home " + "".join(f"<a href='/{n}'>{n}</a>" for n in ("same", "edit", "gone", "dated")), '"h1"'
    )
    tagged("/same", "same <a href='/below'>b</a>", '"s1"')
    tagged("/below", "below", '"b1"')
    tagged("/edit", "first", '"e1"')
    site.page("/gone", "soon gone")
    site.page("/dated", "dated", Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT")
    first = crawl(site.url, QUICK)
    assert len(first.documents) == 6

    tagged("/edit", "second <a href='/fresh'>f</a>", '"e2"')
    site.page("/fresh", "fresh")
    del site.routes["/gone"]
    site.asked.clear()
    state = CrawlState.from_dict(json.loads(json.dumps(first.state.to_dict())))
    second = crawl(site.url, QUICK, previous=state)
    changes = {url.removeprefix(site.url): change for url, change in second.changes.items()}
    assert changes == {
        "/": "unchanged",
        "/same": "unchanged",
        "/below": "unchanged",
        "/dated": "unchanged",
        "/edit": "changed",
        "/fresh": "new",
    }
    assert second.vanished == [site.url + "/gone"]
    assert origins(second, site) == ["/edit", "/fresh"]
    asked = {path: headers for path, headers, _ in site.asked}
    assert asked["/below"]["if-none-match"] == '"b1"'
    assert asked["/dated"]["if-modified-since"] == "Mon, 01 Jan 2024 00:00:00 GMT"


def test_a_second_crawl_that_is_stopped_forgets_nothing(site: Any) -> None:
    for number in range(12):
        site.page(f"/{number}", f"page {number} <a href='/{number + 1}'>next</a>", ETag=f'"{number}"')
    site.page("/12", "the end")
    long = settings(max_depth=50)
    first = crawl(site.url + "/0", long)
    cancel = threading.Event()
    stopped = crawl(
        site.url + "/0",
        long,
        previous=first.state,
        cancel=cancel,
        progress=lambda at: cancel.set() if at.url.endswith("/4") else None,
    )
    assert (stopped.stopped, stopped.vanished, len(stopped.changes)) == ("cancelled", [], 5)
    assert len(stopped.state.records) == 13
    assert len(stopped.state.carried) == 8
    site.page("/7", "page 7 anew <a href='/8'>next</a>")
    state = CrawlState.from_dict(json.loads(json.dumps(stopped.state.to_dict())))
    rest = crawl(site.url + "/0", long, resume=state)
    assert origins(rest, site) == ["/7"]
    assert sorted(rest.changes.values()) == ["changed"] + ["unchanged"] * 7
    assert (rest.state.carried, rest.vanished) == ((), [])


def test_a_page_that_nothing_links_to_any_more_has_vanished(site: Any) -> None:
    site.page("/", "home <a href='/a'>a</a>")
    site.page("/a", "a")
    first = crawl(site.url, QUICK)
    site.page("/", "home alone")
    second = crawl(site.url, QUICK, previous=first.state)
    assert second.vanished == [site.url + "/a"]


def test_robots_crawl_delay_and_user_agent_are_respected(site: Any) -> None:
    site.file("/robots.txt", b"User-agent: *\nDisallow: /no\nCrawl-delay: 1", "text/plain")
    site.page("/", "home <a href='/no/x'>x</a><a href='/a'>a</a><a href='/b'>b</a>")
    site.page("/a", "a")
    site.page("/b", "b")
    result = crawl(site.url, settings(respect_robots=True))
    assert reasons(result, site) == {"/no/x": "robots.txt does not allow it"}
    times = [moment for path, _, moment in site.asked if path != "/robots.txt"]
    assert [later - earlier >= 0.7 for earlier, later in pairwise(times)] == [True, True]
    assert site.paths["/no/x"] == 0
    assert site.paths["/robots.txt"] == 1


def test_a_host_whose_robots_txt_fails_is_left_alone(site: Any) -> None:
    site.routes["/robots.txt"] = lambda handler: handler.answer(b"", status=503)
    site.page("/", "home")
    with pytest.raises(CrawlError, match=r"robots\.txt does not allow it"):
        crawl(site.url, settings(respect_robots=True))


def test_a_host_gets_few_requests_at_a_time(site: Any) -> None:
    site.page("/", "home" + "".join(f"<a href='/{n}'>{n}</a>" for n in range(24)))
    for number in range(24):
        body = f"<p>{number}</p>".encode()

        def slow(handler: Any, body: bytes = body) -> None:
            time.sleep(0.05)
            handler.answer(body)

        site.routes[f"/{number}"] = slow
    result = crawl(site.url, settings(concurrency=12, per_host=3))
    assert len(result.documents) == 25
    assert 2 <= site.most_at_once <= 3


def test_traps_end_and_say_which_limit_ended_them(site: Any) -> None:
    def calendar(handler: Any) -> None:
        day = int(handler.path.rpartition("=")[2] or 0) if "=" in handler.path else 0
        handler.answer(f"<p>day {day}</p><a href='?date={day + 1}'>next</a>".encode())

    def growing(handler: Any) -> None:
        handler.answer(f"<p>{handler.path}</p><a href='{handler.path}/list/'>more</a>".encode())

    site.page(
        "/", "home <a href='/cal'>c</a><a href='/list'>l</a><a href='/p?a=1&amp;a=2&amp;a=3&amp;a=4'>p</a>"
    )
    site.routes["/cal"] = calendar
    site.patterns.append(lambda path: growing if path.startswith("/list") else None)
    result = crawl(site.url, settings(max_queries=20, max_depth=200, max_pages=500))
    said = " ".join(result.limits.values())
    assert "more than 20 addresses differ only by their query (max_queries)" in said
    assert "a part of the path recurs more than 3 times (max_repeats)" in said
    assert "a query parameter recurs more than 3 times (max_repeats)" in said
    assert len(result.documents) < 40


def test_pages_and_time_are_bounded(site: Any) -> None:
    site.patterns.append(
        lambda path: (
            lambda handler: handler.answer(f"<p>{path}</p><a href='{len(path)}x{path[1:]}'>n</a>".encode())
        )
    )
    few = crawl(site.url, settings(max_pages=7, max_depth=100))
    assert len(few.documents) == 7
    assert few.limits["max_pages"] == "more than 7 pages (max_pages)"
    short = crawl(site.url, settings(max_seconds=2, max_depth=1_000, delay=0.05))
    assert short.stopped == "stopped after 2 seconds (max_seconds)"
    assert short.documents


def test_pdf_files_come_along_and_other_things_are_counted(site: Any, make: ModuleType) -> None:
    pdf = make.pdf([["Words in a PDF"]])
    links = ("/i.png", "/f.woff2", "/download?id=3", "/files/doc.pdf", "/data.zip", "/blob", "/pic", "/plain")
    site.page("/docs/", "home" + "".join(f"<a href='{link}'>x</a>" for link in links))
    site.file("/files/doc.pdf", pdf + b"\n", "application/pdf")
    site.file(
        "/download",
        make.pdf([["Another one"]]),
        "application/pdf",
        Content_Disposition='attachment; filename="r.pdf"',
    )
    site.file("/blob", make.pdf([["Octets"]]), "application/octet-stream")
    site.file("/pic", b"\x89PNG\r\n\x1a\n" + bytes(50), "image/png")
    site.file("/plain", b"just words", "text/plain")
    result = crawl(site.url + "/docs/", settings(scope="site"))
    assert [(origin, d.text) for origin, d in zip(origins(result, site), result.documents, strict=True)][
        :4
    ] == [
        ("/blob", "Octets"),
        ("/docs/", result.documents[1].text),
        ("/download?id=3", "Another one"),
        ("/files/doc.pdf", "Words in a PDF"),
    ]
    assert origins(result, site)[4] == "/plain"
    assert result.skipped == {".png": 1, ".woff2": 1, ".zip": 1, "image/png": 1}
    assert site.paths["/i.png"] == 0
    narrow = crawl(site.url + "/docs/", settings(scope="children"))
    assert origins(narrow, site) == ["/docs/", "/files/doc.pdf"]
    without = crawl(site.url + "/docs/", settings(scope="children", documents=False))
    assert origins(without, site) == ["/docs/"]


def test_patterns_choose_pages(site: Any) -> None:
    site.page("/", "home <a href='/guide/a'>a</a><a href='/guide/old/b'>b</a><a href='/blog/c'>c</a>")
    for path in ("/guide/a", "/guide/old/b", "/blog/c"):
        site.page(path, path)
    result = crawl(site.url, settings(include=("*/guide/*",), exclude=("*/old/*",)))
    assert origins(result, site) == ["/", "/guide/a"]


def test_sitemaps_named_in_robots_txt_are_read(site: Any) -> None:
    site.file("/robots.txt", f"Sitemap: {site.url}/map.xml".encode(), "text/plain")
    site.file("/map.xml", f"<urlset><url><loc>{site.url}/lonely</loc></url></urlset>".encode(), "text/xml")
    site.page("/", "home")
    site.page("/lonely", "lonely")
    assert origins(crawl(site.url, settings(sitemap=True)), site) == ["/", "/lonely"]
    assert origins(crawl(site.url + "/map.xml", QUICK), site) == ["/lonely"]


def test_pages_with_the_same_text_are_kept_once(site: Any) -> None:
    site.page("/", "home <a href='/a?session=1'>1</a><a href='/a?session=2'>2</a>")
    site.page("/a", "the very same")
    result = crawl(site.url, settings(concurrency=1))
    assert len(result.documents) == 2
    assert result.duplicates == {site.url + "/a?session=2": site.url + "/a?session=1"}


def test_a_canonical_link_names_the_document(site: Any) -> None:
    html = b"<html><head><link rel='canonical' href='/a'></head><body>text</body></html>"
    site.file("/a", html, "text/html")
    assert origins(crawl(site.url + "/a?ref=mail", QUICK), site) == ["/a"]
    far = b"<html><head><link rel='canonical' href='/elsewhere'></head><body>text</body></html>"
    site.file("/b", far, "text/html")
    assert origins(crawl(site.url + "/b", QUICK), site) == ["/b"]


def test_a_redirect_out_of_the_site_is_a_problem(site: Any, servers: ModuleType) -> None:
    other = servers.SiteServer()
    other.page("/", "other")
    site.redirect("/out", other.url + "/")
    site.page("/", "home <a href='/out'>o</a>")
    result = crawl(site.url, QUICK)
    assert origins(result, site) == ["/"]
    assert reasons(result, site) == {"/out": f"redirects out of the site, to {other.url}/"}
    other.stop()


def test_private_addresses_are_refused_by_default(site: Any) -> None:
    site.page("/", "home")
    with pytest.raises(CrawlError, match="a private or reserved address; set allow_private"):
        crawl(site.url)
    assert site.asked == []


def test_starts_are_checked() -> None:
    with pytest.raises(CrawlError, match="is no http or https address"):
        crawl("file:///etc/passwd")
    with pytest.raises(CrawlError, match="scope must be"):
        crawl("http://h/", CrawlSettings(scope="all"))


def test_two_thousand_pages(site: Any) -> None:
    def route(path: str) -> Any:
        number = path.strip("/")
        if not number.isdigit() or int(number) >= 2_000:
            return None
        n = int(number)
        links = "".join(f"<a href='/{k}'>{k}</a>" for k in (2 * n + 1, 2 * n + 2, n // 2))
        body = f"<html><body><main><h1>Page {n}</h1><p>Words of page {n}.</p>{links}</main></body></html>".encode()
        return lambda handler: handler.answer(body)

    site.patterns.append(route)
    kept: list[MarkdownDocument] = []
    result = crawl(site.url + "/0", settings(max_pages=5_000, max_depth=20), on_document=kept.append)
    assert len({document.origin for document in kept}) == 2_000
    assert result.documents == []
    assert {problem.status for problem in result.problems} == {404}
    assert len(result.problems) == 2_001
    assert max(site.paths.values()) == 1
