from __future__ import annotations

import threading

import pytest

from ragnar_core.documents import read_bytes
from ragnar_core.documents.html import html_to_markdown
from ragnar_core.errors import DocumentError


def markdown(html: str, **options: object) -> str:
    return html_to_markdown(html, **options).markdown  # type: ignore[arg-type]


PAGE = """<!DOCTYPE html><html><head><title>The Page</title></head><body>
<nav><a href="/1">Nav</a></nav><main><h1>T</h1><p>Body</p><nav>inner</nav><aside class="ad">Buy</aside></main>
<footer>Foot</footer></body></html>"""


def test_main_is_kept_and_nav_removed_by_default() -> None:
    document = read_bytes(PAGE.encode(), "page.html")
    assert document.text == "# The Page\n\n# T\n\nBody\n\nBuy"
    assert (document.report.title, document.report.encoding) == ("The Page", "utf-8")
    assert document.report.problems == []


def test_selectors_are_css_and_can_be_switched_off() -> None:
    assert read_bytes(PAGE.encode(), "p.html", html_zap_selectors=["nav", "aside.ad"]).text == (
        "# The Page\n\n# T\n\nBody"
    )
    assert "Foot" in read_bytes(PAGE.encode(), "p.html", html_extract_selectors=None).text
    assert "Nav" in read_bytes(PAGE.encode(), "p.html", html_extract_selectors=(), html_zap_selectors=()).text
    assert read_bytes(PAGE.encode(), "p.html", html_extract_selectors="footer").text == "# The Page\n\nFoot"


def test_a_selector_without_a_match_keeps_the_body() -> None:
    assert markdown("<body><p>All</p></body>", extract=("main", "#content")) == "All"
    assert markdown("<body><main><div id=c>In</div>Out</main></body>", extract=("main", "#c")) == "In"


def test_a_selector_that_is_no_css_is_named() -> None:
    with pytest.raises(DocumentError, match=r"The selector 'main\[' is not valid CSS"):
        read_bytes(PAGE.encode(), "p.html", html_extract_selectors="main[")


def test_threads_with_different_selectors_do_not_mix() -> None:
    html = b"<body>" + b"<div class='a'>alpha</div><div class='b'>beta</div>" * 20 + b"</body>"
    found: dict[str, set[str]] = {"a": set(), "b": set()}

    def read(keep: str, drop: str) -> None:
        for _ in range(30):
            found[keep].add(read_bytes(html, "x.html", html_zap_selectors=f".{drop}").text)

    threads = [threading.Thread(target=read, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": {"\n\n".join(["alpha"] * 20)}, "b": {"\n\n".join(["beta"] * 20)}}


def test_markitdown_itself_stays_as_it_was() -> None:
    import io

    from markitdown import MarkItDown

    read_bytes(PAGE.encode(), "p.html", html_zap_selectors="p")
    plain = MarkItDown().convert_stream(io.BytesIO(PAGE.encode()), file_extension=".html").markdown
    assert "Nav" in plain
    assert "Body" in plain


def test_words_stay_apart() -> None:
    html = (
        "<p>further<strong> </strong>reference, a<b> bold</b>word, <i>one</i><i> two</i>, x<br>y, &nbsp;z</p>"
    )
    assert markdown(html).replace("\xa0", " ").replace("  \n", "\n") == (
        "further reference, a **bold**word, *one* *two*, x\ny,  z"
    )


def test_merged_cells_do_not_shift() -> None:
    html = (
        "<table><tr><th rowspan=2>Region</th><th colspan=2>Sales</th></tr><tr><th>2023</th><th>2024</th></tr>"
        "<tr><td>North</td><td>1</td><td>2</td></tr></table>"
    )
    assert markdown(html) == (
        "| Region | Sales | Sales |\n| --- | --- | --- |\n| Region | 2023 | 2024 |\n| North | 1 | 2 |"
    )


def test_pipes_breaks_and_code_in_cells() -> None:
    html = "<table><tr><td>k</td><td>v</td></tr><tr><td>a|b</td><td>c<br>d <code>x|y</code></td></tr></table>"
    assert markdown(html) == "| k | v |\n| --- | --- |\n| a\\|b | c<br>d `x\\|y` |"


def test_nested_and_empty_tables() -> None:
    nested = "<table><tr><td>out</td><td><table><tr><td>in</td><td>side</td></tr></table></td></tr></table>"
    assert markdown(nested) == "| out | in side |\n| --- | --- |"
    assert markdown("<p>x</p><table><tr><td></td></tr></table>") == "x"
    assert markdown("<table><caption>Cap</caption><tr><td>a</td><td>b</td></tr></table>") == (
        "Cap\n\n| a | b |\n| --- | --- |"
    )


def test_spans_that_lie_are_bounded() -> None:
    html = "<table><tr><td rowspan=99999999>a</td><td colspan='-3'>b</td></tr><tr><td>c</td></tr></table>"
    assert markdown(html) == "| a | b |\n| --- | --- |\n| c |  |"


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<pre class='sourceCode r cell-code'><code>x</code></pre>", "r"),
        ("<pre><code class='language-python'>x</code></pre>", "python"),
        ("<pre class='r'><code>x</code></pre>", "r"),
        ("<div class='highlight-bash notranslate'><div class='highlight'><pre>x</pre></div></div>", "bash"),
        ("<div class='highlight highlight-source-shell'><pre>x</pre></div>", "shell"),
        ("<pre class='wp-block-code'>x</pre>", ""),
        ("<pre>x</pre>", ""),
        ("<div class='highlight-default'><pre>x</pre></div>", ""),
    ],
)
def test_the_language_of_code_is_kept(html: str, language: str) -> None:
    assert markdown(html) == f"```{language}\nx\n```"


