"""Sentences, line breaks and graphemes, in code points, whole and line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragnar_core.chunking import Boundaries
from ragnar_core.chunking.breaks import (
    BreaksByLine,
    IntArray,
    grapheme_starts,
    line_break_starts,
    sentence_starts,
    word_starts,
)

PIECES = [
    "\n",
    "\n\n",
    "Mr. ",
    "vs. ",
    "Mr.\n",
    "End. ",
    "end.) ",
    '"Hi." ',
    "a",
    " ",
    "é",
    "日本。",
    "👩‍👧",
    "ไทย",
    "- ",
]


def test_reference_boundaries(
    golden: Callable[[str], list[dict[str, Any]]], reference_documents: dict[str, dict[str, Any]]
) -> None:
    rows = golden("boundaries")
    assert len(rows) == 166
    for row in rows:
        boundaries = Boundaries.of(reference_documents[row["doc"]]["normalized"])
        breaks = boundaries.sentences if row["type"] == "sentence" else boundaries.line_breaks
        assert (breaks.all() + 1).tolist() == [start for start in row["starts"] if start is not None], row[
            "doc"
        ]


@pytest.mark.parametrize(
    ("find", "starts"),
    [
        (sentence_starts, [0, 15]),
        (line_break_starts, [0, 4, 10, 15, 17]),
        (word_starts, [0, 2, 3, 4, 9, 10, 13, 14, 15, 16, 17, 19]),
        (grapheme_starts, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19]),
    ],
)
def test_kinds_of_boundaries(find: Callable[[str], IntArray], starts: list[int]) -> None:
    assert find("Mr. Jones ran. 🍵 E\u0301!").tolist() == starts


def test_the_empty_text_has_no_boundaries() -> None:
    assert sentence_starts("").tolist() == []


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join), st.data())
def test_lines_asked_for_one_by_one_give_the_boundaries_of_the_whole(text: str, data: st.DataObject) -> None:
    boundaries = Boundaries.of(text.encode("utf-8", "replace").decode())
    text = boundaries.document.text
    for find in (sentence_starts, line_break_starts, grapheme_starts):
        whole = find(text)
        breaks = BreaksByLine(text, boundaries.line_starts, find)
        for _ in range(3):
            position = data.draw(st.integers(0, len(text)))
            distance = data.draw(st.integers(0, 20))
            near = breaks.near(np.array([position]), np.array([float(distance)]))
            inside = whole[np.abs(whole - position) <= distance]
            assert set(inside.tolist()) <= set(near.tolist()) <= set(whole.tolist())
        assert breaks.all().tolist() == whole.tolist()
