"""Indexes: what is up to date, bringing it up to date, and building what ragnar (R) searches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from ragnar_core.errors import StoreError
from ragnar_core.store.analyzer import Analyzer, AnalyzerOptions
from ragnar_core.store.ann import build_graph, graph_state
from ragnar_core.store.cache import Floats
from ragnar_core.store.extensions import load_extension
from ragnar_core.store.layout import Layout
from ragnar_core.store.opened import hnsw_indexes
from ragnar_core.store.postings import ChunkTerms, Ints, TermCoder
from ragnar_core.store.prepare import check_vectors
from ragnar_core.store.segments import delete_postings, indexed_ids, insert_segments, insert_terms
from ragnar_core.store.text import texts_of
from ragnar_core.store.write import count_write, vector_array

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

Progress = Callable[[int, int], None]

_BATCH = 2000
_EMBED_BATCH = 128


@dataclass(frozen=True)
class IndexState:
    """What searching finds up to date.

    bm25: "fresh", "stale" (another program wrote or deleted chunks), or "absent" (no chunk is indexed). A search indexes
        stale chunks in memory on the way; `build_index` writes them down.
    vss: "fresh" (vectors are searched exactly, so what is stored is found), "stale" (chunks without a vector), "absent".
    stale_chunks: chunks BM25 has no postings for, and postings without a chunk.
    missing_vectors: chunks with text and without a vector.
    r_fts: the state of ragnar's own full-text index in the file.
    r_hnsw: names of ragnar's vector indexes in the file. While there are any, the file can only be read.
    ann: the graph for approximate search beside a very large store: "none" (too small to need one), "absent", "fresh",
        "stale" (`ann_stale` chunks were written or deleted since; those written are searched exactly beside it), or
        "damaged" (ignored).
    """

    bm25: str
    vss: str
    stale_chunks: int
    missing_vectors: int
    r_fts: str
    r_hnsw: tuple[str, ...]
    ann: str = "none"
    ann_stale: int = 0


def index_state(store: Store) -> IndexState:
    table = store.layout.table
    with store.opened.database.snapshot() as cursor:
        here = ids_of(cursor, f"SELECT chunk_id FROM {table}")
        indexed = indexed_ids(cursor) if store.opened.has_own_tables else here[:0]
        chunks = len(here)
        missing = int((~np.isin(here, indexed)).sum())
        orphans = int((~np.isin(indexed, here)).sum())
        stale = missing + orphans
        bm25 = "fresh" if not stale else "absent" if missing == chunks else "stale"
        without = len(_without_vector(cursor, store)) if store.dim else 0
        vss = "absent" if not store.dim else "stale" if without else "fresh"
        with_vector = (
            ids_of(cursor, f"SELECT chunk_id FROM {table} WHERE embedding IS NOT NULL")
            if store.dim
            else here[:0]
        )
        graph = graph_state(store, with_vector)
        return IndexState(bm25, vss, stale, without, _r_fts(cursor, table), hnsw_indexes(cursor), *graph)


def build_index(store: Store, kinds: Iterable[str], for_r: bool, progress: Progress | None) -> None:
    wanted = {kinds} if isinstance(kinds, str) else set(kinds)
    if not wanted or wanted - {"vss", "fts"}:
        raise StoreError(
            f"build_index builds 'vss' and 'fts', not {sorted(wanted - {'vss', 'fts'}) or 'nothing'}"
        )
    if "fts" in wanted:
        index_missing(store, progress)
    if "vss" in wanted and store.dim:
        embed_missing_vectors(store, progress)
        build_graph(store, progress)
    if for_r:
        _build_for_r(store, wanted)


def index_missing(store: Store, progress: Progress | None = None) -> int:
    """Writes postings of chunks that have none and takes away postings without a chunk. Returns how many it changed."""
    opened, layout = store.opened, store.layout
    with opened.database.write_lock:
        with opened.database.snapshot() as cursor:
            here = ids_of(cursor, f"SELECT chunk_id FROM {layout.table}")
            indexed = indexed_ids(cursor)
        missing, orphans = here[~np.isin(here, indexed)], indexed[~np.isin(indexed, here)]
        revision = opened.cache.revision
        for start in range(0, max(len(missing), 1), _BATCH):
            ids = missing[start : start + _BATCH]
            revision += 1
            with opened.database.writing() as cursor:
                coder = opened.cache.term_coder(cursor)
                terms = coder.encode(texts_of(cursor, layout, ids))
                insert_segments(cursor, revision, ids, terms, document_numbers(cursor, layout, ids))
                unsaved = coder.unsaved()
                insert_terms(cursor, unsaved)
                if start + _BATCH >= len(missing):
                    delete_postings(cursor, revision, orphans)
                count_write(cursor, revision)
            coder.mark_saved(len(unsaved))
            opened.cache.forget_tables(revision)
            if progress is not None and len(missing):
                progress(min(start + _BATCH, len(missing)), len(missing))
        opened.outside = 0
    return len(missing) + len(orphans)


def embed_missing_vectors(store: Store, progress: Progress | None = None, ids: Ints | None = None) -> int:
    """Gives vectors to chunks that have none (or to `ids`). Each batch is a transaction. Returns how many."""
    with store.opened.database.reading() as cursor:
        waiting = _without_vector(cursor, store) if ids is None else ids
    for start in range(0, len(waiting), _EMBED_BATCH):
        batch = waiting[start : start + _EMBED_BATCH]
        with store.opened.database.reading() as cursor:
            texts = texts_of(cursor, store.layout, batch)
        vectors = check_vectors(store.embedder.embed(texts), len(texts), store.dim, store.embedder.label)
        _set_vectors(store, batch, vectors)
        if progress is not None:
            progress(min(start + _EMBED_BATCH, len(waiting)), len(waiting))
    return len(waiting)


def set_analyzer(store: Store, options: AnalyzerOptions, progress: Progress | None = None) -> None:
    """Changes what counts as a word, and indexes every chunk again, in one transaction."""
    opened = store.opened
    with opened.database.write_lock:
        coder = TermCoder(Analyzer(options), {})
        with opened.database.snapshot() as cursor:
            ids = ids_of(cursor, f"SELECT chunk_id FROM {store.layout.table}")
            parts = []
            for start in range(0, len(ids), _BATCH):
                parts.append(coder.encode(texts_of(cursor, store.layout, ids[start : start + _BATCH])))
                if progress is not None:
                    progress(min(start + _BATCH, len(ids)), len(ids))
        with opened.cache.standing_still():
            with opened.database.writing() as cursor:
                cursor.execute("DELETE FROM ragnar_postings")
                cursor.execute("DELETE FROM ragnar_terms")
                revision = opened.cache.revision + 1
                groups = document_numbers(cursor, store.layout, ids)
                insert_segments(cursor, revision, ids, ChunkTerms.join(parts), groups)
                insert_terms(cursor, coder.unsaved())
                cursor.execute("UPDATE ragnar_state SET analyzer = ?", [json.dumps(options.to_dict())])
                count_write(cursor, revision)
            opened.outside = 0
            opened.cache.forget(revision)


def drop_hnsw(store: Store) -> tuple[str, ...]:
    """Takes ragnar's vector indexes out of the file. Works without the extension that made them, before any write."""
    names = store.opened.hnsw
    if names:
        with store.opened.database.writing() as cursor:
            for name in names:
                cursor.execute(f'DROP INDEX "{name}"')
        store.opened.hnsw = ()
    return names


