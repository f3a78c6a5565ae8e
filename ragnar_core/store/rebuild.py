"""The table of chunks made anew: a table cannot be altered and filled in one transaction, and a constraint of R's cannot
be dropped."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from ragnar_core.store.layout import Layout
from ragnar_core.store.schema import CHUNKS_VIEW, chunk_table, quote


def has_foreign_key(cursor: duckdb.DuckDBPyConnection, layout: Layout) -> bool:
    """Whether ragnar's foreign key is there. With it a document cannot be deleted with its chunks in one transaction."""
    row = cursor.execute(
        "SELECT count(*) FROM duckdb_constraints() WHERE schema_name = 'main' AND table_name = ? "
        "AND constraint_type = 'FOREIGN KEY'",
        [layout.table],
    ).fetchone()
    return row is not None and row[0] > 0


def rebuild_chunk_table(
    cursor: duckdb.DuckDBPyConnection,
    layout: Layout,
    dim: int,
    extra: Mapping[str, str],
    vectors: str | None = None,
) -> None:
    """Copies the chunks into a table of our own making, within the caller's transaction. `vectors` names a table with
    chunk_id and embedding to take the vectors from."""
    columns = [
        row[0]
        for row in cursor.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND schema_name = 'main' "
            "AND column_name <> 'embedding' ORDER BY column_index",
            [layout.table],
        ).fetchall()
    ]
    names = ", ".join(map(quote, columns))
    selected = ", ".join(f"e.{quote(name)}" for name in columns)
    source = f"{layout.table} e"
    if vectors:
        source += f" JOIN {vectors} r USING (chunk_id)"
    if dim:
        names += ", embedding"
        selected += ", r.embedding" if vectors else ", e.embedding"
    cursor.execute(chunk_table("ragnar_made", layout.version, dim, extra))
    cursor.execute(f"INSERT INTO ragnar_made ({names}) SELECT {selected} FROM {source} ORDER BY e.chunk_id")
    if layout.version == 2:
        cursor.execute("DROP VIEW IF EXISTS chunks")
    cursor.execute(f"DROP TABLE {layout.table}")
    cursor.execute(f"ALTER TABLE ragnar_made RENAME TO {layout.table}")
    if layout.version == 2:
        cursor.execute(CHUNKS_VIEW)
