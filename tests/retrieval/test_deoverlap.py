from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import chunks_deoverlap
from ragnar_core.store import Store

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
DOCUMENTS = {1: LETTERS * 5, 2: "0123456789" * 40, 3: "日本語éß" * 60}

# ragnar loses text of the outer range in these: a range that ends before the range before it.
NESTED = {
    "nested_last_shorter": [([1, 2], 1, 100)],
    "nested_then_within_outer": [([1, 2, 3], 1, 100)],
    "nested_then_beyond": [([1, 2, 3, 4], 1, 130)],
    "nested_same_start": [([1, 2], 1, 50)],
}


def golden(shared: Path) -> list[dict[str, Any]]:
    with (shared / "golden" / "deoverlap.jsonl").open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def merged(row: dict[str, Any], **options: Any) -> pd.DataFrame:
    columns = {name: row["input"].get(name, [0.5] * len(row["input"]["start"])) for name in row["columns"]}
    table = pd.DataFrame(columns, columns=row["columns"])
    table["start"] = table["start"].astype("int64") - 1
    store: Any = SimpleNamespace(version=2)
    return chunks_deoverlap(store, table, **options)


def plain(values: Any) -> Any:
    """NaN and None alike, lists in lists."""
    if isinstance(values, list):
        return [plain(value) for value in values]
    return None if isinstance(values, float) and math.isnan(values) else values


def lag_nested(row: dict[str, Any]) -> bool:
    """Whether a range ends before another one of its passage that started earlier does."""
    ranges = dict(
        zip(
            row["input"]["chunk_id"],
            zip(row["input"]["doc_id"], row["input"]["start"], row["input"]["end"], strict=True),
            strict=True,
        )
    )
    farthest: dict[int, int] = {}
    nested = False
    for doc, start, end in sorted(ranges.values(), key=lambda place: place[:2]):
        nested = nested or (start <= farthest.get(doc, 0) and end < farthest[doc])
        farthest[doc] = max(farthest.get(doc, 0), end)
    return nested


def test_it_equals_ragnar_but_for_order_and_nested_ranges(shared: Path) -> None:
    checked = 0
    for row in golden(shared):
        if "error" in row or lag_nested(row):
            continue
        found, expected = merged(row), row["output"]
        assert found.columns.tolist() == row["output_columns"]
        order = found.sort_values(["doc_id", "start"]).index
        places = sorted(range(row["nrow"]), key=lambda at: (expected["doc_id"][at], expected["start"][at]))
        for name in row["output_columns"]:
            values = (found[name] + 1 if name == "start" else found[name])[order].tolist()
            assert plain(values) == [expected[name][at] for at in places], (row["id"], name)
        checked += 1
    assert checked >= 25


def test_passages_stand_where_their_best_chunk_stood(shared: Path) -> None:
    for row in golden(shared):
        found = merged(row)
        first = {number: at for at, number in reversed(list(enumerate(row["input"]["chunk_id"])))}
        best = [min(first[number] for number in numbers) for numbers in found["chunk_id"]]
        assert best == sorted(best), row["id"]


@pytest.mark.parametrize("name", list(NESTED))
def test_a_nested_range_loses_no_text(shared: Path, name: str) -> None:
    row = next(row for row in golden(shared) if row["id"] == name)
    # The golden's texts are whole slices, so a passage's text must be the document's.
    found = merged(row)
    assert [
        (numbers, start + 1, end)
        for numbers, start, end in zip(found["chunk_id"], found["start"], found["end"], strict=True)
    ] == NESTED[name]
    for start, end, text in zip(found["start"], found["end"], found["text"], strict=True):
        assert text == DOCUMENTS[1][start:end]


def test_every_golden_keeps_all_characters_once(shared: Path) -> None:
    for row in golden(shared):
        found = merged(row)
        covered = {
            (doc, place)
            for doc, start, end in zip(
                row["input"]["doc_id"], row["input"]["start"], row["input"]["end"], strict=True
            )
            for place in range(start - 1, end)
        }
        places = [
            (doc, place)
            for doc, start, end in zip(found["doc_id"], found["start"], found["end"], strict=True)
            for place in range(start, end)
        ]
        assert len(places) == len(covered), row["id"]
        assert set(places) == covered, row["id"]


def test_no_rows_give_no_rows(shared: Path) -> None:
    row = next(row for row in golden(shared) if row["id"] == "zero_rows")
    found = merged(row)
    assert len(found) == 0
    assert found.columns.tolist() == row["columns"]


def chunk(number: int, doc: int, start: int, end: int) -> dict[str, Any]:
    text = DOCUMENTS[doc][start:end]
    return {
        "chunk_id": number,
        "doc_id": doc,
        "origin": f"d{doc}",
        "start": start,
        "end": end,
        "context": f"# {number}",
        "text": text,
        "bm25": float(number),
    }


def test_relevance_order_and_touching_ranges() -> None:
    ranked = pd.DataFrame(
        [chunk(2, 1, 50, 150), chunk(9, 2, 0, 30), chunk(1, 1, 0, 100), chunk(3, 1, 150, 200)]
    )
    store: Any = SimpleNamespace(version=2)
    found = chunks_deoverlap(store, ranked)
    assert found["chunk_id"].tolist() == [[1, 2], [9], [3]]
    assert found["text"][0] == DOCUMENTS[1][0:150]
    assert found["context"].tolist() == ["# 1", "# 9", "# 3"]
    assert found["bm25"].tolist() == [[1.0, 2.0], [9.0], [3.0]]
    touching = chunks_deoverlap(store, ranked, touching=True)
    assert touching["chunk_id"].tolist() == [[1, 2, 3], [9]]
    assert touching["text"][0] == DOCUMENTS[1][0:200]


def test_texts_that_are_not_their_ranges_come_from_the_document(make_store: Callable[..., Store]) -> None:
    store = make_store({"d": ["apple banana cherry"]})
    short = store.chunks().assign(text="apple…")
    twice = pd.concat([short, short.assign(chunk_id=2, start=3)], ignore_index=True)
    assert chunks_deoverlap(store, twice)["text"].tolist() == ["apple banana cherry"]


def test_version_1_and_foreign_tables_are_errors(make_store: Callable[..., Store]) -> None:
    old = make_store({"d": ["apple"]}, version=1)
    with pytest.raises(RetrievalError, match="version 1"):
        chunks_deoverlap(old, old.chunks())
    store: Any = SimpleNamespace(version=2)
    with pytest.raises(RetrievalError, match="the columns start, end are needed"):
        chunks_deoverlap(store, pd.DataFrame({"doc_id": [1], "chunk_id": [1]}))
