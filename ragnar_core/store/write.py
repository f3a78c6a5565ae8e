"""One document into the file, out of it, or replaced: everything that belongs to it in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from ragnar_core.errors import StoreError
from ragnar_core.store.cache import Change, Floats
from ragnar_core.store.postings import ChunkTerms, Ints
from ragnar_core.store.prepare import Prepared
from ragnar_core.store.schema import Layout, arrow_type, quote

if TYPE_CHECKING:
    from ragnar_core.store.store import Store


@dataclass(frozen=True)
class Existing:
    """A document as the file has it: its number and its chunks' ids."""

    doc_id: int
    chunk_ids: Ints


def write_document(store: Store, document: Prepared, *, existing: Existing | None = None) -> Ints:
    """Adds a document, or puts it in the place of `existing`. Returns the new chunk ids, int64."""
    opened = store.opened
    with opened.database.writing() as cursor:
        coder = opened.cache.term_coder(cursor)
        terms = coder.encode(document.searched)
        if existing is None and document.origin is not None and store.version == 2:
            _refuse_twice(cursor, document.origin)
        gone = np.zeros(0, np.int64) if existing is None else existing.chunk_ids
        _delete_chunks(cursor, store.layout, gone)
        chunk_ids, doc_id = _numbers(cursor, store.layout, len(document), new_document=existing is None)
        if store.version == 2:
            if existing is None:
                cursor.execute(
                    "INSERT INTO documents VALUES (?, ?, ?)", [doc_id, document.origin, document.text]
                )
            else:
                doc_id = existing.doc_id
                cursor.execute("UPDATE documents SET text = ? WHERE doc_id = ?", [document.text, doc_id])
        _insert_chunks(cursor, store, document, doc_id, chunk_ids)
        insert_postings(cursor, chunk_ids, terms)
        unsaved = coder.unsaved()
        _insert_terms(cursor, unsaved)
        revision = _count(cursor, len(document) - len(gone), chunk_ids)
    coder.mark_saved(len(unsaved))
    vectors = (
        document.vectors if document.vectors is not None else np.zeros((len(document), store.dim), np.float32)
    )
    opened.cache.note(Change(revision, gone, chunk_ids, np.nan_to_num(vectors), terms))
    return chunk_ids


def delete_documents(store: Store, found: Sequence[Existing]) -> int:
    """Takes documents out with all that belongs to them. Returns the number of chunks that went."""
    opened = store.opened
    gone = np.concatenate([e.chunk_ids for e in found]) if found else np.zeros(0, np.int64)
    if not found:
        return 0
    with opened.database.writing() as cursor:
        _delete_chunks(cursor, store.layout, gone)
        if store.version == 2:
            marks = ", ".join("?" * len(found))
            cursor.execute(f"DELETE FROM documents WHERE doc_id IN ({marks})", [e.doc_id for e in found])
        revision = _count(cursor, -len(gone), gone[:0])
    nothing = np.zeros((0, store.dim), np.float32)
    opened.cache.note(Change(revision, gone, gone[:0], nothing, ChunkTerms.join([])))
    return len(gone)


def find_existing(store: Store, cursor: duckdb.DuckDBPyConnection, which: str | int) -> Existing | None:
    """The document with an origin or a number, if the store has it."""
    if store.version == 1:
        where, value = ("origin = ?", which) if isinstance(which, str) else ("chunk_id = ?", which)
        rows = cursor.execute(
            f"SELECT chunk_id FROM chunks WHERE {where} ORDER BY chunk_id", [value]
        ).fetchall()
        if isinstance(which, int) and rows:
            origin = cursor.execute("SELECT origin FROM chunks WHERE chunk_id = ?", [which]).fetchone()
            if origin and origin[0] is not None:
                return find_existing(store, cursor, origin[0])
        if not rows:
            return None
        ids = np.array([row[0] for row in rows], np.int64)
        return Existing(int(ids[0]), ids)
    column = "origin" if isinstance(which, str) else "doc_id"
    found = cursor.execute(f"SELECT doc_id FROM documents WHERE {column} = ?", [which]).fetchone()
    if found is None:
        return None
    rows = cursor.execute(
        "SELECT chunk_id FROM embeddings WHERE doc_id = ? ORDER BY chunk_id", [found[0]]
    ).fetchall()
    return Existing(int(found[0]), np.array([row[0] for row in rows], np.int64))


def insert_postings(cursor: duckdb.DuckDBPyConnection, chunk_ids: Ints, terms: ChunkTerms) -> None:
    if not len(chunk_ids):
        return
    offsets = pa.array(terms.indptr.astype(np.int32))
    insert_arrow(
        cursor,
        "ragnar_postings",
        {
            "chunk_id": pa.array(chunk_ids.astype(np.int32)),
            "length": pa.array(terms.lengths),
            "term_ids": pa.ListArray.from_arrays(offsets, pa.array(terms.term_ids)),
            "tfs": pa.ListArray.from_arrays(offsets, pa.array(terms.tfs)),
        },
    )


