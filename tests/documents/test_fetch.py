from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents.fetch import Fetcher, FetchError, FetchSettings
from ragnar_core.documents.guard import is_allowed

HERE = FetchSettings(allow_private=True, timeout=30.0, total_timeout=120.0)


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(HERE) as client:
        yield client


def failure(fetcher: Fetcher, url: str) -> FetchError:
    with pytest.raises(FetchError) as caught:
        fetcher.get(url)
    return caught.value


def test_a_page_comes_with_its_type_charset_and_body(site: Any, fetcher: Fetcher) -> None:
    site.file("/a", b"caf\xe9", "text/html; charset=ISO-8859-1", ETag='"1"')
    page = fetcher.get(site.url + "/a")
    assert (page.status, page.content_type, page.charset, page.body) == (
        200,
        "text/html",
        "ISO-8859-1",
        b"caf\xe9",
    )
    assert page.headers["etag"] == '"1"'
    assert site.asked[0][1]["user-agent"].startswith("ragnar-workbench/")


def test_redirects_lead_to_the_last_address(site: Any, fetcher: Fetcher) -> None:
    site.redirect("/old", "/mid")
    site.redirect("/mid", "new/?q=1#part", 301)
    site.page("/new/", "there")
    page = fetcher.get(site.url + "/old")
    assert page.url == site.url + "/new/?q=1"
    assert page.requested == site.url + "/old"


def test_redirect_loops_end(site: Any, fetcher: Fetcher) -> None:
    site.redirect("/loop", "/loop2")
    site.redirect("/loop2", "/loop")
    assert failure(fetcher, site.url + "/loop").reason == "redirects in a circle"
    for number in range(20):
        site.redirect(f"/hop{number}", f"/hop{number + 1}")
    assert failure(fetcher, site.url + "/hop0").reason == "redirected more than 10 times"


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://example.com/x", "gopher://x", "data:text/html,hi"]
)
def test_redirects_to_other_schemes_are_refused(site: Any, fetcher: Fetcher, target: str) -> None:
    site.redirect("/away", target)
    assert "is no http or https address" in failure(fetcher, site.url + "/away").reason


def test_statuses_are_errors_with_what_to_wait_for(site: Any, fetcher: Fetcher) -> None:
    site.routes["/429"] = lambda handler: handler.answer(b"slow down", status=429, Retry_After="7")
    gone, busy = failure(fetcher, site.url + "/none"), failure(fetcher, site.url + "/429")
    assert (gone.status, gone.temporary, gone.reason) == (404, False, "HTTP 404 Not Found")
    assert (busy.status, busy.temporary, busy.retry_after) == (429, True, 7.0)


def test_a_gzip_bomb_is_refused_at_the_limit_and_not_unpacked(site: Any, servers: ModuleType) -> None:
    import tracemalloc

    bomb = servers.gzip_bomb(300)
    site.file("/bomb", bomb, "text/html", Content_Encoding="gzip")
    with Fetcher(FetchSettings(allow_private=True, max_bytes=5_000_000)) as fetcher:
        tracemalloc.start()
        error = failure(fetcher, site.url + "/bomb")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert error.reason == "larger than 5.0 MB (max_bytes)"
    assert peak < 20_000_000


def test_sizes_are_bounded_by_header_and_while_reading(site: Any) -> None:
    site.file("/stated", b"x" * 2_000, "text/html")

    def unstated(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"x" * 2_000)
        handler.close_connection = True

    site.routes["/unstated"] = unstated
    with Fetcher(FetchSettings(allow_private=True, max_bytes=1_000)) as fetcher:
        assert "larger than" in failure(fetcher, site.url + "/stated").reason
        assert "larger than" in failure(fetcher, site.url + "/unstated").reason


def test_packed_answers_are_unpacked(site: Any, fetcher: Fetcher) -> None:
    import zlib

    raw = zlib.compressobj(wbits=-15)
    site.file("/gzip", gzip.compress(b"hello"), "text/plain", Content_Encoding="gzip")
    site.file("/zlib", zlib.compress(b"hello"), "text/plain", Content_Encoding="deflate")
    site.file("/raw", raw.compress(b"hello") + raw.flush(), "text/plain", Content_Encoding="deflate")
    site.file("/odd", b"hello", "text/plain", Content_Encoding="br")
    assert [fetcher.get(site.url + path).body for path in ("/gzip", "/zlib", "/raw")] == [b"hello"] * 3
    assert failure(fetcher, site.url + "/odd").reason == (
        "the answer cannot be read: it is packed as 'br', which was not asked for"
    )


