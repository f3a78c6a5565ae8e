"""Data frames of chunks: ranges, vectors and typed columns as they come from other stores and from pandas."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragnar_core import MarkdownDocument, Store, StoreError, markdown_chunk, retrieve_bm25
from ragnar_core.retrieval import Selection

WORDS = "# T\n\n" + " ".join(f"w{number}" for number in range(300))


def ones(count: int) -> np.ndarray:
    return np.ones((count, 2), np.float32)


def fresh(**options) -> Store:
    return Store.create(":memory:", embedding_size=2, **options)


def test_chunks_of_one_store_go_into_another_as_they_are() -> None:
    one, other = fresh(), fresh()
    chunks = markdown_chunk(MarkdownDocument(WORDS, "a.md"), target_size=300)
    one.insert(chunks, vectors=ones(len(chunks.table)))
    table = one.chunks()
    other.insert(table, vectors=ones(len(table)))
    columns = ["origin", "start", "end", "context", "text"]
    pd.testing.assert_frame_equal(other.chunks()[columns], table[columns])
    assert other.document("a.md").text == WORDS
    third = fresh()
    third.insert(chunks.table.assign(origin="a.md").iloc[::-1], vectors=ones(len(table)))
    assert third.document("a.md").text == WORDS
    assert sorted(third.chunks()["start"]) == table["start"].tolist()
    lengths = [
        retrieve_bm25(store, "w50", top_k=2, selection=Selection(deoverlap=True))["text"].str.len().tolist()
        for store in (one, other)
    ]
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize(
    ("ranges", "texts", "document", "starts"),
    [
        ([(0, 2), (2, 4)], ["ab", "cd"], "abcd", [0, 2]),
        ([(0, 2), (4, 6)], ["ab", "cd"], "ab\n\ncd", [0, 4]),
        ([(0, 2), (900, 902)], ["ab", "cd"], "ab\n\ncd", [0, 4]),
        ([(50, 54), (52, 56), (80, 81)], ["abcd", "cdef", "z"], "abcdef\n\nz", [0, 2, 8]),
        ([(0, 6), (2, 4)], ["abcdef", "cd"], "abcdef", [0, 2]),
        ([(4, 6), (0, 5)], ["e𝄞", "äbcde"], "äbcde𝄞", [4, 0]),
    ],
)
def test_ranges_lay_the_texts_out(ranges, texts, document, starts) -> None:
    store = fresh()
    frame = pd.DataFrame(ranges, columns=["start", "end"]).assign(text=texts, origin="a")
    store.insert(frame, vectors=ones(len(texts)))
    assert store.document("a").text == document
    assert store.chunks()["start"].tolist() == starts
    assert store.chunks()["text"].tolist() == texts


@pytest.mark.parametrize("ranges", [[(0, 3), (3, 5)], [(0, 2), (1, 3)], [(-1, 1), (1, 3)], [(5, 3), (3, 5)]])
def test_ranges_that_do_not_fit_are_refused_and_nothing_is_stored(ranges) -> None:
    store = fresh()
    frame = pd.DataFrame(ranges, columns=["start", "end"]).assign(text=["ab", "cd"], origin="a")
    with pytest.raises(StoreError, match=r"start and end of row \d of a do not fit .* drop both columns"):
        store.insert(frame, vectors=ones(2))
    assert store.counts().documents == 0
    store.insert(frame.drop(columns=["start", "end"]), vectors=ones(2))
    assert store.document("a").text == "ab\n\ncd"


def test_missing_ranges_and_texts_without_origin_stand_by_themselves() -> None:
    store = fresh()
    frame = pd.DataFrame({"text": ["ab", "cd"], "origin": "a", "start": [0, None], "end": [2, None]})
    store.insert(frame, vectors=ones(2))
    assert store.document("a").text == "ab\n\ncd"
    store.insert(pd.DataFrame({"text": ["xy"], "start": [7], "end": [9]}), vectors=ones(1))
    assert store.chunks()["start"].tolist() == [0, 4, 0]


def test_a_text_does_not_come_with_a_vector_of_nothing() -> None:
    store = fresh()
    vectors = ones(3)
    vectors[1] = np.nan
    with pytest.raises(StoreError, match="text 2 of 3 comes with a vector that is all NaN"):
        store.insert(pd.DataFrame({"text": ["a", "b", "c"], "origin": "a"}), vectors=vectors)
    assert store.counts().chunks == 0
    store.insert(pd.DataFrame({"text": ["a", "  ", "c"], "origin": "a"}), vectors=vectors)
    assert store.counts().chunks == 3


def test_prices_of_a_data_frame_fit_a_decimal_column() -> None:
    store = fresh(extra_cols={"price": "DECIMAL(9,2)"})
    frame = pd.DataFrame({"text": ["a", "b", "c"], "origin": "a", "price": [0.1, 1.15, None]})
    store.insert(frame, vectors=ones(3))
    assert store.chunks()["price"].tolist() == [Decimal("0.10"), Decimal("1.15"), None]
    with pytest.raises(StoreError, match="'price' does not fit its type DECIMAL"):
        store.insert(pd.DataFrame({"text": ["a"], "origin": "b", "price": [1e9]}), vectors=ones(1))


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PAR1", b"x", b"\0" * 5000])
def test_another_kind_of_file_is_never_taken_for_a_store(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    for attempt in (
        lambda: Store.connect(path),
        lambda: Store.connect(path, read_only=False),
        lambda: Store.create(path, embedding_size=2, overwrite=True),
    ):
        with pytest.raises(StoreError, match="is not a DuckDB file"):
            attempt()
    assert path.read_bytes() == content