def _build_for_r(store: Store, wanted: set[str]) -> None:
    """Ragnar's own indexes, with the statements that ragnar uses, so that R finds what it expects."""
    database, layout = store.opened.database, store.layout
    with database.unhardened() as connection:
        for name in sorted(wanted - (set() if store.dim else {"vss"})):
            load_extension(connection, name)
        try:
            if "fts" in wanted:
                _fts_for_r(connection, layout)
            if "vss" in wanted and store.dim:
                connection.execute("SET hnsw_enable_experimental_persistence = true")
                for name, metric in _HNSW[layout.version]:
                    connection.execute(f"DROP INDEX IF EXISTS {name}")
                    option = f" WITH (metric = '{metric}')" if metric else ""
                    connection.execute(
                        f"CREATE INDEX {name} ON {layout.table} USING HNSW (embedding){option}"
                    )
            # The log must hold nothing of these indexes: without the extension it could not be read back.
            connection.execute("CHECKPOINT")
        except duckdb.Error as error:
            raise StoreError(f"the indexes for R were not built: {str(error).splitlines()[0]}") from error
    with database.reading() as cursor:
        store.opened.hnsw = hnsw_indexes(cursor)


def _fts_for_r(connection: duckdb.DuckDBPyConnection, layout: Layout) -> None:
    if layout.version == 1:
        connection.execute("PRAGMA create_fts_index('chunks', 'chunk_id', 'text', overwrite = 1)")
        return
    connection.execute("BEGIN TRANSACTION")
    try:
        connection.execute("ALTER VIEW chunks RENAME TO chunks_view")
        connection.execute(
            "CREATE TABLE chunks AS SELECT e.chunk_id, e.context, "
            'substring(d.text, e.start, e."end" - e.start + 1) AS text '
            "FROM documents d JOIN embeddings e USING (doc_id)"
        )
        connection.execute("PRAGMA create_fts_index('chunks', 'chunk_id', 'context', 'text', overwrite = 1)")
        connection.execute("DROP TABLE chunks")
        connection.execute("ALTER VIEW chunks_view RENAME TO chunks")
        connection.execute("COMMIT")
    except duckdb.Error:
        connection.execute("ROLLBACK")
        raise


