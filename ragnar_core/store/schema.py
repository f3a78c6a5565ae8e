"""The tables of a store file: ragnar's, column for column, and our own beside them under `ragnar_`.

Version 2 has `documents`, `embeddings` and the view `chunks`; version 1 one flat table `chunks`. Two things of
ragnar's version 2 are left out on purpose, R does not miss them: the foreign key (with it a document cannot be replaced
in one transaction) and the primary key on ranges (a quarter of the file's size).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from ragnar_core.errors import StoreError
from ragnar_core.store.interop_raghilda import RAGHILDA
from ragnar_core.store.layout import Layout

FORMAT = 1
RESERVED = (
    "chunk_id", "doc_id", "origin", "hash", "text", "start", "end", "context", "embedding", "metric_name",
    "metric_value", "vss_rank", "bm25_rank", "score",
)  # fmt: skip


RAGNAR_2 = Layout("ragnar", 2, "embeddings", "doc_id", "start", '"end"', "chunk_id_seq", "doc_id_seq")
RAGNAR_1 = Layout("ragnar", 1, "chunks", "", "NULL::INTEGER", "NULL::INTEGER", "chunk_id_sequence", None)

_DOCUMENTS = """
CREATE SEQUENCE chunk_id_seq START 1;
CREATE SEQUENCE doc_id_seq START 1;
CREATE TABLE documents (
    doc_id INTEGER PRIMARY KEY DEFAULT nextval('doc_id_seq'),
    origin VARCHAR UNIQUE,
    text VARCHAR
);
"""
_EMBEDDINGS = """
CREATE TABLE {table} (
    doc_id INTEGER NOT NULL,
    chunk_id INTEGER DEFAULT nextval('chunk_id_seq'),
    start INTEGER,
    "end" INTEGER,
    context VARCHAR{extra}{embedding}
);
"""
# One statement's text is kept by DuckDB and shown to people, so the view reads as ragnar's does.
CHUNKS_VIEW = """
CREATE OR REPLACE VIEW chunks AS (
    SELECT d.origin AS origin, e.*, d.text[ e.start : e."end" ] AS text
    FROM documents d JOIN embeddings e USING (doc_id)
);
"""
_CHUNKS = """
CREATE TABLE {table} (
    chunk_id INTEGER DEFAULT nextval('chunk_id_sequence'){extra},
    origin VARCHAR,
    hash VARCHAR,
    text VARCHAR{embedding}
);
"""
_METADATA = """
CREATE TABLE metadata (
    embedding_size INTEGER, embed_func BLOB{schema}, name VARCHAR, title VARCHAR,
    embed_config VARCHAR, ragnar_format INTEGER
);
"""
# Postings have a row a write, of numbers packed into blobs: the chunks' ids, their lengths in terms, how many different
# terms each has, and then, chunk by chunk, term ids and counts. `terms` is a block of new terms, one a line.
OWN_TABLES = """
CREATE TABLE ragnar_state (revision BIGINT, analyzer VARCHAR, chunk_settings VARCHAR);
CREATE TABLE ragnar_terms (first_term_id INTEGER, terms VARCHAR);
CREATE TABLE ragnar_postings (
    first_chunk_id INTEGER, last_chunk_id INTEGER, revision BIGINT,
    chunk_ids BLOB, lengths BLOB, sizes BLOB, term_ids BLOB, tfs BLOB
);
CREATE TABLE ragnar_vectors (text_hash BLOB, embedding FLOAT[{dim}]);
CREATE TABLE ragnar_history (
    doc_id INTEGER, origin VARCHAR, written TIMESTAMP, chunks INTEGER, settings VARCHAR, model VARCHAR, report VARCHAR
);
"""


def create_tables(
    cursor: duckdb.DuckDBPyConnection,
    *,
    version: int,
    dim: int,
    extra: Mapping[str, str],
    metadata: Mapping[str, Any],
    analyzer: Mapping[str, Any],
) -> None:
    """Lays out an empty store. `metadata` holds embed_func, name, title, embed_config and, for version 1, schema."""
    cursor.execute(_DOCUMENTS if version == 2 else "CREATE SEQUENCE chunk_id_sequence START 1")
    cursor.execute(chunk_table("embeddings" if version == 2 else "chunks", version, dim, extra))
    if version == 2:
        cursor.execute(CHUNKS_VIEW)
    cursor.execute(_METADATA.format(schema=", schema BLOB" if version == 1 else ""))
    row = {"embedding_size": dim or None, **metadata, "ragnar_format": FORMAT}
    marks = ", ".join("?" * len(row))
    cursor.execute(f"INSERT INTO metadata ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    create_own_tables(cursor, dim=dim, analyzer=analyzer)


def chunk_table(name: str, version: int, dim: int, extra: Mapping[str, str]) -> str:
    """The statement that makes the table of chunks, under a name."""
    columns = "".join(f",\n    {quote(column)} {kind}" for column, kind in extra.items())
    embedding = f",\n    embedding FLOAT[{dim}]" if dim else ""
    ddl = _EMBEDDINGS if version == 2 else _CHUNKS
    return ddl.format(table=name, extra=columns, embedding=embedding)


def create_own_tables(cursor: duckdb.DuckDBPyConnection, *, dim: int, analyzer: Mapping[str, Any]) -> None:
    """Our tables beside ragnar's, in a new store, in one that R wrote, or in the place of ones of an older form."""
    for table in ("ragnar_state", "ragnar_terms", "ragnar_postings", "ragnar_vectors", "ragnar_history"):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
    cursor.execute(OWN_TABLES.format(dim=max(dim, 1)))
    cursor.execute("INSERT INTO ragnar_state VALUES (0, ?, NULL)", [json.dumps(analyzer)])


