from __future__ import annotations

import io
import threading
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents import Limits, read_bytes
from ragnar_core.errors import DocumentError


def test_pages_are_parted_by_rules_and_empty_ones_named(make: ModuleType) -> None:
    document = read_bytes(make.pdf([["First page", "second line"], None, ["Third page"]]), "x.pdf")
    assert document.text == "First page\nsecond line\n\n---\n\n---\n\nThird page"
    report = document.report
    assert (report.pages, report.pages_without_text, report.converter) == (3, (2,), "markitdown (pdf)")
    assert report.problems == ["Without text: 1 of 3 pages (page 2). Scanned pages need OCR first."]


def test_a_scan_is_told_as_such(make: ModuleType) -> None:
    document = read_bytes(make.pdf([None, None]), "scan.pdf")
    assert (document.text, document.report.pages_without_text) == ("", (1, 2))
    assert document.report.problems == [
        "No text was found.",
        "Without text: 2 of 2 pages (page 1, 2). Scanned pages need OCR first.",
    ]


def test_ocr_is_asked_for_pages_without_text(make: ModuleType) -> None:
    asked: list[tuple[bytes, int]] = []

    def ocr(png: bytes, number: int) -> str:
        asked.append((png[:8], number))
        return f"seen on {number}" if number == 2 else ""

    document = read_bytes(make.pdf([["One"], None, None]), "x.pdf", ocr=ocr)
    assert document.text.startswith("One\n\n---\n\nseen on 2")
    assert asked == [(b"\x89PNG\r\n\x1a\n", 2), (b"\x89PNG\r\n\x1a\n", 3)]
    assert document.report.pages_without_text == (3,)


def test_passwords(make: ModuleType) -> None:
    locked = make.pdf([["Secret words"]], user_password="secret")
    with pytest.raises(DocumentError, match=r"x\.pdf is protected by a password; pass password="):
        read_bytes(locked, "x.pdf")
    with pytest.raises(DocumentError, match="the one given does not open it"):
        read_bytes(locked, "x.pdf", password="wrong")
    assert read_bytes(locked, "x.pdf", password="secret").text == "Secret words"
    owned = make.pdf([["Open words"]], user_password="", owner_password="own")
    assert read_bytes(owned, "x.pdf").text == "Open words"


def test_damage_is_repaired_or_told(make: ModuleType) -> None:
    good = make.pdf([[f"Page {n} " + "words " * 5] * 20 for n in range(9)])
    with pytest.raises(DocumentError, match=r"cut\.pdf is damaged"):
        read_bytes(good[: len(good) // 8], "cut.pdf")
    document = read_bytes(good[: len(good) * 2 // 3], "half.pdf")
    assert document.text.startswith("Page 0 words words")
    assert document.report.pages == 9
    assert 1 < len(document.report.pages_without_text) < 6
    assert document.report.problems[-1].startswith("The PDF is damaged (")
    lost = read_bytes(good[: good.rindex(b"xref", 0, len(good) - 60)], "lost.pdf")
    assert "Page 8 words" in lost.text
    with pytest.raises(DocumentError, match="damaged"):
        read_bytes(b"%PDF-1.4\nnothing else", "x.pdf")


def test_columns_and_grids(make: ModuleType) -> None:
    def columns(canvas: Any, number: int) -> None:
        for row in range(12):
            canvas.drawString(60, 700 - 14 * row, f"left column text number {row}")
            canvas.drawString(330, 700 - 14 * row, f"right column text number {row}")

    text = read_bytes(make.pdf([[]], draw=columns), "x.pdf").text
    assert text.index("left column text number 11") < text.index("right column text number 0")

    def grid(canvas: Any, number: int) -> None:
        for row, cells in enumerate([("id", "name", "qty"), ("1", "bolt", "12"), ("2", "nut", "7")]):
            for column, cell in enumerate(cells):
                canvas.drawString(72 + 150 * column, 700 - 20 * row, cell)

    lines = read_bytes(make.pdf([[]], draw=grid), "x.pdf").text.splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])] == [
        ["id", "name", "qty"],
        ["1", "bolt", "12"],
        ["2", "nut", "7"],
    ]


def test_running_lines_and_hyphens_can_be_cleared(make: ModuleType) -> None:
    pages = [
        ["Acme Confidential", "", f"Page text {word} with a hyphen-", "ated word.", "", f"Page {n} of 3"]
        for n, word in enumerate(("alpha", "beta", "gamma"), 1)
    ]
    data = make.pdf(pages)
    plain = read_bytes(data, "x.pdf").text
    assert plain.count("Acme Confidential") == 3
    assert "hyphen-\nated" in plain
    clean = read_bytes(data, "x.pdf", pdf_drop_headers=True, pdf_join_hyphens=True).text
    assert "Acme" not in clean
    assert "of 3" not in clean
    assert "Page text beta with a hyphenated word." in clean
    assert "\f" not in plain


def bomb(packed: bytes, filters: bytes) -> bytes:
    head = b"<< /Filter " + filters + b" /Length " + str(len(packed)).encode() + b" >>"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        head + b"\nstream\n" + packed + b"\nendstream",
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(parts, 1))
    return b"%PDF-1.4\n" + body + b"trailer << /Root 1 0 R >>\n%%EOF"