_HNSW = {
    1: (("my_hnsw_index", ""),),
    2: (
        ("store_hnsw_cosine_index", "cosine"),
        ("store_hnsw_l2sq_index", "l2sq"),
        ("store_hnsw_ip_index", "ip"),
    ),
}


def _r_fts(cursor: duckdb.DuckDBPyConnection, table: str) -> str:
    found = number_of(
        cursor,
        "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'fts_main_chunks' AND table_name = 'docs'",
    )
    if not found:
        return "absent"
    differing = number_of(
        cursor,
        f"SELECT (SELECT count(*) FROM {table} e ANTI JOIN fts_main_chunks.docs d ON e.chunk_id = d.name) "
        f"+ (SELECT count(*) FROM fts_main_chunks.docs d ANTI JOIN {table} e ON e.chunk_id = d.name)",
    )
    return "stale" if differing else "fresh"


def _without_vector(cursor: duckdb.DuckDBPyConnection, store: Store) -> Ints:
    """Chunks without a vector that have text to embed."""
    ids = ids_of(cursor, f"SELECT chunk_id FROM {store.layout.table} WHERE embedding IS NULL")
    if not len(ids):
        return ids
    texts = texts_of(cursor, store.layout, ids)
    waiting: Ints = ids[np.array([bool(text.strip()) for text in texts], bool)]
    return waiting


def _set_vectors(store: Store, ids: Ints, vectors: Floats) -> None:
    table = store.layout.table
    with store.opened.database.writing() as cursor:
        cursor.register(
            "ragnar_rows",
            pa.table({"chunk_id": pa.array(ids.astype(np.int32)), "embedding": vector_array(vectors)}),
        )
        cursor.execute(
            f"UPDATE {table} SET embedding = r.embedding FROM ragnar_rows r WHERE {table}.chunk_id = r.chunk_id"
        )
        cursor.unregister("ragnar_rows")
        revision = store.opened.cache.revision + 1
        count_write(cursor, revision)
    store.opened.cache.forget_tables(revision)


def document_numbers(cursor: duckdb.DuckDBPyConnection, layout: Layout, ids: Ints) -> Ints:
    """The document of each chunk, as a number, so that a document's postings are one row; int64, as `ids`."""
    if not len(ids):
        return ids
    document = layout.doc_id if layout.version == 2 else "coalesce(hash(origin) >> 2, chunk_id)"
    cursor.register("ragnar_wanted", pa.table({"chunk_id": pa.array(ids)}))
    found = cursor.execute(
        f"SELECT {document} AS d FROM {layout.table} WHERE chunk_id IN (SELECT chunk_id FROM ragnar_wanted) "
        "ORDER BY chunk_id"
    ).fetchnumpy()["d"]
    cursor.unregister("ragnar_wanted")
    numbers: Ints = np.asarray(found).astype(np.int64)
    return numbers


def ids_of(cursor: duckdb.DuckDBPyConnection, sql: str) -> Ints:
    found = cursor.execute(f"SELECT chunk_id FROM ({sql}) ORDER BY chunk_id").fetchnumpy()["chunk_id"]
    return np.asarray(found, np.int64)


def number_of(cursor: duckdb.DuckDBPyConnection, sql: str) -> int:
    row: Any = cursor.execute(sql).fetchone()
    return int(row[0])