def layout_of(cursor: duckdb.DuckDBPyConnection, name: str) -> Layout:
    """Which kind of store a file is. Raises StoreError when it is none."""
    tables = columns_by_table(cursor)
    if {"documents", "embeddings", "metadata"} <= tables.keys():
        if "start_index" in tables["embeddings"]:
            return RAGHILDA
        return RAGNAR_2
    if {"chunks", "metadata"} <= tables.keys() and "chunk_id" in tables["chunks"]:
        return RAGNAR_1
    found = ", ".join(sorted(tables)) or "none"
    raise StoreError(
        f"{name} is a DuckDB file but no store (its tables: {found}); choose a file made by Store.create or ragnar"
    )


def columns_by_table(cursor: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Table name -> column name -> DuckDB type, for tables and views of the main schema."""
    rows = cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE schema_name = 'main' AND NOT internal AND database_name = current_database() "
        "ORDER BY table_name, column_index"
    ).fetchall()
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        tables.setdefault(table, {})[column] = kind
    return tables


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def check_name(name: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", name):
        raise StoreError(
            f"the store name {name!r} may hold only letters a-z, digits, _ and -; choose another"
        )
    return name


_SCALARS = {
    "VARCHAR": pa.string(), "TEXT": pa.string(), "STRING": pa.string(), "BOOLEAN": pa.bool_(), "BOOL": pa.bool_(),
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "INT": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(), "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(), "REAL": pa.float32(), "DOUBLE": pa.float64(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"), "DATETIME": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"), "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "TIME": pa.time64("us"), "BLOB": pa.binary(),
}  # fmt: skip
_PYTHON = {
    "str": "VARCHAR", "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "date": "DATE", "datetime": "TIMESTAMP",
    "bytes": "BLOB",
}  # fmt: skip


def extra_types(extra_cols: Mapping[str, Any] | pd.DataFrame | None) -> dict[str, str]:
    """Column name -> DuckDB type of the columns a person wants beside ragnar's own.

    Types are Python's (`str`, `int`, `list[str]`, `datetime.date`), DuckDB's names in any case ("BIGINT", "VARCHAR[]"),
    or those of a DataFrame, whose columns that ragnar has anyway are passed over. A text that is both, as "int", is
    Python's type in small letters and DuckDB's in capitals. Raises StoreError for a type that is not known.
    """
    if extra_cols is None:
        return {}
    if isinstance(extra_cols, pd.DataFrame):
        table = pa.Table.from_pandas(extra_cols, preserve_index=False)
        return {field.name: _from_arrow(field) for field in table.schema if field.name not in RESERVED}
    if not isinstance(extra_cols, Mapping):
        raise StoreError(
            f"extra_cols must be a dict of names and types or a data frame, not {type(extra_cols).__name__}"
        )
    for name in extra_cols:
        if not isinstance(name, str):
            raise StoreError(f"the name of an extra column must be a text, not {name!r}")
        if name in RESERVED or name.startswith("ragnar_"):
            raise StoreError(
                f"extra_cols may not hold {name!r}: every store has it, or needs the name; choose another"
            )
        if not name.strip() or len(name) > 200:
            raise StoreError(f"{name!r} is no name for an extra column; use 1 to 200 characters")
    return {name: _from_value(name, kind) for name, kind in extra_cols.items()}


def arrow_type(kind: str) -> pa.DataType | None:
    """The Arrow type that goes into a DuckDB column without loss, or None where DuckDB has to cast."""
    if kind.endswith("[]"):
        inner = arrow_type(kind[:-2])
        return None if inner is None else pa.list_(inner)
    if decimal := re.fullmatch(r"DECIMAL\((\d{1,2})(?:, ?(\d{1,2}))?\)", kind):
        digits, places = int(decimal[1]), int(decimal[2] or 0)
        return pa.decimal128(digits, places) if 1 <= digits <= 38 and places <= digits else None
    return _SCALARS.get(kind)


def _from_value(name: str, kind: Any) -> str:
    if isinstance(kind, str) and kind not in _PYTHON:
        known = kind.strip().upper()
        if arrow_type(known) is not None:
            return known
    else:
        shown = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
        inner = getattr(kind, "__args__", None)
        if inner and getattr(kind, "__origin__", None) is list:
            return _from_value(name, inner[0]) + "[]"
        if shown in _PYTHON:
            return _PYTHON[shown]
    raise StoreError(
        f"the type {kind!r} of the extra column {name!r} is not known; use str, int, float, bool, bytes, "
        f"datetime.date, datetime.datetime, list[str], or the name of a DuckDB type: {', '.join(_SCALARS)}, "
        "DECIMAL(9,2), or a list of one, as VARCHAR[]"
    )


def _from_arrow(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _from_arrow(pa.field(field.name, kind.value_type)) + "[]"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return "VARCHAR"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP WITH TIME ZONE" if kind.tz else "TIMESTAMP"
    for name, arrow in _SCALARS.items():
        if arrow.equals(kind):
            return name
    raise StoreError(
        f"the type {kind} of the extra column {field.name!r} cannot be stored; cast it before Store.create"
    )
