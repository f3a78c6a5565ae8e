from __future__ import annotations

import pytest

from pages.shared.rendered import inert_html


def test_markdown_is_rendered() -> None:
    assert inert_html("# A\n\n**b** `c`") == "<h1>A</h1>\n<p><strong>b</strong> <code>c</code></p>\n"
    assert "<td>5,120</td>" in inert_html("| a | b |\n|---|---|\n| 5,120 | x |")


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("![p](http://evil.example/p.png)", "<em>[picture: p]</em>"),
        ('![" onload="x](http://evil.example/p.png)', "<em>[picture: &quot; onload=&quot;x]</em>"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](data:text/html,hi)", "[x](data:text/html,hi)"),
        ("<style>*{display:none}</style>", "&lt;style&gt;*{display:none}&lt;/style&gt;"),
        ("cost $5 :red[x]", "cost $5 :red[x]"),
    ],
)
def test_hostile_text_is_shown_as_it_is(hostile: str, shown: str) -> None:
    html = inert_html(hostile)
    assert shown in html
    assert "<script" not in html
    assert "<img" not in html
    assert "<style" not in html


def test_links_open_elsewhere_and_tell_nothing() -> None:
    assert inert_html('[a](https://example.org/?a="b)') == (
        '<p><a href="https://example.org/?a=%22b" target="_blank" rel="noopener noreferrer nofollow">a</a></p>\n'
    )
