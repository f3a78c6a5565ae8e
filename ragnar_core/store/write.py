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
from ragnar_core.store.history import forget_history, note_write
from ragnar_core.store.layout import Layout
from ragnar_core.store.postings import ChunkTerms, Ints
from ragnar_core.store.prepare import Prepared
from ragnar_core.store.schema import arrow_type, quote
from ragnar_core.store.segments import delete_postings, insert_segment, insert_terms

if TYPE_CHECKING:
    from ragnar_core.store.reading import StoreReader
    from ragnar_core.store.store import Store


@dataclass(frozen=True)
class Existing:
    """A document as the file has it: its number and its chunks' ids."""

    doc_id: int
    chunk_ids: Ints


def write_document(store: Store, document: Prepared, *, existing: Existing | None = None) -> Ints:
    """Adds a document, or puts it in the place of `existing`. Returns the new chunk ids, int64."""
    opened = store.opened
    gone = np.zeros(0, np.int64) if existing is None else existing.chunk_ids
    with opened.database.writing() as cursor:
        coder = opened.cache.term_coder(cursor)
        terms = coder.encode(document.searched)
        revision = opened.cache.revision + 1
        delete_chunks(cursor, store.layout, gone, revision)
        doc_id = _document_row(cursor, document, existing) if store.version == 2 else None
        note_write(cursor, document, doc_id, _model(store))
        chunk_ids = _chunk_numbers(cursor, store.layout, len(document))
        if len(document):
            insert_arrow(cursor, store.layout.table, _columns(store, document, doc_id, chunk_ids))
            insert_segment(cursor, revision, chunk_ids, terms)
        else:
            count_write(cursor, revision)
        unsaved = coder.unsaved()
        insert_terms(cursor, unsaved)
    coder.mark_saved(len(unsaved))
    vectors = document.vectors
    if vectors is None:
        vectors = np.zeros((len(document), store.dim), np.float32)
    opened.cache.note(Change(revision, gone, chunk_ids, np.nan_to_num(vectors), terms))
    return chunk_ids


def delete_documents(store: Store, found: Sequence[Existing]) -> int:
    """Takes documents out with all that belongs to them. Returns the number of chunks that went."""
    opened = store.opened
    gone = np.concatenate([e.chunk_ids for e in found]) if found else np.zeros(0, np.int64)
    if not found:
        return 0
    with opened.database.writing() as cursor:
        revision = opened.cache.revision + 1
        delete_chunks(cursor, store.layout, gone, revision)
        if store.version == 2:
            marks = ", ".join("?" * len(found))
            cursor.execute(f"DELETE FROM documents WHERE doc_id IN ({marks})", [e.doc_id for e in found])
            forget_history(cursor, [e.doc_id for e in found])
        count_write(cursor, revision)
    nothing = np.zeros((0, store.dim), np.float32)
    opened.cache.note(Change(revision, gone, gone[:0], nothing, ChunkTerms.join([])))
    return len(gone)


def find_existing(store: StoreReader, cursor: duckdb.DuckDBPyConnection, which: str | int) -> Existing | None:
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


def insert_arrow(cursor: duckdb.DuckDBPyConnection, table: str, columns: dict[str, pa.Array]) -> None:
    cursor.register("ragnar_rows", pa.table(columns))
    names = ", ".join(quote(name) for name in columns)
    cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM ragnar_rows")
    cursor.unregister("ragnar_rows")


def count_write(cursor: duckdb.DuckDBPyConnection, revision: int) -> None:
    """Notes a write that leaves no postings of its own behind."""
    cursor.execute("UPDATE ragnar_state SET revision = ?", [revision])


def vector_array(vectors: Floats) -> pa.Array:
    """float32 `(n, dim)` as Arrow; a row that begins with NaN (nothing to embed) is NULL."""
    n, dim = vectors.shape
    missing = np.isnan(vectors[:, 0]) if n else np.zeros(0, bool)
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    if missing.any():
        return pa.FixedSizeListArray.from_arrays(flat, dim, mask=pa.array(missing))
    return pa.FixedSizeListArray.from_arrays(flat, dim)


def _model(store: Store) -> str | None:
    config = store.embed_config or {}
    return config.get("model") or config.get("provider")


def _document_row(cursor: duckdb.DuckDBPyConnection, document: Prepared, existing: Existing | None) -> int:
    if existing is not None:
        cursor.execute("UPDATE documents SET text = ? WHERE doc_id = ?", [document.text, existing.doc_id])
        return existing.doc_id
    try:
        row = cursor.execute(
            "INSERT INTO documents (origin, text) VALUES (?, ?) RETURNING doc_id",
            [document.origin, document.text],
        ).fetchone()
    except duckdb.ConstraintException as error:
        raise StoreError(
            f"{document.origin} is in the store already; use update to replace it, or delete it first"
        ) from error
    assert row is not None
    return int(row[0])


def delete_chunks(cursor: duckdb.DuckDBPyConnection, layout: Layout, chunk_ids: Ints, revision: int) -> None:
    if not len(chunk_ids):
        return
    cursor.register("ragnar_gone", pa.table({"chunk_id": pa.array(chunk_ids)}))
    cursor.execute(f"DELETE FROM {layout.table} WHERE chunk_id IN (SELECT chunk_id FROM ragnar_gone)")
    cursor.unregister("ragnar_gone")
    delete_postings(cursor, revision, chunk_ids)


def _chunk_numbers(cursor: duckdb.DuckDBPyConnection, layout: Layout, n: int) -> Ints:
    """Ids from the file's sequence, which R uses as well."""
    if not n:
        return np.zeros(0, np.int64)
    sql = f"SELECT nextval('{layout.chunk_sequence}') AS i FROM range(?)"
    return np.asarray(cursor.execute(sql, [n]).fetchnumpy()["i"], np.int64)


def _columns(store: Store, document: Prepared, doc_id: int | None, chunk_ids: Ints) -> dict[str, Any]:
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
    return columns


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
