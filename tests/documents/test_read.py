from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents import Limits, ReadReport, read_as_markdown, read_bytes
from ragnar_core.documents.read import with_title
from ragnar_core.errors import CrawlError, DocumentError


def test_a_path_is_the_origin_unless_another_is_given(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"# Hi\r\n\r\nText  \r\n")
    document = read_as_markdown(path)
    assert (document.text, document.origin) == ("# Hi\n\nText", str(path))
    assert read_as_markdown(str(path), origin="mine").origin == "mine"
    assert read_as_markdown(path.as_uri()).text == document.text
    assert document.report == ReadReport(
        converter="text", encoding="utf-8", encoding_confidence=1.0, bytes=16, characters=len(document.text)
    )


def test_front_matter_and_fences_in_markdown_stay(tmp_path: Path) -> None:
    text = "---\ntitle: x\n---\n\n```r\n1 < 2 & '*'\n```\n"
    assert read_bytes(text.encode(), "a.qmd").text == text.rstrip()


def test_text_that_opens_like_something_else_stays_text() -> None:
    for text in (
        "BM25 ranks documents",
        "ID3 tags hold names",
        "Title: a\nDate: b\nFrom: c\nmore",
        "one \0 NUL",
    ):
        assert read_bytes(text.encode(), "x.txt").text == text.replace("\0", "\ufffd")


@pytest.mark.parametrize("name", ["readme.mdx", "notes.markdown", "data", "x.R", "Makefile", "a.py", "x.PDF"])
def test_text_is_read_whatever_its_name(name: str) -> None:
    assert read_bytes(b"plain text\n", name).text == "plain text"


def test_the_content_decides_where_it_can(make: ModuleType) -> None:
    book = make.xlsx(lambda wb: wb.active.append(["a", "b"]))
    assert read_bytes(book, "table.csv").report.converter == "openpyxl"
    assert read_bytes(make.pdf([["Hi"]]), "FILE.TXT").text == "Hi"
    assert read_bytes(b"<!doctype html><p>x <b>y</b>", "page.txt").text == "x **y**"
    assert read_bytes(make.docx(lambda d: d.add_paragraph("w")), "noname").text == "w"
    assert read_bytes(b"HTTP junk\n" + make.pdf([["Hi"]]), "e.pdf").text == "Hi"


def test_what_cannot_be_read_says_why(tmp_path: Path, make: ModuleType) -> None:
    def why(data: bytes, name: str, **options: Any) -> str:
        with pytest.raises(DocumentError) as caught:
            read_bytes(data, name, **options)
        return str(caught.value)

    assert why(b"", "e.pdf") == "e.pdf is an empty file (0 bytes)."
    assert why(b"PK\x03\x04garbage", "c.docx").startswith("c.docx is damaged or no Word file: ")
    assert why(b"PK\x03\x04garbage", "c.zip").startswith("c.zip is a damaged ZIP file: ")
    assert why(bytes(range(256)) * 4, "x.bin") == (
        "x.bin is a binary file of no kind that can be read (it starts with 00 01 02 03 04 05 06 07)."
    )
    assert why(make.msg({"WordDocument": b"x" * 100}), "old.doc") == (
        "old.doc is a Word 97 file, which cannot be read; save it as .docx first."
    )
    assert why(make.msg({"EncryptedPackage": b"x", "EncryptionInfo": b"y"}), "s.docx") == (
        "s.docx is protected by a password; pass password=, or save it without one."
    )
    assert "is a picture; nothing here can put it into words" in why(
        b"\x89PNG\r\n\x1a\n" + bytes(60), "a.png"
    )
    assert why(b"x" * 100, "a.txt", limits=Limits(file_bytes=50)) == (
        "a.txt has 0.0 MB; files of more than 0.0 MB are not read (limits.file_bytes)."
    )
    with pytest.raises(DocumentError, match="There is no file"):
        read_as_markdown(tmp_path / "none.pdf")
    with pytest.raises(DocumentError, match="is a folder"):
        read_as_markdown(tmp_path)
    with pytest.raises(DocumentError, match="only paths, file: and http"):
        read_as_markdown("ftp://host/x")


def test_a_url_is_fetched_and_read(site: Any, make: ModuleType) -> None:
    site.redirect("/old", "/report.pdf?x=1")
    site.file("/report.pdf", make.pdf([["From the web"]]), "application/pdf")
    site.file("/latin", "<p>Grüße</p>".encode("latin-1"), "text/html; charset=iso-8859-1")
    document = read_as_markdown(site.url + "/old", allow_private=True)
    assert (document.text, document.origin) == ("From the web", site.url + "/old")
    assert read_as_markdown(site.url + "/latin", allow_private=True).text == "Grüße"
    with pytest.raises(CrawlError, match="HTTP 404"):
        read_as_markdown(site.url + "/none", allow_private=True)
    with pytest.raises(CrawlError, match="set allow_private"):
        read_as_markdown(site.url + "/latin")


def test_json_xml_feeds_and_notebooks() -> None:
    small = b'{"a": [1, 2]}'
    assert read_bytes(small, "x.json").text == '{"a": [1, 2]}'
    large = json.dumps({"key": ["value"] * 500}).encode()
    assert read_bytes(large, "x.json").text.startswith('{\n  "key": [\n    "value",')
    assert (
        read_bytes(b"<?xml version='1.0'?><a><b>x</b></a>", "x.xml").text
        == "<?xml version='1.0'?><a><b>x</b></a>"
    )
    feed = (
        b"<?xml version='1.0' encoding='utf-8'?><rss version='2.0'><channel><title>News</title>"
        b"<item><title>First</title><description>Words &lt;b&gt;here&lt;/b&gt;</description></item></channel></rss>"
    )
    text = read_bytes(feed, "x.xml").text
    assert "# News" in text
    assert "First" in text
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
        {"cell_type": "code", "metadata": {}, "source": ["1 + 1"], "outputs": []},
    ]}  # fmt: skip
    assert (
        read_bytes(json.dumps(notebook).encode(), "n.ipynb").text == "# Title\ntext\n\n```python\n1 + 1\n```"
    )


def test_the_title_becomes_the_first_heading_once() -> None:
    assert with_title("text", "A Title") == "# A Title\n\ntext"
    assert with_title("# A  *Title*\n\ntext", "A Title") == "# A  *Title*\n\ntext"
    assert with_title("text", None) == "text"
    assert with_title("", "T") == "# T"


def test_suspicious_glyphs_are_counted() -> None:
    report = read_bytes("a \ufffd \ue001 (cid:12) b".encode(), "x.txt").report
    assert report.suspicious_glyphs == 3
    assert "3 of " in report.problems[0]


def test_the_encoding_can_be_given() -> None:
    document = read_bytes("łąka".encode("iso8859-2"), "x.txt", encoding="iso8859-2")
    assert (document.text, document.report.encoding, document.report.encoding_confidence) == (
        "łąka",
        "iso8859-2",
        None,
    )


def test_nothing_heavy_is_imported_for_plain_text() -> None:
    code = (
        "import sys; from ragnar_core.documents import read_bytes; read_bytes(b'hi', 'x.md');"
        "read_bytes(b'a,b', 'x.csv');"
        "print([m for m in ('markitdown', 'magika', 'pdfplumber', 'bs4', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