def test_blanks_in_code_stay() -> None:
    assert (
        markdown("<pre>x: <a href='p'>*mut </a><a href='u'> u64</a><b> y</b></pre>")
        == "```\nx: *mut  u64 y\n```"
    )


def test_a_fence_is_longer_than_those_inside() -> None:
    assert markdown("<pre class='md'>```r\n1\n```</pre>") == "````md\n```r\n1\n```\n````"
    assert markdown("<pre>`````\nx</pre>") == "``````\n`````\nx\n``````"


def test_text_that_looks_like_markup_stays_text() -> None:
    import cmarkgfm
    from lxml import html as lxml_html

    texts = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "# no heading",
        "1. no list",
        "- no list",
        "> no quote",
        "*no emphasis*",
        "`no code`",
        "&lt; stays",
        "snake_case_name and 5 * 3",
        "[ref]: x",
        "===",
    ]
    for text in texts:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        result = markdown(f"<p>{escaped}</p>")
        rendered = cmarkgfm.github_flavored_markdown_to_html(result)
        tree = lxml_html.fragment_fromstring(rendered, create_parent="div")
        assert tree.text_content().strip() == text
        assert [child.tag for child in tree] == ["p"]
        assert [child.tag for child in tree[0]] == []
    assert markdown("<p>snake_case_name and 5 * 3</p>") == "snake_case_name and 5 * 3"


def test_hostile_pages_lose_their_scripts() -> None:
    html = (
        "<script>alert(1)</script><style>x{}</style><template><b>t</b></template>"
        "<p onclick='x()'>ok <a href='javascript:alert(1)'>link</a> <a href=' JaVaScRiPt:x'>two</a>"
        "<img alt='pic' src='javascript:alert(1)'><img alt='big' src='data:image/png;base64,AAAA'>"
        "<iframe src='http://evil'></iframe><!-- comment --></p>"
    )
    assert markdown(html) == "ok link two pic  big"


def test_an_empty_match_does_not_hide_the_page() -> None:
    assert markdown("<body><main> </main><div>text</div></body>", extract=("main",)) == "text"


def test_a_page_nested_ten_thousand_deep_is_read() -> None:
    html = "<h1>Top</h1>" + "<div>" * 10_000 + "deep <b>words</b>" + "</div>" * 10_000 + "<p>after</p>"
    converted = html_to_markdown(html)
    assert converted.markdown == "# Top\n\ndeep\nwords\n\nafter"
    assert converted.notes == (
        "Parts of the page are nested too deeply to keep their headings and lists; their text was taken.",
    )
    assert markdown("<div>" * 300 + "<p>a <b>b</b></p>" + "</div>" * 300) == "a b"
    lists = "<ul><li>" * 2_000 + "leaf"
    assert "leaf" in markdown(lists)


def test_lists_keep_their_numbers_and_levels() -> None:
    html = "<ol start=3><li>a<ul><li>b</li></ul></li><li><p>c</p><p>d</p></li></ol><ol><li>e</li></ol>"
    assert markdown(html) == "3. a\n   * b\n4. c\n\n   d\n\n1. e"


def test_hostile_lengths_cost_little() -> None:
    assert markdown("<!--" * 50_000).count("!--") == 50_000
    assert markdown("<a " * 50_000 + "<p>end</p>").endswith("end")
    assert markdown("<a " * 50_000 + ">" * 60_000 + "<p>end</p>").endswith("end")
    assert markdown("<p>" + '<a href="' * 50_000) != ""
    assert markdown("<p>a<script>" + "if(a<b)c;" * 500 + "</script>b</p>") == "ab"
    assert markdown("<ol>" + "<li>x</li>" * 10_000 + "</ol>").endswith("\n10000. x")


def test_a_title_is_not_repeated_and_comes_from_the_page_only() -> None:
    assert read_bytes(b"<title>My  Page</title><h1>My Page</h1>", "x.html").text == "# My Page"
    assert read_bytes(b"<svg><title>icon</title></svg><p>x</p>", "x.html").report.title is None
    assert read_bytes(b"<title>a_b &lt;c></title><p>x</p>", "x.html").text == "# a_b \\<c>\n\nx"


def test_page_breaks_become_rules() -> None:
    assert read_bytes(b"one\ftwo", "x.txt").text == "one\n\n---\n\ntwo"
