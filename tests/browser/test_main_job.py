"""The main job from end to end: a newcomer's first minute, and their own files in both columns."""

from __future__ import annotations

import importlib.util
import io
import re
import time
import zipfile
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, settle, shot = _tools.expect, _tools.settle, _tools.shot

pytestmark = pytest.mark.browser

PAGES = {
    "": "See what your retrieval does",
    "documents": "Documents",
    "chunking": "Chunking",
    "build": "Build",
    "compare": "Compare",
    "inspect": "Inspect",
    "map": "Map",
}


def pdf(line: str) -> bytes:
    """A PDF of one page with one line of text."""
    content = f"BT /F1 14 Tf 60 700 Td ({line}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length " + str(len(content)).encode() + b" >>\nstream\n" + content + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    return (
        out
        + (
            f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
            f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
        ).encode()
    )


def docx(paragraph: str) -> bytes:
    """A Word file of one paragraph."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'wordprocessingml.document.main+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="r1" Target="word/document.xml" Type="http://schemas.openxmlformats.org/officeDocument/'
            '2006/relationships/officeDocument"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
            f"<w:body><w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p></w:body></w:document>",
        )
    return buffer.getvalue()


def results(page, method: str):
    """The result cards of one column."""
    return page.get_by_label(f"{method} results").locator("article")


def wait_for_results(page, seconds: float) -> float:
    """Seconds until both columns show a result."""
    begin = time.monotonic()
    for method in ("VSS", "BM25"):
        results(page, method).first.wait_for(timeout=seconds * 1000)
    return time.monotonic() - begin


def test_first_start_shows_both_methods_within_30_seconds(fresh_server, open_page) -> None:
    page = open_page()
    begin = time.monotonic()
    page.goto(fresh_server)
    wait_for_results(page, 30)
    assert time.monotonic() - begin < 30
    expect(results(page, "VSS")).to_have_count(3)
    expect(results(page, "BM25")).to_have_count(3)
    settle(page)
    shot(page, "start")

    page.get_by_role("button", name="HNSW_INDEX_SCAN returns too few rows").click()
    page.get_by_label("BM25 results").get_by_text("HNSW_INDEX_SCAN").first.wait_for()
    page.get_by_role("button", name="Open in Compare").click()
    expect(page).to_have_url(re.compile(r"/compare\?.*q=HNSW_INDEX_SCAN"))
    wait_for_results(page, 30)


def test_own_files_are_found_in_both_columns(fresh_server, open_page) -> None:
    page = open_page()
    page.goto(f"{fresh_server}/documents")
    settle(page)
    files = [
        (
            "harbour.md",
            "text/markdown",
            b"# Harbour rules\n\nThe ferry to Bornholm leaves at dawn, weather permitting.\n",
        ),
        ("notes.txt", "text/plain", "Der Leuchtturmwärter zählt die Möwen.\n".encode("cp1252")),
        (
            "menu.html",
            "text/html",
            b"<html><body><nav>skip</nav><main><h1>Menu</h1><p>Smoked eel with dill.</p></main></body></html>",
        ),
        ("invoice.pdf", "application/pdf", pdf("Invoice 4711 for twelve lobster pots")),
        (
            "letter.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            docx("Dear harbourmaster, the quay lamp is broken."),
        ),
        ("broken.pdf", "application/pdf", b"%PDF-1.7 this is not a PDF"),
    ]
    page.locator("input[type=file]").first.set_input_files(
        [{"name": name, "mimeType": kind, "buffer": data} for name, kind, data in files]
    )
    page.get_by_role("heading", name="5 documents", exact=True).wait_for(timeout=60_000)
    page.get_by_text("broken", exact=False).first.wait_for()
    settle(page)
    shot(page, "documents")

    page.get_by_test_id("stSidebarNavLink").filter(has_text="Build").click()
    settle(page)
    page.get_by_label("Name of the new store").fill("harbour")
    page.get_by_label("Name of the new store").press("Enter")
    settle(page)
    page.get_by_role("button", name="Build", exact=True).click()
    page.get_by_role("button", name="Compare in this store").wait_for(timeout=90_000)
    shot(page, "build")
    page.get_by_role("button", name="Compare in this store").click()
    expect(page).to_have_url(re.compile(r"/compare.*store=harbour"))
    settle(page)

    for query, origin in (
        ("quay lamp", "letter.docx"),
        ("lobster pots", "invoice.pdf"),
        ("smoked eel", "menu.html"),
        ("Möwen", "notes.txt"),
        ("ferry Bornholm", "harbour.md"),
    ):
        page.get_by_label("Query", exact=True).fill(query)
        page.get_by_label("Query", exact=True).press("Enter")
        results(page, "BM25").filter(has_text=origin).first.wait_for()
        if query != "Möwen":
            results(page, "VSS").first.filter(has_text=origin).wait_for()
        settle(page)
    expect(results(page, "VSS")).to_have_count(5)
    shot(page, "compare-own")

    page.reload()
    settle(page)
    results(page, "BM25").filter(has_text="harbour.md").first.wait_for()


@pytest.mark.parametrize("path", PAGES)
def test_each_page_opens_by_its_own_url_on_a_fresh_server(path: str, fresh_server, open_page) -> None:
    page = open_page()
    page.goto(f"{fresh_server}/{path}")
    page.get_by_role("heading", name=PAGES[path], exact=True).wait_for()
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(7)
    settle(page)
    assert page.get_by_role("dialog").count() == 0
    assert page.get_by_test_id("stException").count() == 0


def test_state_survives_page_changes(server, open_page) -> None:
    page = open_page()
    page.goto(f"{server}/compare?q=stop+words&top_k=4")
    wait_for_results(page, 30)
    expect(results(page, "VSS")).to_have_count(4)
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Build").click()
    settle(page)
    page.get_by_label("Name of the new store").fill("kept")
    page.get_by_label("Name of the new store").press("Enter")
    settle(page)
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Compare").click()
    expect(page.get_by_label("Query", exact=True)).to_have_value("stop words")
    expect(results(page, "VSS")).to_have_count(4)
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Build").click()
    expect(page.get_by_label("Name of the new store")).to_have_value("kept")


def test_on_a_phone_the_question_has_a_row_of_its_own(server, open_page) -> None:
    below = []
    for width in (390, 1280):
        page = open_page(width=width)
        page.goto(server)
        results(page, "VSS").first.wait_for()
        settle(page)
        box = page.locator(".st-key-start_query").bounding_box()
        button = page.get_by_role("button", name="Open in Compare").bounding_box()
        below.append(button["y"] >= box["y"] + box["height"])
    assert below == [True, False]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_phone_width_has_no_sideways_scrolling(path: str, dark: bool, server, open_page) -> None:
    page = open_page(width=390, height=844, dark=dark)
    page.goto(f"{server}/{path}")
    page.get_by_role("heading", name=PAGES[path], exact=True).wait_for()
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shot(page, f"phone-{path or 'start'}-{'dark' if dark else 'light'}")
