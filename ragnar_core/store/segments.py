"""Postings and terms in the file: a row a write, deleted and replaced with the chunks they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragnar_core.store.connection import execute_parsed
from ragnar_core.store.postings import ChunkTerms, Ints

# A list column would do, but DuckDB writes all earlier lists of the row group into its log with each transaction.
_COLUMNS = ("chunk_ids", "lengths", "sizes", "term_ids", "tfs")
_KINDS = {"chunk_ids": "<u4", "lengths": "<i4", "sizes": "<i4", "term_ids": "<i4", "tfs": "<u2"}
_MOST = 0xFFFF


def insert_segment(
    cursor: duckdb.DuckDBPyConnection, revision: int, chunk_ids: Ints, terms: ChunkTerms
) -> None:
    """Postings of chunks (ids ascending) that were written together."""
    if not len(chunk_ids):
        return
    packed = [part.tobytes() for part in _packed(chunk_ids, terms)]
    execute_parsed(
        cursor,
        "INSERT INTO ragnar_postings VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [int(chunk_ids[0]), int(chunk_ids[-1]), revision, *packed],
    )


def insert_segments(
    cursor: duckdb.DuckDBPyConnection, revision: int, chunk_ids: Ints, terms: ChunkTerms, groups: Ints
) -> None:
    """Postings of many documents: chunks of one group (numbers that come in runs) are one row."""
    if not len(chunk_ids):
        return
    if groups[0] == groups[-1]:
        insert_segment(cursor, revision, chunk_ids, terms)
        return
    bounds = np.concatenate([np.flatnonzero(np.diff(groups, prepend=groups[0] - 1)), [len(groups)]])
    starts, stops = bounds[:-1], bounds[1:]
    columns: dict[str, Any] = {
        "first_chunk_id": pa.array(chunk_ids[starts].astype(np.int32)),
        "last_chunk_id": pa.array(chunk_ids[stops - 1].astype(np.int32)),
        "revision": pa.array(np.full(len(starts), revision, np.int64)),
    }
    for name, numbers in zip(_COLUMNS, _packed(chunk_ids, terms), strict=True):
        cuts = bounds if name in ("chunk_ids", "lengths", "sizes") else terms.indptr[bounds]
        offsets = (cuts * numbers.itemsize).astype(np.int64)
        columns[name] = pa.Array.from_buffers(
            pa.large_binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(numbers)]
        )
    cursor.register("ragnar_rows", pa.table(columns))
    cursor.execute("INSERT INTO ragnar_postings SELECT * FROM ragnar_rows")
    cursor.unregister("ragnar_rows")


def read_segments(cursor: duckdb.DuckDBPyConnection, where: str = "") -> tuple[Ints, ChunkTerms]:
    """(chunk ids ascending, their postings) as the file has them."""
    table = cursor.execute(f"SELECT {', '.join(_COLUMNS)} FROM ragnar_postings {where}").to_arrow_table()
    numbers = {name: _numbers(table[name], _KINDS[name]) for name in _COLUMNS}
    del table
    ids = numbers["chunk_ids"].astype(np.int64)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers["sizes"], dtype=np.int64)])
    terms = ChunkTerms(
        numbers["lengths"].astype(np.int32, copy=False),
        indptr,
        numbers["term_ids"].astype(np.int32, copy=False),
        numbers["tfs"].astype(np.int32),
    )
    if len(ids) and np.any(np.diff(ids) <= 0):
        order = np.argsort(ids, kind="stable")
        ids, terms = ids[order], terms.take(order)
    return ids, terms


def indexed_ids(cursor: duckdb.DuckDBPyConnection) -> Ints:
    """Ids of the chunks that the file has postings of, int64 ascending."""
    column = cursor.execute("SELECT chunk_ids FROM ragnar_postings").to_arrow_table()["chunk_ids"]
    return np.sort(_numbers(column, "<u4").astype(np.int64))


def delete_postings(cursor: duckdb.DuckDBPyConnection, revision: int, gone: Ints) -> None:
    """Takes chunks out of the postings; a row that other chunks share is written anew without them."""
    if not len(gone):
        return
    low, high = int(gone.min()), int(gone.max())
    where = f"WHERE last_chunk_id >= {low} AND first_chunk_id <= {high}"
    rows = cursor.execute(f"SELECT rowid, chunk_ids FROM ragnar_postings {where}").fetchall()
    touched, kept = [], False
    for row, packed in rows:
        dead = np.isin(np.frombuffer(packed, "<u4"), gone)
        if dead.any():
            touched.append(row)
            kept = kept or not dead.all()
    if not touched:
        return
    listed = ", ".join(map(str, touched))
    if kept:
        ids, terms = read_segments(cursor, f"WHERE rowid IN ({listed})")
        stay = np.flatnonzero(~np.isin(ids, gone))
        insert_segment(cursor, revision, ids[stay], terms.take(stay))
    cursor.execute(f"DELETE FROM ragnar_postings WHERE rowid IN ({listed})")


def insert_terms(cursor: duckdb.DuckDBPyConnection, terms: Sequence[tuple[int, str]]) -> None:
    if terms:
        words = "\n".join(term for _, term in terms)
        execute_parsed(cursor, "INSERT INTO ragnar_terms VALUES (?, ?)", [terms[0][0], words])


def read_terms(cursor: duckdb.DuckDBPyConnection) -> dict[str, int]:
    blocks = cursor.execute("SELECT terms FROM ragnar_terms ORDER BY first_term_id").fetchall()
    words = [word for (block,) in blocks for word in block.split("\n")]
    return {word: number for number, word in enumerate(words)}


def _packed(chunk_ids: Ints, terms: ChunkTerms) -> tuple[NDArray[Any], ...]:
    counts = np.minimum(terms.tfs, _MOST)
    arrays: tuple[NDArray[Any], ...] = (
        chunk_ids,
        terms.lengths,
        np.diff(terms.indptr),
        terms.term_ids,
        counts,
    )
    return tuple(np.ascontiguousarray(a, _KINDS[name]) for name, a in zip(_COLUMNS, arrays, strict=True))


def _numbers(column: pa.ChunkedArray, kind: str) -> NDArray[Any]:
    """All numbers of a column of packed ones, behind each other."""
    parts = [np.zeros(0, kind)]
    for part in column.chunks:
        whole = part.cast(pa.large_binary())
        _, offsets, data = whole.buffers()
        if data is not None and len(whole):
            ends = np.frombuffer(offsets, np.int64)
            parts.append(
                np.frombuffer(data, np.uint8)[ends[whole.offset] : ends[whole.offset + len(whole)]].view(kind)
            )
    return np.concatenate(parts)