def test_packed_bombs_are_refused() -> None:
    import zlib

    once = zlib.compress(bytes(150_000_000), 9)
    with pytest.raises(DocumentError, match=r"it unpacks to more than 100 MB \(limits\.entry_bytes\)"):
        read_bytes(bomb(once, b"/FlateDecode"), "x.pdf")
    with pytest.raises(DocumentError, match="packed twice over"):
        read_bytes(bomb(zlib.compress(once), b"[/FlateDecode /FlateDecode]"), "x.pdf")
    assert read_bytes(bomb(zlib.compress(b"BT ET"), b"/FlateDecode"), "x.pdf").text == ""


def test_progress_cancel_and_page_limit(make: ModuleType) -> None:
    data = make.pdf([[f"Page {n}"] for n in range(6)])
    told: list[tuple[int, int]] = []
    cancel = threading.Event()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            cancel.set()

    with pytest.raises(DocumentError, match="was cancelled at page 3 of 6"):
        read_bytes(data, "x.pdf", progress=progress, cancel=cancel)
    assert told == [(1, 6), (2, 6)]
    with pytest.raises(DocumentError, match=r"6 pages; more than 5 are not read \(limits\.pages\)"):
        read_bytes(data, "x.pdf", limits=Limits(pages=5))


def test_reading_the_same_large_file_again_does_not_add_memory(make: ModuleType) -> None:
    import gc
    import resource

    data = make.pdf([["A line of quite ordinary words on a page."] * 50 for _ in range(12)])
    read_bytes(data, "x.pdf")
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4):
        read_bytes(data, "x.pdf")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 50


TABLE = [["Region", "Sales 2023", "Sales | 2024"], ["North", "12", "15"], ["South\nand sea", "", "9"]]
AS_MARKDOWN = [
    "| Region | Sales 2023 | Sales \\| 2024 |",
    "| --- | --- | --- |",
    "| North | 12 | 15 |",
    "| South and sea |  | 9 |",
]


def story(*parts: Any) -> bytes:
    """A PDF of what reportlab lays out: "# …" is a centred title, other texts are paragraphs, lists are ruled tables."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    styles = getSampleStyleSheet()
    made = [
        Paragraph(part.removeprefix("# "), styles["Title" if part.startswith("# ") else "Normal"])
        if isinstance(part, str)
        else Table(part, style=[("GRID", (0, 0), (-1, -1), 1, "black")])
        for part in parts
    ]
    out = io.BytesIO()
    SimpleDocTemplate(out).build(made)
    return out.getvalue()


def lines_of(data: bytes) -> list[str]:
    return [line for line in read_bytes(data, "x.pdf").text.splitlines() if line]


def test_a_ruled_table_keeps_its_rows_and_its_place() -> None:
    assert lines_of(story("# Report", "Before.", TABLE, "Between.", [["a", "b"], ["1", "2"]], "After.")) == [
        "Report",
        "Before.",
        *AS_MARKDOWN,
        "Between.",
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
        "After.",
    ]
    assert lines_of(story(TABLE)) == AS_MARKDOWN
    long = lines_of(story([[f"Item {n}", f"words of item {n} " * 3, f"{n}.00"] for n in range(12)]))
    assert long[0] == "| Item 0 | words of item 0 words of item 0 words of item 0 | 0.00 |"
    assert len(long) == 13


def test_a_table_in_one_of_two_columns_stays_in_it(make: ModuleType) -> None:
    def draw(canvas: Any, number: int) -> None:
        for row in range(12):
            canvas.drawString(60, 700 - 14 * row, f"left column text number {row}")
            if row not in (4, 5, 6, 7):
                canvas.drawString(330, 700 - 14 * row, f"right column text number {row}")
        canvas.grid([330, 400, 470], [598, 620, 642])
        for x, y, text in ((334, 626, "k"), (404, 626, "v"), (334, 604, "one"), (404, 604, "1")):
            canvas.drawString(x, y, text)

    found = lines_of(make.pdf([[]], draw=draw))
    assert found[:12] == [f"left column text number {row}" for row in range(12)]
    assert found[12:] == [
        *(f"right column text number {row}" for row in range(4)),
        "| k | v |",
        "| --- | --- |",
        "| one | 1 |",
        *(f"right column text number {row}" for row in range(8, 12)),
    ]


def test_a_frame_around_text_is_no_table(make: ModuleType) -> None:
    def draw(canvas: Any, number: int) -> None:
        canvas.rect(50, 600, 400, 120)
        canvas.line(50, 660, 450, 660)
        canvas.drawString(60, 700, "A framed sentence.")
        canvas.drawString(60, 620, "Another one below the line.")

    assert lines_of(make.pdf([[]], draw=draw)) == ["A framed sentence.", "Another one below the line."]


def test_a_drawing_of_very_many_lines_is_read_as_prose(make: ModuleType) -> None:
    def draw(canvas: Any, number: int) -> None:
        canvas.grid(list(range(50, 550, 4)), list(range(50, 600, 1)))
        canvas.drawString(60, 700, "Above the raster.")

    assert "Above the raster." in lines_of(make.pdf([[]], draw=draw))
