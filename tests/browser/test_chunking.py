"""The Chunking page in a real browser: cuts while the slider moves, jumps, two settings, hostile text."""

from __future__ import annotations

import importlib.util
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.shared.chunking_documents import TunedDocument
from ragnar_core import ChunkSettings, MarkdownDocument, Shelf, markdown_chunk
from ragnar_core.chunking.report import chunk_report

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, settle, shot = _tools.expect, _tools.settle, _tools.shot

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ROOT / "pages" / "shared" / "components"
TABLE = "| no | what |\n|---|---|\n" + "".join(f"| {i} | item number {i} |\n" for i in range(40))
MIXED = (
    "# Größe 😀\n\nEin Satz mit é und 👨‍👩‍👧‍👦 darin. Noch einer! 日本語の文章です。これは二つ目。\n\n"
    "| a | b |\n|---|---|\n| 😀 | ü |\n| 🇩🇪🇫🇷 | x̂ŷ |\n\n```py\nx = 'naïve'\n```\n\n"
    "## क्षि नमस्ते\n\nไทยไม่มีช่องว่าง ภาษาไทย\n\n"
) * 12
BOATS = (
    f"# Boats 😀\n\n{'Boats wait outside the harbour. They are many! ' * 30}\n\n## Prices\n\n{TABLE}\n"
    + ("## Berths 🎉\n\nA berth costs twelve a night. Pay at the blue house.\n\n" * 12)
)
HOSTILE = (
    '# <img src=x onerror="window.owned=1"> $E=mc^2$ :red[x] **b**\n\n'
    "<script>window.owned = 2</script>\n\n"
    '<a href="javascript:window.owned=3">go</a> ![i](http://203.0.113.7/i.png) [l](javascript:owned=4)\n\n'
    '<iframe srcdoc="<script>parent.owned=5</script>"></iframe> <svg onload="window.owned=6"></svg>\n\n'
    "| <b onmouseover=window.owned=7>n</b> | `</div></script>` |\n|---|---|\n| \u202eabc\u202c | &lt;i&gt; |\n\n"
) * 6

DOC = """[...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.doc')).find(Boolean)"""
CHOSEN = """() => [...CSS.highlights.keys()].filter((name) => name.startsWith('ragnar-chosen'))
    .some((name) => CSS.highlights.get(name).size)"""


