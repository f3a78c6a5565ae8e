from __future__ import annotations

import pytest

from ragnar_core.documents.urls import Scope, canonical, resolve


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com:443/a#part", "https://example.com/a"),
        ("https://example.com:8443/a/", "https://example.com:8443/a/"),
        ("http://h/a/./b/../c", "http://h/a/c"),
        ("http://h/a b/é?q=ü x", "http://h/a%20b/%C3%A9?q=%C3%BC%20x"),
        ("http://h/%7euser/%e9", "http://h/~user/%E9"),
        ("http://h/100%", "http://h/100%25"),
        ("http://user:pw@h/x", "http://h/x"),
        ("http://münchen.test/", "http://xn--mnchen-3ya.test/"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("mailto:me@h", None),
        ("/path", None),
        ("http://h:99999/", None),
        ("http://h h/", None),
    ],
)
def test_one_spelling_for_each_address(url: str, expected: str | None) -> None:
    assert canonical(url) == expected
    if expected is not None:
        assert canonical(expected) == expected


def test_tracking_parameters_can_be_dropped() -> None:
    assert canonical("http://h/?utm_source=a&id=3&gclid=x", drop_tracking=True) == "http://h/?id=3"


def test_links_resolve_as_in_a_browser() -> None:
    base = "http://h/docs/a.html"
    assert resolve(base, " x.html\n") == "http://h/docs/x.html"
    assert resolve(base, "?p=2") == "http://h/docs/a.html?p=2"
    assert resolve(base, "//cdn.h/y") == "http://cdn.h/y"
    assert resolve(base, "javascript:void(0)") is None
    assert resolve(base, "http://[bad") is None


def test_children_are_whole_path_segments_of_the_same_host() -> None:
    scope = Scope.of("https://example.com/docs/page")
    assert scope is not None
    inside = ["https://example.com/docs/page/a", "http://EXAMPLE.com/docs/z", "https://example.com/docs/"]
    outside = [
        "https://example.com/docs-private/x",
        "https://example.com/docs2",
        "https://example.com.evil.test/docs/x",
        "https://example.com:8443/docs/y",
        "https://example.com/docs/../secret",
        "mailto:a@example.com",
    ]
    assert [url for url in inside + outside if scope.holds(url)] == inside


def test_the_scheme_can_be_held_fast() -> None:
    scope = Scope.of("https://example.com/docs/", same_scheme=True)
    assert scope is not None
    assert not scope.holds("http://example.com/docs/z")


def test_a_prefix_takes_itself_and_what_is_below() -> None:
    scope = Scope.of("https://example.com/docs", prefix=True)
    assert scope is not None
    assert scope.holds("https://example.com/docs")
    assert scope.holds("https://example.com/docs/x")
    assert not scope.holds("https://example.com/docs2")