def insert_arrow(cursor: duckdb.DuckDBPyConnection, table: str, columns: dict[str, pa.Array]) -> None:
    cursor.register("ragnar_rows", pa.table(columns))
    names = ", ".join(quote(name) for name in columns)
    cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM ragnar_rows")
    cursor.unregister("ragnar_rows")


def vector_array(vectors: Floats) -> pa.Array:
    """float32 `(n, dim)` as Arrow; a row that begins with NaN (nothing to embed) is NULL."""
    n, dim = vectors.shape
    missing = np.isnan(vectors[:, 0]) if n else np.zeros(0, bool)
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    if missing.any():
        return pa.FixedSizeListArray.from_arrays(flat, dim, mask=pa.array(missing))
    return pa.FixedSizeListArray.from_arrays(flat, dim)


def _refuse_twice(cursor: duckdb.DuckDBPyConnection, origin: str) -> None:
    if cursor.execute("SELECT 1 FROM documents WHERE origin = ?", [origin]).fetchone():
        raise StoreError(f"{origin} is in the store already; use update to replace it, or delete it first")


def _delete_chunks(cursor: duckdb.DuckDBPyConnection, layout: Layout, chunk_ids: Ints) -> None:
    if not len(chunk_ids):
        return
    cursor.register("ragnar_gone", pa.table({"chunk_id": pa.array(chunk_ids)}))
    for table in (layout.table, "ragnar_postings"):
        cursor.execute(f"DELETE FROM {table} WHERE chunk_id IN (SELECT chunk_id FROM ragnar_gone)")
    cursor.unregister("ragnar_gone")


def _numbers(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, n: int, *, new_document: bool
) -> tuple[Ints, int | None]:
    """Chunk ids and a document's number from the file's sequences, which R uses as well."""
    doc_id = None
    if new_document and layout.doc_sequence:
        row = cursor.execute(f"SELECT nextval('{layout.doc_sequence}')").fetchone()
        assert row is not None
        doc_id = int(row[0])
    ids = cursor.execute(f"SELECT nextval('{layout.chunk_sequence}') AS i FROM range(?)", [n]).fetchnumpy()[
        "i"
    ]
    return np.asarray(ids, np.int64), doc_id


def _insert_chunks(
    cursor: duckdb.DuckDBPyConnection, store: Store, document: Prepared, doc_id: int | None, chunk_ids: Ints
) -> None:
    if not len(document):
        return
    table = document.table
    columns: dict[str, Any] = {"chunk_id": pa.array(chunk_ids.astype(np.int32))}
    if store.version == 2:
        columns["doc_id"] = pa.array(np.full(len(document), doc_id, np.int32))
        columns["start"] = pa.array(table["start"].to_numpy(dtype=np.int64).astype(np.int32) + 1)
        columns["end"] = pa.array(table["end"].to_numpy(dtype=np.int64).astype(np.int32))
        columns["context"] = pa.array(table["context"].tolist(), pa.string())
    else:
        columns["origin"] = pa.array([document.origin] * len(document), pa.string())
        columns["hash"] = pa.array([document.hash] * len(document), pa.string())
        columns["text"] = pa.array(table["text"].tolist(), pa.string())
    for name, kind in store.extra_cols.items():
        if name in table:
            columns[name] = _extra(table[name], name, kind)
        elif store.version == 1:
            raise StoreError(
                f"the chunks have no column {name!r}, which this store needs; add it (it may be empty)"
            )
    if store.dim and document.vectors is not None:
        columns["embedding"] = vector_array(document.vectors)
    insert_arrow(cursor, store.layout.table, columns)


def _extra(values: pd.Series, name: str, kind: str) -> pa.Array:
    wanted = arrow_type(kind)
    try:
        return pa.array(values.tolist(), wanted, from_pandas=True)
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        OverflowError,
        TypeError,
    ) as error:
        raise StoreError(
            f"the column {name!r} does not fit its type {kind}: {str(error).splitlines()[0]}"
        ) from error


def _insert_terms(cursor: duckdb.DuckDBPyConnection, terms: Sequence[tuple[int, str]]) -> None:
    if terms:
        numbers, words = zip(*terms, strict=True)
        insert_arrow(
            cursor,
            "ragnar_terms",
            {"term_id": pa.array(numbers, pa.int32()), "term": pa.array(words, pa.string())},
        )


def _count(cursor: duckdb.DuckDBPyConnection, change: int, new_ids: Ints) -> int:
    last = int(new_ids[-1]) if len(new_ids) else 0
    row = cursor.execute(
        "UPDATE ragnar_state SET revision = revision + 1, chunks = chunks + ?, "
        "last_chunk_id = greatest(last_chunk_id, ?) RETURNING revision",
        [change, last],
    ).fetchone()
    assert row is not None
    return int(row[0])
