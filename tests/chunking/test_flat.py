"""The flat chunkers: the reference rows, and the kinds of input they take and refuse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.chunking import chunk_segments, chunk_text, flat, segment_text
from ragnar_core.errors import ChunkError

Row = dict[str, Any]
FUNCTIONS = {
    "ragnar_segment": segment_text,
    "ragnar_chunk": chunk_text,
    "ragnar_chunk_segments": chunk_segments,
}
# R turns a list of several strings into the text of an R call there.
COERCED_BY_R = {"list", "list_nosimplify", "df_list"}


def test_reference_rows(golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]) -> None:
    outcome = Counter[str]()
    for row in golden("legacy"):
        if row["fn"] == "ragnar_chunk_segments" and row["id"] in COERCED_BY_R:
            outcome["coerced by R"] += 1
            continue
        x = reference_documents[row["x_doc"]]["text"] if row["x_doc"] else _input(row)
        arguments = {**row["args"]}
        if "boundaries" in arguments:
            arguments["boundaries"] = [_boundary(one) for one in arguments["boundaries"]]
        if "error" in row:
            with pytest.raises(ChunkError):
                FUNCTIONS[row["fn"]](x, **arguments)
            outcome["refused"] += 1
            continue
        found = FUNCTIONS[row["fn"]](x, **arguments)
        assert _plain(found) == (row["result"] or []), row["id"]
        outcome["equal"] += 1
    print(f"\nlegacy.jsonl: {dict(outcome)}")
    assert outcome == {"equal": 99, "refused": 6, "coerced by R": 3}


def test_reference_cut_positions(golden: Callable[[str], list[Row]]) -> None:
    checked = 0
    for row in golden("pick_cut_positions"):
        candidates = np.unique(row["candidates"]).astype(np.int64)
        if "error" in row or not len(candidates):
            continue
        first = int(candidates[0])
        picked = flat._picked(candidates - first + 1, row["chunk_size"]) + first - 1
        assert sorted({first, *picked.tolist()}) == row["result"]
        checked += 1
    assert checked == 35


def test_a_list_of_lists_is_joined_list_by_list() -> None:
    x = [["First. ", "Second. "], ["Third. ", "Fourth. "]]
    assert chunk_segments(x, max_size=10) == ["First.", "Second.", "Third.", "Fourth."]
    assert chunk_segments(x, max_size=20, simplify=False) == [["First. Second. "], ["Third. Fourth. "]]


def test_a_table_keeps_its_other_columns() -> None:
    table = pd.DataFrame({"id": [1, 2], "text": ["One. Two.", "Three."]})
    assert segment_text(table, trim=True).to_dict("list") == {
        "id": [1, 1, 2],
        "text": ["One.", "Two.", "Three."],
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chunk_text("x", 0), "max_size must be a whole number of at least 1, not 0"),
        (lambda: chunk_text("x", boundaries="phrase"), "must be one of paragraph, sentence.*not 'phrase'"),
        (lambda: chunk_text("x", boundaries=[]), "at least one boundary"),
        (lambda: chunk_text(5), "not int"),
        (lambda: chunk_text([["a", "b"]]), "must be a string, not list"),
        (lambda: segment_text([None]), "must be a string, not NoneType"),
        (lambda: segment_text(pd.DataFrame({"body": ["x"]})), "column named text; it has body"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ChunkError, match=message):
        call()


def test_long_input_without_boundaries_is_cut_by_characters() -> None:
    pieces = chunk_text("x" * 100_000, 100)
    assert len(pieces) == 1000
    assert {len(piece) for piece in pieces[:-1]} == {101}


def _input(row: Row) -> Any:
    x = row["x"]
    if isinstance(x, dict):
        return pd.DataFrame({name: pd.Series(x["columns"][name], dtype=object) for name in x["column_order"]})
    if row["id"] == "list_in":  # an R list of single strings
        return [one for (one,) in x]
    return x


def _boundary(name: str | dict[str, str]) -> str | re.Pattern[str]:
    if isinstance(name, str):
        return name
    return re.compile(re.escape(name["fixed"]) if "fixed" in name else name["regex"])


def _plain(found: Any) -> Any:
    if not isinstance(found, pd.DataFrame):
        return found
    columns = {name: [None if _missing(value) else value for value in found[name]] for name in found.columns}
    return {"columns": columns, "column_order": list(found.columns)}


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