@pytest.fixture(scope="module")
def chunking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the page on a server whose shelf holds three documents."""
    home = tmp_path_factory.mktemp("chunking")
    shelf = Shelf(home / ".documents")
    for origin, text in {"boats.md": BOATS, "hostile.md": HOSTILE, "mixed.md": MIXED}.items():
        shelf.add(MarkdownDocument(text, origin=origin))
    with _tools.running_server(home, home / "server.log") as url:
        yield f"{url}/chunking"


def visit(page, url: str, **query: object) -> None:
    page.goto(f"{url}?{'&'.join(f'{name}={value}' for name, value in query.items())}")
    settle(page)
    page.locator(".doc[data-version]").wait_for(state="attached")


def data(page, name: str) -> int:
    return int(page.locator(".doc").get_attribute(f"data-{name}") or -1)


def until(page, name: str, above: int) -> None:
    page.wait_for_function(f"([name, above]) => +{DOC}?.dataset[name] > above", arg=[name, above])


def shows(page, chunks: int) -> None:
    expect(page.locator(".doc")).to_have_attribute("data-chunks", str(chunks))


def text_of(page) -> str:
    return page.locator(".doc .text").evaluate("node => node.textContent")


def scrolled(page, where: str) -> None:
    page.wait_for_function(f"() => {DOC}?.scrollTop {where}")


def painted(page) -> list[str]:
    """The texts of the tinted stretches near the visible part, in the order of the document."""
    return page.evaluate(
        """() => [0, 1, 2, 3]
            .flatMap((i) => [...CSS.highlights.get(`ragnar-chunk-${i}`)])
            .map((range) => {
                const live = document.createRange();
                live.setStart(range.startContainer, range.startOffset);
                live.setEnd(range.endContainer, range.endOffset);
                return [live, live.toString()];
            })
            .sort(([a], [b]) => a.compareBoundaryPoints(Range.START_TO_START, b))
            .map(([, text]) => text)"""
    )


def cases(length: int) -> list[ChunkSettings]:
    sizes = (60, 400, 1600) if length > 1500 else (None, 1, 60)
    return [
        ChunkSettings.workbench(
            target_size=size,
            target_overlap=overlap,
            max_snap_dist=snap,
            segment_by_heading_levels=levels,
            keep_whole=whole,
        )
        for size, overlap, snap, (levels, whole) in itertools.product(
            sizes, (0, 0.5, 0.83), (None, 0, 60), (((), True), ((1, 2), True), ((), False))
        )
    ]


def test_the_browser_cuts_where_python_does(browser) -> None:
    page = browser.new_page()
    for part in ("_snap", "_paint"):
        page.add_script_tag(content=(COMPONENTS / f"chunk_text{part}.js").read_text("utf-8"))
    texts = [MIXED, BOATS, "x" * 700 + " y" * 300, "", "a"]
    texts.append((ROOT / "docs" / "handbook" / "03-chunking.md").read_text("utf-8"))
    compared = 0
    for text in texts:
        tuned = TunedDocument(MarkdownDocument(text))
        settings = cases(len(text))
        found = page.evaluate(
            """([sent, all]) => {
                const text = readText(sent);
                return all.map((settings) => {
                    const { ranges, at, kinds, inside } = cutHere(text, settings);
                    return [[...ranges], [...at], [...kinds], [...inside]];
                });
            }""",
            [tuned.for_browser, [one.to_dict() for one in settings]],
        )
        for one, (ranges, at, kinds, inside) in zip(settings, found, strict=True):
            report = chunk_report(tuned.boundaries, one)
            expected = (
                report.chunks.ranges.ravel().tolist(),
                report.positions.tolist(),
                report.kinds.tolist(),
                report.positions[report.inside].tolist(),
            )
            assert (ranges, at, kinds, inside) == expected, one
            compared += 1
    page.close()
    assert compared == 6 * 81


def test_the_text_follows_the_slider_and_the_server_confirms(chunking, open_page) -> None:
    page = open_page()
    visit(page, chunking, document="boats.md", size=400, overlap=25)
    text = MarkdownDocument(BOATS).text
    expected = markdown_chunk(
        BOATS, **ChunkSettings.workbench(target_size=400, target_overlap=0.25).to_dict()
    )
    shows(page, len(expected))
    assert painted(page)[:4] == expected.texts[:4]
    assert text_of(page) == text

    live, version = data(page, "live"), data(page, "version")
    page.locator("input#size").focus()
    page.keyboard.press("ArrowRight")
    until(page, "live", live)
    moved = markdown_chunk(BOATS, **ChunkSettings.workbench(target_size=450, target_overlap=0.25).to_dict())
    assert painted(page)[:4] == moved.texts[:4]
    until(page, "version", version)
    shows(page, len(moved))
    assert painted(page)[:4] == moved.texts[:4]
    expect(page).to_have_url(re.compile(r"size=450"))
    settle(page)
    # Every mark in the margin names the kind of a cut.
    expect(page.locator(".marks span").first).to_be_attached()
    labels = page.locator(".marks span").all_inner_texts()
    assert labels
    assert {part for label in labels for part in label.split(", ")} <= {
        "heading", "paragraph", "row", "cell", "sentence", "line", "word", "character",
    }  # fmt: skip

    page.get_by_role("button", name="tokens", exact=True).click()
    expect(page).to_have_url(re.compile(r"unit=tokens"))
    until(page, "version", version + 1)
    expect(page.get_by_role("button", name="tokens", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Reset").click()
    expect(page).to_have_url(re.compile(r"size=1600&overlap=50$"))
    shot(page, "chunking")


def test_strip_and_links_lead_into_the_text(chunking, open_page) -> None:
    page = open_page()
    visit(page, chunking, document="boats.md", size=300, overlap=0)
    chunks = markdown_chunk(BOATS, **ChunkSettings.workbench(target_size=300, target_overlap=0).to_dict())
    shows(page, len(chunks))
    facts, strip = page.locator(".facts"), page.locator("canvas.map")

    strip.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    start, end = next(itertools.islice(chunks, 1, None))
    expect(facts).to_contain_text(
        f"Chunk 2 of {len(chunks)} · {start:,}–{end:,} · {end - start:,} characters"
    )
    page.keyboard.press("End")
    expect(facts).to_contain_text(f"Chunk {len(chunks)} of {len(chunks)}")
    expect(facts).to_contain_text(re.compile(" in Boats 😀$"))
    scrolled(page, "> 500")
    expect(strip).to_have_attribute("aria-valuenow", str(len(chunks)))

    box = strip.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + 5)
    expect(facts).to_contain_text(f"Chunk 1 of {len(chunks)}")
    scrolled(page, "< 50")

    page.get_by_role("button", name="next: 1 table that no chunk holds whole").click()
    scrolled(page, "> 200")
    assert chunks.contexts[1] == "# Boats 😀"

    page.mouse.move(*_middle(page.locator(".doc")))
    page.wait_for_function(CHOSEN)

    before = page.locator(".doc").get_attribute("data-document")
    choice = page.get_by_role("combobox", name="Document")
    choice.scroll_into_view_if_needed()
    choice.press("ControlOrMeta+a")
    choice.press_sequentially("mixed")
    page.get_by_role("option", name="mixed.md").wait_for()
    choice.press("Enter")
    expect(page.locator(".doc")).not_to_have_attribute("data-document", before)
    settle(page)
    assert text_of(page) == MarkdownDocument(MIXED).text
    others = markdown_chunk(MIXED, **ChunkSettings.workbench(target_size=300, target_overlap=0).to_dict())
    shows(page, len(others))
    assert painted(page)[:4] == others.texts[:4]


def test_two_settings_and_a_question(chunking, open_page) -> None:
    page = open_page(width=390, height=844, dark=True)
    visit(page, chunking, document="boats.md", size=600, overlap=25)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    version = data(page, "version")
    page.get_by_role("button", name="Compare with B").click()
    until(page, "version", version)
    a, b = (
        markdown_chunk(BOATS, **ChunkSettings.workbench(target_size=size, target_overlap=0.25).to_dict())
        for size in (600, 300)
    )
    figures = page.locator(".figures tr", has_text="Chunks").locator("th, td")
    expect(figures).to_have_text(["Chunks", str(len(a)), str(len(b))])
    only = set(b.ranges.ravel()) - set(a.ranges.ravel()), set(a.ranges.ravel()) - set(b.ranges.ravel())
    expect(page.locator(".links")).to_contain_text(f"{len(only[1])} only in A, {len(only[0])} only in B")
    expect(page).to_have_url(re.compile(r"b_size=300"))

    page.get_by_label("A question to this document").fill("where do I pay for a berth")
    for side in "ab":
        best = page.locator(f".group.{side}[data-method=BM25] .passage").first
        expect(best.locator("mark").get_by_text("berth", exact=True).first).to_be_visible()
    page.locator(".group.b[data-method=VSS] .passage").first.wait_for()
    page.locator(".group.a[data-method=BM25] .passage").first.click()
    scrolled(page, "> 500")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    shot(page, "chunking-two-phone-dark")

    page.get_by_role("button", name="Use B for Build").click()
    page.get_by_text("Build uses these settings").wait_for()


def test_hostile_text_is_shown_and_does_nothing(chunking, open_page) -> None:
    page = open_page()
    visit(page, chunking, document="hostile.md", size=200, overlap=50)
    text = MarkdownDocument(HOSTILE).text
    assert text_of(page) == text
    assert page.locator(".doc .text :not(div)").count() == 0
    page.locator("canvas.map").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".facts")).to_contain_text("<img src=x onerror=")
    page.get_by_label("A question to this document").fill("script owned onerror")
    best = page.locator(".group[data-method=BM25] .passage").first
    expect(best.locator("mark").first).to_be_visible()
    assert best.locator("img, script, a, iframe, svg").count() == 0
    page.mouse.move(*_middle(page.locator(".doc")))
    page.wait_for_function(CHOSEN)
    settle(page)
    assert page.evaluate("() => window.owned") is None


def _middle(locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + 60, box["y"] + box["height"] / 2