def test_slow_and_broken_answers_end_in_time(site: Any, servers: ModuleType) -> None:
    site.routes["/drip"] = servers.drip
    ended = threading.Event()
    site.routes["/hang"] = lambda handler: ended.wait(60)
    site.routes["/up"] = servers.hang_up
    site.routes["/short"] = servers.cut_short
    settings = FetchSettings(allow_private=True, timeout=0.4, total_timeout=0.8)
    with Fetcher(settings) as fetcher:
        slow = failure(fetcher, site.url + "/drip")
        mute = failure(fetcher, site.url + "/hang")
        ended.set()
        assert slow.temporary
        assert "within 0." in slow.reason
        assert mute.reason == "no answer within 0.4 s"
    with Fetcher(HERE) as fetcher:
        assert "broke off" in failure(fetcher, site.url + "/up").reason
        assert "broke off" in failure(fetcher, site.url + "/short").reason


def test_bodies_that_are_not_wanted_are_not_read(site: Any, fetcher: Fetcher) -> None:
    site.file("/picture", b"x" * 100, "image/png")
    page = fetcher.get(site.url + "/picture", wanted=lambda kind, url: not kind.startswith("image/"))
    assert (page.content_type, page.body) == ("image/png", None)


def test_cancelling_ends_a_download(site: Any, servers: ModuleType) -> None:
    site.routes["/drip"] = servers.drip
    cancel = threading.Event()
    cancel.set()
    with Fetcher(HERE, cancel=cancel) as fetcher:
        assert failure(fetcher, site.url + "/drip").reason == "cancelled"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0"],
)
def test_loopback_is_closed_in_every_spelling(site: Any, host: str) -> None:
    site.page("/secret", "secret")
    with Fetcher(FetchSettings(timeout=30.0)) as fetcher:
        error = failure(fetcher, f"http://{host}:{site.server_address[1]}/secret")
    assert "a private or reserved address; set allow_private" in error.reason
    assert site.asked == []


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
    ],
)
def test_which_addresses_are_public(address: str, allowed: bool) -> None:
    assert is_allowed(address, False) is allowed
    assert is_allowed(address, True)


def test_private_addresses_can_be_allowed_by_network_or_name() -> None:
    assert is_allowed("10.1.2.3", ("10.0.0.0/8",))
    assert not is_allowed("192.168.0.1", ("10.0.0.0/8",))
    assert is_allowed("192.168.0.1", ("wiki.intern",), "Wiki.Intern.")


def test_each_hop_of_a_redirect_is_checked(site: Any, servers: ModuleType) -> None:
    inner = servers.SiteServer("127.0.0.2")
    inner.page("/secret", "secret")
    site.redirect("/hop", inner.url + "/secret")
    site.redirect("/cloud", "http://169.254.169.254/latest/meta-data")
    with Fetcher(FetchSettings(allow_private=("127.0.0.1",), timeout=30.0)) as fetcher:
        assert "127.0.0.2, a private" in failure(fetcher, site.url + "/hop").reason
        assert "169.254.169.254, a private" in failure(fetcher, site.url + "/cloud").reason
    assert inner.asked == []
    inner.stop()


def test_a_name_that_resolves_differently_the_second_time_gains_nothing(
    site: Any, servers: ModuleType
) -> None:
    inner = servers.SiteServer("127.0.0.2")
    inner.page("/", "secret")
    answers = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"]])
    seen: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        seen.append(host)
        return next(answers)

    site.page("/", "public", Connection="close")
    settings = FetchSettings(allow_private=("127.0.0.1",), timeout=30.0)
    with Fetcher(settings, resolver=resolver) as fetcher:
        first = fetcher.get(f"http://rebind.test:{site.server_address[1]}/")
        second = failure(fetcher, f"http://rebind.test:{site.server_address[1]}/")
        third = fetcher.get(f"http://rebind.test:{site.server_address[1]}/")
    assert first.body is not None
    assert b"public" in first.body
    assert "127.0.0.2, a private" in second.reason
    assert third.body == first.body  # only the allowed one of two addresses is connected to
    assert (
        seen == ["rebind.test"] * 3
    )  # resolved once for each connection, not once to check and once to connect
    assert inner.asked == []
    inner.stop()


def test_only_http_addresses_are_fetched(fetcher: Fetcher) -> None:
    for url in ("file:///etc/passwd", "ftp://h/x", "nonsense", "http://", "http://h:99999/"):
        assert "only http and https" in failure(fetcher, url).reason


def test_an_unknown_name_is_said_so(fetcher: Fetcher) -> None:
    assert "the name nowhere.invalid is unknown" in failure(fetcher, "http://nowhere.invalid/").reason
