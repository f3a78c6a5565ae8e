"""MarkdownDocument: normalisation, identity, and the report of a reading."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragnar_core.documents.document import MarkdownDocument, ReadReport, normalise
from ragnar_core.errors import DocumentError


def test_lines_end_in_lf_and_lose_trailing_blanks() -> None:
    text = "\ufeff# A\r\n\r\nb \t\rc\x85d\u2028e\u2029f\vg\fh\u3000\n i\xa0"
    assert normalise(text) == "# A\n\nb\nc\nd\ne\nf\ng\nh\n i"


def test_a_byte_order_mark_goes_at_every_line_start_only() -> None:
    assert normalise("\ufeffa\n\ufeffb\ufeffc") == "a\nb\ufeffc"


def test_separators_that_ragnar_keeps_are_kept() -> None:
    assert normalise("a\x1c\x1d\x1e\x1f\nz\u200b \n") == "a\x1c\x1d\x1e\x1f\nz\u200b\n"


def test_nul_becomes_the_replacement_character() -> None:
    assert normalise("a\0b") == "a\ufffdb"


@pytest.mark.parametrize("text", ["", "\n", "a\n\nb\n", "# é\n"])
def test_normal_text_is_the_same_object(text: str) -> None:
    assert normalise(text) is text


@given(st.text(st.characters(codec="utf-8")) | st.text("a \t\n\r\v\f\x85\u2028\ufeff\xa0\u3000\0"))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert not any(line != line.rstrip(" \t\xa0\u3000") for line in once.split("\n"))


def test_reference_documents(shared: Path) -> None:
    rows = _rows(shared / "golden/documents.jsonl")
    assert len(rows) == 83
    for row in rows:
        assert MarkdownDocument(row["text"]).text == row["normalized"], row["doc"]


def test_reference_vectors(shared: Path) -> None:
    checked = 0
    for row in _rows(shared / "golden/normalize_vectors.jsonl"):
        lines = row["input"]
        if "error" in row or not all(isinstance(line, str) for line in lines):
            continue
        assert normalise("\n".join(lines)) == row["normalized"], row["id"]
        checked += 1
    assert checked == 5


def test_half_a_surrogate_pair_is_refused_with_its_place() -> None:
    with pytest.raises(DocumentError, match=r"notes\.md is not valid Unicode.*U\+D800.*character 4, line 2"):
        MarkdownDocument("ab\nc\ud800", origin="notes.md")


def test_anything_but_a_string_is_refused() -> None:
    with pytest.raises(DocumentError, match="must be a string of Markdown, not bytes"):
        MarkdownDocument(b"# A")  # type: ignore[arg-type]


def test_identity_length_and_hash() -> None:
    document = MarkdownDocument("é\r\n", origin="a.md")
    assert document == MarkdownDocument("é\n", origin="a.md", report=ReadReport("text"))
    assert document != MarkdownDocument("é\n", origin="b.md")
    assert len(document) == 2
    assert document.hash == "edd3a863872a04239eb29ad4bc12fc892b3d4ae57cc7e786a3697816f8e141c2"
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.text = "x"  # type: ignore[misc]
    assert MarkdownDocument("")


def test_report_survives_json() -> None:
    report = ReadReport(
        "markitdown",
        encoding="utf-8",
        bytes=10,
        pages=3,
        pages_without_text=(2,),
        characters=5,
        notes=("One note.",),
        title="T",
    )
    assert ReadReport.from_dict({**json.loads(json.dumps(report.to_dict())), "new": 1}) == report


def test_report_names_what_was_lost() -> None:
    report = ReadReport(
        "pdf", encoding="cp1252", encoding_confidence=0.3, pages=4, pages_without_text=(2, 3), characters=100,
        suspicious_glyphs=7,
    )  # fmt: skip
    assert report.problems == [
        "Without text: 2 of 4 pages (page 2, 3). Scanned pages need OCR first.",
        "7 of 100 characters look wrongly decoded; compare the text with the original.",
        "The encoding was guessed as cp1252 with little confidence (30%); check the accented letters.",
    ]
    assert ReadReport("text", characters=0).problems == ["No text was found."]
    assert ReadReport("text", characters=3).problems == []


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]
