"""Documents into the file, out of it, or replaced: everything that belongs to one in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from ragnar_core.errors import StoreError
from ragnar_core.store.cache import Change, Floats
from ragnar_core.store.connection import execute_parsed
from ragnar_core.store.history import forget_history, note_writes
from ragnar_core.store.layout import Layout
from ragnar_core.store.postings import ChunkTerms, Ints, TermCoder
from ragnar_core.store.prepare import Prepared
from ragnar_core.store.schema import arrow_type, quote
from ragnar_core.store.segments import delete_postings, insert_segments, insert_terms

if TYPE_CHECKING:
    from ragnar_core.store.opened import Opened
    from ragnar_core.store.reading import StoreReader
    from ragnar_core.store.store import Store


@dataclass(frozen=True)
class Existing:
    """A document as the file has it: its number and its chunks' ids."""

    doc_id: int
    chunk_ids: Ints


def write_document(store: Store, document: Prepared, *, existing: Existing | None = None) -> Ints:
    """Adds a document, or puts it in the place of `existing`. Returns the new chunk ids, int64."""
    return _write(store, [document], existing)


def write_documents(store: Store, documents: Sequence[Prepared]) -> Ints:
    """Adds documents in one transaction: all of them or none. Returns the new chunk ids, int64."""
    return _write(store, documents, None) if documents else np.zeros(0, np.int64)


def _write(store: Store, documents: Sequence[Prepared], existing: Existing | None) -> Ints:
    opened = store.opened
    sizes = [len(document) for document in documents]
    vectors = _vectors(store, documents)
    gone = np.zeros(0, np.int64) if existing is None else existing.chunk_ids
    with opened.database.writing(short=existing is None) as cursor:
        coder = opened.cache.term_coder(cursor)
        terms = ChunkTerms.join([_terms(coder, document, store.version) for document in documents])
        revision = opened.cache.revision + 1
        delete_chunks(cursor, store.layout, gone, revision)
        doc_ids, chunk_ids = _numbers(cursor, store.layout, 0 if existing else len(documents), sum(sizes))
        if existing is not None:
            doc_ids = np.array([existing.doc_id])
        if store.version == 2:
            _document_rows(cursor, documents, doc_ids, replace=existing is not None)
        numbers = doc_ids.tolist() if store.version == 2 else [None] * len(documents)
        note_writes(cursor, documents, numbers, _model(store))
        if len(chunk_ids):
            groups = np.repeat(np.arange(len(documents)), sizes)
            _insert_chunks(cursor, opened, _columns(store, documents, vectors, doc_ids, chunk_ids, groups))
            insert_segments(cursor, revision, chunk_ids, terms, groups)
        else:
            count_write(cursor, revision)
        unsaved = coder.unsaved()
        insert_terms(cursor, unsaved)
    coder.mark_saved(len(unsaved))
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


def _terms(coder: TermCoder, document: Prepared, version: int) -> ChunkTerms:
    if version == 1:
        return coder.encode(document.searched)
    return coder.encode_ranges(document.text, document.starts, document.ends, document.contexts)


def _document_rows(
    cursor: duckdb.DuckDBPyConnection, documents: Sequence[Prepared], doc_ids: Ints, *, replace: bool
) -> None:
    if replace:
        cursor.execute("UPDATE documents SET text = ? WHERE doc_id = ?", [documents[0].text, int(doc_ids[0])])
        return
    for document, doc_id in zip(documents, doc_ids.tolist(), strict=True):
        try:
            execute_parsed(
                cursor,
                "INSERT INTO documents (doc_id, origin, text) VALUES (?, ?, ?)",
                [doc_id, document.origin, document.text],
            )
        except duckdb.ConstraintException as error:
            raise StoreError(
                f"{document.origin} is in the store already; use update to replace it, or delete it first"
            ) from error


