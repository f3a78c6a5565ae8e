"""markdown_segment and markdown_frame: the reference rows, and what ragnar cannot read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragnar_core.chunking import Segment, markdown_frame, markdown_segment, segment
from ragnar_core.documents.document import MarkdownDocument

Row = dict[str, Any]
FRONT_MATTER = "2 front matter has no heading"
WITHOUT_WORDS = "4 a text without words is no error"


def test_reference_segments(
    golden: Callable[[str], list[Row]],
    reference_documents: dict[str, Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons = Counter[str]()
    for row in golden("segment"):
        text = reference_documents[row["doc"]]["text"]

        def run(text: str = text, row: Row = row) -> list[tuple[str, int]]:
            found = markdown_segment(text, row["tags"], trim=row["trim"], omit_empty=row["omit_empty"])
            if "text" in row:
                assert [one.text for one in found if one.text] == [one for one in row["text"] if one]
            return [(one.tag, len(one.text)) for one in found]

        if "error" in row:
            assert not text.strip()
            assert [tag for tag, _ in run()] in ([], [""])
            reasons[WITHOUT_WORDS] += 1
            continue
        wanted = list(zip(row["names"], row["nchar"], strict=True))
        if _without_front_matter(text) and run_differs(run, wanted):
            with monkeypatch.context() as patch:
                patch.setattr(segment, "front_matter_end", lambda text: 0)
                assert run() == wanted, row
            reasons[FRONT_MATTER] += 1
        else:
            assert run() == wanted, row
            reasons["equal"] += 1
    print(f"\nsegment.jsonl: {dict(reasons)}")
    assert reasons == {"equal": 2863, WITHOUT_WORDS: 104, FRONT_MATTER: 24}


def test_reference_frames(
    golden: Callable[[str], list[Row]],
    reference_documents: dict[str, Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons = Counter[str]()
    for row in golden("frame"):
        text = reference_documents[row["doc"]]["text"]
        if not text.strip():
            frame = markdown_frame(text, row["frame_by"], row["segment_by"])
            assert frame["text"].tolist() == ([text] if text else [])
            reasons[WITHOUT_WORDS] += 1
            continue
        if _columns(markdown_frame(text, row["frame_by"], row["segment_by"])) == _wanted_columns(row):
            reasons["equal"] += 1
            continue
        with monkeypatch.context() as patch:
            patch.setattr(segment, "front_matter_end", lambda text: 0)
            frame = markdown_frame(text, row["frame_by"], row["segment_by"])
        assert _columns(frame) == _wanted_columns(row), row
        reasons[FRONT_MATTER] += 1
    print(f"\nframe.jsonl: {dict(reasons)}")
    assert reasons == {"equal": 263, WITHOUT_WORDS: 15, FRONT_MATTER: 5}


def test_segments_are_slices_of_the_document() -> None:
    document = MarkdownDocument("# A\n\n- é\n- b\n")
    assert markdown_segment(document, ["li"]) == [
        Segment("", 0, 5, "# A\n\n"),
        Segment("li", 5, 8, "- é"),
        Segment("", 8, 9, "\n"),
        Segment("li", 9, 12, "- b"),
        Segment("", 12, 13, "\n"),
    ]


def test_trimmed_segments_keep_their_place() -> None:
    (_, text) = markdown_segment("# A\n\n  text \n", trim=True, omit_empty=True)
    assert text == Segment("", 7, 11, "text")


def test_strings_keep_blanks_at_line_ends() -> None:
    assert markdown_segment("a  \nb\r\n")[0].text == "a  \nb\n"


def test_front_matter_starts_no_segment() -> None:
    segments = markdown_segment("---\ntitle: T\n# note\n---\n# A\n")
    assert [(one.tag, one.text) for one in segments] == [
        ("", "---\ntitle: T\n# note\n---\n"),
        ("h1", "# A"),
        ("", "\n"),
    ]


def test_a_frame_row_knows_the_headings_above_it() -> None:
    frame = markdown_frame("# A\n\n## B\n\nx\n\n# C\n", ["h1", "h2"], ["p"])
    assert frame.to_dict("list") == {
        "h1": ["# A", "# A", "# A", "# A", "# C"],
        "h2": [None, "## B", "## B", "## B", None],
        "tag": ["", "", "p", "", ""],
        "text": ["\n\n", "\n\n", "x", "\n\n", "\n"],
    }


def run_differs(run: Callable[[], list[tuple[str, int]]], wanted: list[tuple[str, int]]) -> bool:
    try:
        return run() != wanted
    except AssertionError:
        return True


def _without_front_matter(text: str) -> bool:
    return text.startswith("---\n")


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {name: [None if value != value else value for value in frame[name]] for name in frame.columns}


def _wanted_columns(row: Row) -> dict[str, list[Any]]:
    return {name: row["columns"][name] for name in row["column_order"]}
