"""What the store doctor does about its findings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from ragnar_core.errors import StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.ann import build_graph, delete_graph
from ragnar_core.store.cache import load_vectors
from ragnar_core.store.connection import STORAGE_VERSION, create_file
from ragnar_core.store.index import drop_hnsw, embed_missing_vectors, ids_of, index_missing
from ragnar_core.store.postings import Ints
from ragnar_core.store.write import Existing, count_write, delete_chunks, delete_documents

if TYPE_CHECKING:
    from ragnar_core.store.store import Store


def orphan_chunks(cursor: duckdb.DuckDBPyConnection, store: Store) -> Ints:
    return ids_of(cursor, f"SELECT chunk_id FROM {store.layout.table} ANTI JOIN documents USING (doc_id)")


def outside_ranges(cursor: duckdb.DuckDBPyConnection, store: Store) -> Ints:
    return ids_of(
        cursor,
        f"SELECT chunk_id FROM {store.layout.table} e JOIN documents d USING (doc_id) WHERE e.start IS NULL "
        'OR e."end" IS NULL OR e.start < 1 OR e."end" < e.start OR e."end" > length(d.text)',
    )


def copies(cursor: duckdb.DuckDBPyConnection, store: Store) -> list[tuple[int, str | None]]:
    return cursor.execute(
        "SELECT doc_id, origin FROM (SELECT doc_id, origin, row_number() OVER (PARTITION BY md5(text), length(text) "
        "ORDER BY doc_id) AS nth FROM documents) WHERE nth > 1 ORDER BY doc_id"
    ).fetchall()


def bad_vectors(store: Store) -> Ints:
    if not store.dim:
        return np.zeros(0, np.int64)
    with store.opened.database.reading() as cursor:
        table = load_vectors(cursor, store.layout, store.dim)
        missing = ids_of(cursor, f"SELECT chunk_id FROM {store.layout.table} WHERE embedding IS NULL")
    bad = ~np.isfinite(table.matrix).all(axis=1) | ~table.matrix.any(axis=1)
    ids: Ints = table.chunk_ids[bad]
    return ids[~np.isin(ids, missing)]


def _delete_chunks(store: Store, chunks: Ints) -> None:
    if not len(chunks):
        return
    with store.opened.database.writing() as cursor:
        revision = store.opened.cache.revision + 1
        delete_chunks(cursor, store.layout, chunks, revision)
        count_write(cursor, revision)
    store.opened.cache.forget_tables(revision)


def _repair_orphans(store: Store) -> None:
    with store.opened.database.reading() as cursor:
        chunks = orphan_chunks(cursor, store)
    _delete_chunks(store, chunks)


def _repair_ranges(store: Store) -> None:
    with store.opened.database.reading() as cursor:
        chunks = outside_ranges(cursor, store)
    _delete_chunks(store, chunks)


def _repair_empty(store: Store) -> None:
    with store.opened.database.reading() as cursor:
        rows = cursor.execute(
            f"SELECT doc_id FROM documents ANTI JOIN {store.layout.table} USING (doc_id)"
        ).fetchall()
    delete_documents(store, [Existing(row[0], np.zeros(0, np.int64)) for row in rows])


def _repair_duplicates(store: Store) -> None:
    with store.opened.database.reading() as cursor:
        doc_ids = [doc_id for doc_id, _ in copies(cursor, store)]
    for doc_id in doc_ids:
        store.delete(doc_id)


def _repair_size(store: Store) -> None:
    with store.opened.database.writing() as cursor:
        cursor.execute("UPDATE metadata SET embedding_size = ?", [store.dim])


def _repair_r_model(store: Store) -> None:
    with store.opened.database.writing() as cursor:
        cursor.execute("UPDATE metadata SET embed_func = ?", [interop_r.write_embed(store.embed_config)])


def compact(store: Store) -> None:
    """Copies the store into a new file and puts that in its place, with all other use of it waiting."""
    path = store.opened.database.path
    if path is None:
        raise StoreError("a store in memory has no file to compact")
    made = f"{path}.{os.getpid()}.new"
    Path(made).unlink(missing_ok=True)
    try:
        create_file(made)
        with store.opened.database.unhardened() as connection:
            row = connection.execute("SELECT current_database()").fetchone()
            assert row is not None
            attach = made.replace("'", "''")
            connection.execute(f"ATTACH '{attach}' AS ragnar_compact (STORAGE_VERSION '{STORAGE_VERSION}')")
            connection.execute(f'COPY FROM DATABASE "{row[0]}" TO ragnar_compact')
            connection.execute("DETACH ragnar_compact")
            connection.execute("CHECKPOINT")
            connection.close()
            os.replace(made, path)
            Path(path + ".wal").unlink(missing_ok=True)
    except duckdb.Error as error:
        raise StoreError(f"{path} was not compacted: {str(error).splitlines()[0]}") from error
    finally:
        Path(made).unlink(missing_ok=True)


def _repair_graph(store: Store) -> None:
    delete_graph(store)
    build_graph(store)


REPAIRS: dict[str, Callable[[Store], object]] = {
    "r_hnsw": drop_hnsw,
    "stale_index": index_missing,
    "missing_vectors": embed_missing_vectors,
    "orphan_chunks": _repair_orphans,
    "empty_documents": _repair_empty,
    "bad_vectors": lambda store: embed_missing_vectors(store, None, bad_vectors(store)),
    "wrong_size": _repair_size,
    "bad_ranges": _repair_ranges,
    "duplicate_documents": _repair_duplicates,
    "bloat": compact,
    "two_models": _repair_r_model,
    "bad_ann": _repair_graph,
    "stale_ann": _repair_graph,
    "absent_ann": _repair_graph,
    "other_model": lambda store: store.reembed(store.embedder),
}
