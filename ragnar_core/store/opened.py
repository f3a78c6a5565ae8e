"""What is known of an open file: its kind, its metadata and its cache; one per process and file."""

from __future__ import annotations

import json
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ragnar_core.errors import StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.cache import Cache, file_revision, has_own_tables
from ragnar_core.store.connection import Database, first_line
from ragnar_core.store.interop_raghilda import SYSTEM_COLUMNS, embed_config_of_raghilda, raghilda_views
from ragnar_core.store.layout import Layout
from ragnar_core.store.rebuild import has_foreign_key, rebuild_chunk_table
from ragnar_core.store.schema import (
    columns_by_table,
    create_own_tables,
    layout_of,
)

_OWN_COLUMNS = {
    "chunk_id", "doc_id", "start", "end", "start_index", "end_index", "context", "embedding", "origin", "hash", "text",
}  # fmt: skip
_lock = threading.RLock()


@dataclass
class Opened:
    """An open file as every store on it sees it."""

    database: Database
    layout: Layout
    dim: int
    chunk_columns: tuple[str, ...]
    extra_cols: dict[str, str]
    name: str
    title: str | None
    embed_config: dict[str, Any] | None
    r_call: str | None
    has_own_tables: bool
    foreign_key: bool
    outside: int
    hnsw: tuple[str, ...]
    cache: Cache

    @property
    def revision(self) -> int:
        """Changes at each write; `outside` tells apart states that another program made."""
        return self.cache.revision + self.outside


def opened(database: Database) -> Opened:
    """The one `Opened` of a database; read at the first call. Raises StoreError when the file is no store."""
    with _lock:
        if "opened" not in database.shared:
            with database.snapshot() as cursor:
                database.shared["opened"] = _read(database, cursor)
        found: Opened = database.shared["opened"]
        return found


def adopt(known: Opened, analyzer: dict[str, Any]) -> None:
    """Prepares a file that R wrote for our first write: our own tables, and no foreign key."""
    if known.has_own_tables and not known.foreign_key:
        return
    columns = known.chunk_columns
    with known.database.writing() as cursor:
        if known.foreign_key:
            rebuild_chunk_table(cursor, known.layout, known.dim, known.extra_cols)
            columns = tuple(columns_by_table(cursor)[known.layout.table])
        if not known.has_own_tables:
            create_own_tables(cursor, dim=known.dim, analyzer=analyzer)
    known.has_own_tables, known.foreign_key, known.chunk_columns = True, False, columns


def _read(database: Database, cursor: duckdb.DuckDBPyConnection) -> Opened:
    layout = layout_of(cursor, database.name)
    tables = columns_by_table(cursor)
    if layout.kind == "raghilda":
        row = cursor.execute("SELECT current_database()").fetchone()
        assert row is not None
        views = raghilda_views(tables["embeddings"], row[0])
        cursor.execute(views)
        database.cursor_setup = views
    columns = tables["chunks" if layout.version == 1 else "embeddings"]
    kind = columns.get("embedding", "")
    dim = int(kind[kind.index("[") + 1 : -1]) if "[" in kind and kind[-2] != "[" else 0
    metadata = _metadata(cursor, tables["metadata"])
    config, call = _embedder(layout, metadata)
    own = has_own_tables(cursor)
    cache = Cache(layout, dim)
    cache.revision = file_revision(cursor)
    return Opened(
        database=database,
        layout=layout,
        dim=dim,
        chunk_columns=tuple(columns),
        extra_cols={
            name: kind
            for name, kind in columns.items()
            if name not in _OWN_COLUMNS | (SYSTEM_COLUMNS if layout.kind == "raghilda" else frozenset())
        },
        name=metadata.get("name") or "store",
        title=metadata.get("title"),
        embed_config=config,
        r_call=call,
        has_own_tables=own,
        foreign_key=has_foreign_key(cursor, layout),
        outside=_outside(database, cursor, layout, own),
        hnsw=hnsw_indexes(cursor),
        cache=cache,
    )


def hnsw_indexes(cursor: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Names of indexes of DuckDB's extension vss: without it a write to their table fails and the next one hangs."""
    rows = cursor.execute(
        "SELECT index_name FROM duckdb_indexes() WHERE schema_name = 'main' AND upper(sql) LIKE '%USING HNSW%' "
        "ORDER BY index_name"
    ).fetchall()
    return tuple(row[0] for row in rows)


def _metadata(cursor: duckdb.DuckDBPyConnection, columns: dict[str, str]) -> dict[str, Any]:
    try:
        row = cursor.execute("SELECT * FROM metadata LIMIT 1").fetchone()
    except duckdb.Error as error:
        raise StoreError(f"the store's table metadata cannot be read: {first_line(error)}") from error
    return dict(zip(columns, row, strict=True)) if row else {}


def _embedder(layout: Layout, metadata: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """(the configuration to make the embedder from, the R call as text)."""
    call = None
    config: dict[str, Any] | None = None
    if metadata.get("embed_func"):
        found = interop_r.read_embed(bytes(metadata["embed_func"]))
        call, config = found.call, found.config
    if metadata.get("embed_config"):
        try:
            own = json.loads(metadata["embed_config"])
        except ValueError as error:
            raise StoreError(f"the store's embed_config is no JSON: {error}") from error
        if layout.kind == "raghilda":
            config, call = embed_config_of_raghilda(own)
        else:
            config = own
    return config, call


def _outside(database: Database, cursor: duckdb.DuckDBPyConnection, layout: Layout, own: bool) -> int:
    """0 when the chunks are those that our last write left, else a number for the state another program left."""
    now = cursor.execute(f"SELECT count(*), coalesce(max(chunk_id), 0) FROM {layout.table}").fetchone()
    if own:
        known = cursor.execute(
            "SELECT coalesce(sum(octet_length(chunk_ids)) // 4, 0), coalesce(max(last_chunk_id), 0) FROM ragnar_postings"
        ).fetchone()
        if known == now:
            return 0
    changed = Path(database.path).stat().st_mtime_ns if database.path else 0
    return zlib.crc32(f"{now} {changed}".encode()) << 20 | 1 << 52
