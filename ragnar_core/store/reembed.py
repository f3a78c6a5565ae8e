"""Another model for a whole store: every chunk embedded again, then the vectors exchanged in one transaction."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from ragnar_core.embedding import Embedder
from ragnar_core.errors import StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.ann import delete_graph
from ragnar_core.store.index import ids_of
from ragnar_core.store.postings import Ints
from ragnar_core.store.prepare import check_vectors
from ragnar_core.store.rebuild import rebuild_chunk_table
from ragnar_core.store.schema import columns_by_table
from ragnar_core.store.text import texts_of
from ragnar_core.store.write import count_write, insert_arrow, vector_array

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

_BATCH = 128


def reembed(
    store: Store,
    embedder: Embedder,
    progress: Callable[[int, int], None] | None = None,
    cancel: threading.Event | None = None,
) -> int:
    """Embeds all chunks with another model and makes it the store's. Returns the number of chunks embedded.

    Searches use the old vectors until the exchange. New vectors wait in the file, so that a cancelled or crashed run
    goes on where it stopped when the same model is asked for again.
    """
    database = store.opened.database
    label = json.dumps(embedder.config, sort_keys=True)
    _open_waiting_room(store, label, embedder.dim)
    embedded = 0
    while True:
        with database.reading() as cursor:
            missing = _missing(cursor, store)
        if not len(missing):
            # A writer may add a chunk between the last look and the exchange, so the look is taken under the lock.
            with database.write_lock:
                with database.reading() as cursor:
                    if len(_missing(cursor, store)):
                        continue
                _exchange(store, embedder)
            return embedded
        total = embedded + len(missing)
        for start in range(0, len(missing), _BATCH):
            ids = missing[start : start + _BATCH]
            with database.reading() as cursor:
                texts = texts_of(cursor, store.layout, ids)
            found = embedder.embed(texts, cancel=cancel)
            vectors = check_vectors(found, len(ids), embedder.dim, embedder.label)
            columns = {"chunk_id": pa.array(ids), "embedding": vector_array(vectors)}
            with database.writing() as cursor:
                insert_arrow(cursor, "ragnar_reembed", columns)
            embedded += len(ids)
            if progress is not None:
                progress(embedded, total)


def _open_waiting_room(store: Store, label: str, dim: int) -> None:
    with store.opened.database.writing() as cursor:
        row = cursor.execute(
            "SELECT comment FROM duckdb_tables() WHERE table_name = 'ragnar_reembed'"
        ).fetchone()
        if row is None or row[0] != label:
            cursor.execute("DROP TABLE IF EXISTS ragnar_reembed")
            cursor.execute(f"CREATE TABLE ragnar_reembed (chunk_id BIGINT, embedding FLOAT[{dim}])")
            cursor.execute("COMMENT ON TABLE ragnar_reembed IS '" + label.replace("'", "''") + "'")


def _missing(cursor: duckdb.DuckDBPyConnection, store: Store) -> Ints:
    return ids_of(
        cursor, f"SELECT chunk_id FROM {store.layout.table} ANTI JOIN ragnar_reembed USING (chunk_id)"
    )


def _exchange(store: Store, embedder: Embedder) -> None:
    opened, layout, dim = store.opened, store.layout, embedder.dim
    if opened.hnsw:
        raise StoreError(f"{store.location} holds R's vector index; drop it first with drop_hnsw()")
    config = embedder.config
    with opened.cache.standing_still():
        with opened.database.writing() as cursor:
            rebuild_chunk_table(cursor, layout, dim, opened.extra_cols, "ragnar_reembed")
            columns = tuple(columns_by_table(cursor)[layout.table])
            cursor.execute("DROP TABLE ragnar_reembed")
            cursor.execute("DROP TABLE ragnar_vectors")
            cursor.execute(f"CREATE TABLE ragnar_vectors (text_hash BLOB, embedding FLOAT[{dim}])")
            _write_model(cursor, layout.version, dim, opened.extra_cols, config)
            revision = opened.cache.revision + 1
            count_write(cursor, revision)
        opened.dim, opened.chunk_columns = dim, columns
        opened.cache.dim = dim
        opened.embed_config = config
        opened.r_call = interop_r.read_embed(interop_r.write_embed(config)).call
        opened.cache.forget_tables(revision)
    delete_graph(store)


def _write_model(
    cursor: duckdb.DuckDBPyConnection,
    version: int,
    dim: int,
    extra: dict[str, str],
    config: dict[str, object],
) -> None:
    columns = {
        row[0]
        for row in cursor.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = 'metadata' AND schema_name = 'main'"
        ).fetchall()
    }
    for name, kind in (("embedding_size", "INTEGER"), ("embed_func", "BLOB"), ("embed_config", "VARCHAR")):
        if name not in columns:
            cursor.execute(f"CREATE TABLE ragnar_metadata AS SELECT *, NULL::{kind} AS {name} FROM metadata")
            cursor.execute("DROP TABLE metadata")
            cursor.execute("ALTER TABLE ragnar_metadata RENAME TO metadata")
    cursor.execute(
        "UPDATE metadata SET embedding_size = ?, embed_func = ?, embed_config = ?",
        [dim, interop_r.write_embed(config), json.dumps(config)],
    )
    if version == 1:
        cursor.execute("UPDATE metadata SET schema = ?", [interop_r.write_schema(extra, dim)])
