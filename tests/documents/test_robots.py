from __future__ import annotations

import pytest

from ragnar_core.documents.robots import parse_robots

TEXT = """
# a comment
User-agent: *
Disallow: /private/
Allow: /private/open
Disallow: /*.pdf$
Crawl-delay: 2.5

User-agent: Other
User-agent: ragnar-workbench   # ours
Disallow: /ours
Disallow:

Sitemap: https://h.test/a.xml
sitemap: https://h.test/b.xml
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True),
        ("/private/x", False),
        ("/private/open/x", True),
        ("/a.pdf", False),
        ("/a.pdf?x=1", True),
        ("/a.pdfx", True),
    ],
)
def test_the_longest_rule_wins(path: str, allowed: bool) -> None:
    assert parse_robots(TEXT, "SomeBot/1.0").allows("https://h.test" + path) is allowed


def test_many_wildcards_cost_nothing() -> None:
    robots = parse_robots("User-agent: *\nDisallow: /" + "*a" * 60 + "*b$\nDisallow: /x*y$", "x")
    assert robots.allows("https://h.test/" + "a" * 5_000)
    assert not robots.allows("https://h.test/" + "a" * 5_000 + "b")
    assert not robots.allows("https://h.test/x1y2y")
    assert robots.allows("https://h.test/x1y2yz")


def test_a_group_of_its_own_takes_the_place_of_the_general_one() -> None:
    robots = parse_robots(TEXT, "Ragnar-Workbench/0.1 (x)")
    assert robots.allows("https://h.test/private/x")
    assert not robots.allows("https://h.test/ours/1")
    assert robots.delay is None


def test_delay_and_sitemaps_are_read() -> None:
    robots = parse_robots(TEXT, "SomeBot")
    assert robots.delay == 2.5
    assert robots.sitemaps == ("https://h.test/a.xml", "https://h.test/b.xml")


def test_nothing_stated_allows_all() -> None:
    assert parse_robots("", "x").allows("https://h.test/any")
    assert parse_robots("<html>not a robots file</html>", "x").allows("https://h.test/any")