def delete_chunks(cursor: duckdb.DuckDBPyConnection, layout: Layout, chunk_ids: Ints, revision: int) -> None:
    if not len(chunk_ids):
        return
    cursor.register("ragnar_gone", pa.table({"chunk_id": pa.array(chunk_ids)}))
    cursor.execute(f"DELETE FROM {layout.table} WHERE chunk_id IN (SELECT chunk_id FROM ragnar_gone)")
    cursor.unregister("ragnar_gone")
    delete_postings(cursor, revision, chunk_ids)


def _numbers(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, documents: int, chunks: int
) -> tuple[Ints, Ints]:
    """New document and chunk ids from the file's sequences, which R uses as well."""
    wanted = [(layout.doc_sequence, documents), (layout.chunk_sequence, chunks)]
    wanted = [(sequence, count) for sequence, count in wanted if sequence and count]
    if not wanted:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sql = " UNION ALL ".join(f"SELECT nextval('{sequence}') FROM range(?)" for sequence, _ in wanted)
    rows = execute_parsed(cursor, sql, [count for _, count in wanted]).fetchall()
    numbers = np.array(rows, np.int64)[:, 0]
    return numbers[: len(numbers) - chunks], numbers[len(numbers) - chunks :]


def _vectors(store: Store, documents: Sequence[Prepared]) -> Floats:
    parts = [
        np.zeros((len(document), store.dim), np.float32) if document.vectors is None else document.vectors
        for document in documents
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _columns(
    store: Store,
    documents: Sequence[Prepared],
    vectors: Floats,
    doc_ids: Ints,
    chunk_ids: Ints,
    groups: Ints,
) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {"chunk_id": pa.array(chunk_ids.astype(np.int32))}
    if store.version == 2:
        columns["doc_id"] = pa.array(doc_ids.astype(np.int32)[groups])
        starts = np.concatenate([document.starts for document in documents])
        columns["start"] = pa.array(starts.astype(np.int32) + 1)
        columns["end"] = pa.array(np.concatenate([document.ends for document in documents]).astype(np.int32))
        columns["context"] = pa.array([c for document in documents for c in document.contexts], pa.string())
    else:
        columns["origin"] = pa.array([documents[i].origin for i in groups.tolist()], pa.string())
        columns["hash"] = pa.array([documents[i].hash for i in groups.tolist()], pa.string())
        columns["text"] = pa.array([text for document in documents for text in document.texts], pa.string())
    for name, kind in store.extra_cols.items():
        given = [name in document.extra for document in documents]
        if store.version == 1 and not all(given):
            raise StoreError(
                f"the chunks have no column {name!r}, which this store needs; add it (it may be empty)"
            )
        if any(given):
            values = [v for d in documents for v in d.extra.get(name, [None] * len(d))]
            columns[name] = _extra(values, name, kind)
    if store.dim:
        columns["embedding"] = vector_array(vectors)
    return columns


class _Rows:
    """Arrow columns as the C stream of a table and nothing else: from a pyarrow table DuckDB goes through pyarrow's
    scanner, which takes longer than the insert of a document's rows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _insert_chunks(cursor: duckdb.DuckDBPyConnection, opened: Opened, columns: dict[str, pa.Array]) -> None:
    """Appends without a statement to parse where all columns of the table are there."""
    if set(columns) == set(opened.chunk_columns):
        rows = pa.table({name: columns[name] for name in opened.chunk_columns})
        cursor.from_arrow(_Rows(rows)).insert_into(opened.layout.table)
    else:
        insert_arrow(cursor, opened.layout.table, columns)


def _extra(values: list[Any], name: str, kind: str) -> pa.Array:
    wanted = arrow_type(kind)
    try:
        if pa.types.is_decimal(wanted):
            # A data frame's prices are floats: the shortest writing of one is what was meant.
            values = [Decimal(repr(value)) if isinstance(value, float) else value for value in values]
        return pa.array(values, wanted, from_pandas=True)
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
