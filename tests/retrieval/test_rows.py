"""The texts of a result list, read through the ranges in memory or from the file: always the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragnar_core.chunking import markdown_chunk
from ragnar_core.documents import MarkdownDocument
from ragnar_core.retrieval import retrieve_bm25, rows
from ragnar_core.retrieval.rows import fetch_rows
from ragnar_core.store import Store, ranges
from ragnar_core.store.ranges import chunk_ranges


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "s.duckdb", embedding_size=2, extra_cols={"year": "INTEGER"}) as made:
        for name, text in (("a", "ab cd ef"), ("é", "äö üß €𝄞")):
            table = pd.DataFrame(
                {"origin": name, "text": text.split(" "), "context": ["", "# H", ""], "year": [1, None, 3]}
            )
            made.insert(table, vectors=np.eye(2, dtype=np.float32)[[0, 1, 0]])
        yield made


def texts(store: Store, *ids: int) -> list[str]:
    return list(fetch_rows(store, np.array(ids))["text"])


def test_the_same_rows_from_file_and_memory(store: Store) -> None:
    wanted = np.array([6, 1, 99, 5, 2])
    expected = store.fetch(wanted)
    assert expected["text"].tolist() == ["€𝄞", "ab", "üß", "cd"]
    for known in (False, True, True):
        assert (chunk_ranges(store.opened) is not None) is known
        found = pd.DataFrame(fetch_rows(store, wanted))
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
        assert found["context"].tolist() == ["", "", "# H", "# H"]
        assert found["year"].tolist()[:2] == [3, 1]
        assert found["year"].isna().tolist() == [False, False, True, True]


def test_a_write_is_seen_at_once(store: Store) -> None:
    for _ in range(3):
        assert texts(store, 1, 4) == ["ab", "äö"]
    store.delete("a")
    assert texts(store, 1, 4) == ["äö"]
    store.insert(pd.DataFrame({"origin": ["b"], "text": ["new"]}), vectors=[[1, 0]])
    for _ in range(3):
        assert texts(store, 7, 1, 4) == ["new", "äö"]
        assert retrieve_bm25(store, "new")["text"].tolist() == ["new"]


def test_a_write_during_the_lookup_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        texts(store, 1)
    known = chunk_ranges(store.opened)
    assert known is not None
    real, calls = rows._columns, []

    def write_first(*arguments):
        calls.append(1)
        if len(calls) == 1:
            store.delete("a")
            store.insert(pd.DataFrame({"origin": ["a"], "text": ["other"]}), vectors=[[1, 0]])
        return real(*arguments)

    monkeypatch.setattr(rows, "_columns", write_first)
    assert texts(store, 1, 2, 4, 7) == ["äö", "other"]
    assert len(calls) == 2
    assert not known.still_hold()


def test_no_ranges_while_a_commit_is_under_way(store: Store) -> None:
    for _ in range(2):
        chunk_ranges(store.opened)
    assert chunk_ranges(store.opened) is not None
    with store.opened.database._committing():
        assert chunk_ranges(store.opened) is None
        assert texts(store, 1) == ["ab"]
    assert chunk_ranges(store.opened) is None


def test_a_transaction_that_fails_leaves_an_even_count(store: Store) -> None:
    before = store.opened.database.commits
    with pytest.raises(Exception, match="already"):
        store.insert(pd.DataFrame({"origin": ["a"], "text": ["again"]}), vectors=[[1, 0]])
    assert store.opened.database.commits % 2 == 0
    assert texts(store, 1) == ["ab"]
    assert before % 2 == 0


def test_a_table_too_large_for_memory_is_read_from_the_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "MOST_BYTES", 10)
    for _ in range(4):
        assert texts(store, 2, 6) == ["cd", "€𝄞"]
        assert chunk_ranges(store.opened) is None


def test_an_empty_store(tmp_path: Path) -> None:
    with Store.create(tmp_path / "e.duckdb", embedding_size=2) as empty:
        for _ in range(3):
            assert texts(empty, 1, 2) == []


def test_long_documents_are_sliced_by_characters(tmp_path: Path) -> None:
    document = MarkdownDocument("Äpfel 𝄞 und Birnen. " * 500, "long")
    with Store.create(tmp_path / "l.duckdb", embedding_size=2) as made:
        chunks = markdown_chunk(document, target_size=300)
        made.insert(chunks, vectors=np.ones((len(chunks.table), 2), np.float32))
        ids = made.chunks()["chunk_id"].to_numpy()[::-7]
        for _ in range(3):
            assert texts(made, *ids) == [
                document.text[a:b]
                for a, b in zip(made.fetch(ids)["start"], made.fetch(ids)["end"], strict=True)
            ]
