"""What was done to a document: each time it was written, with which settings and model, and how it had been read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import ReadReport
from ragnar_core.store.connection import execute_parsed
from ragnar_core.store.prepare import Prepared


@dataclass(frozen=True)
class Written:
    """One time a document was written: when (UTC), how many chunks, cut how, embedded by which model, and the report
    of its reading. What was not known is None."""

    written: datetime
    chunks: int
    settings: ChunkSettings | None
    model: str | None
    report: ReadReport | None


def note_writes(
    cursor: duckdb.DuckDBPyConnection,
    documents: Sequence[Prepared],
    doc_ids: Sequence[int | None],
    model: str | None,
) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    for doc_id, document in zip(doc_ids, documents, strict=True):
        values = [
            doc_id,
            document.origin,
            now,
            len(document),
            json.dumps(document.settings.to_dict()) if document.settings else None,
            model,
            json.dumps(document.report.to_dict()) if document.report else None,
        ]
        execute_parsed(cursor, "INSERT INTO ragnar_history VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def read_history(cursor: duckdb.DuckDBPyConnection, doc_id: int | None, origin: str | None) -> list[Written]:
    """Oldest first. A version 1 store has no numbers of documents: there the origin counts."""
    where, value = ("doc_id = ?", doc_id) if doc_id is not None else ("origin = ?", origin)
    rows = cursor.execute(
        f"SELECT written, chunks, settings, model, report FROM ragnar_history WHERE {where} ORDER BY written",
        [value],
    ).fetchall()
    return [
        Written(
            written.replace(tzinfo=UTC),
            chunks,
            ChunkSettings.from_dict(json.loads(settings)) if settings else None,
            model,
            ReadReport.from_dict(json.loads(report)) if report else None,
        )
        for written, chunks, settings, model, report in rows
    ]


def forget_history(cursor: duckdb.DuckDBPyConnection, doc_ids: Sequence[int]) -> None:
    marks = ", ".join("?" * len(doc_ids))
    cursor.execute(f"DELETE FROM ragnar_history WHERE doc_id IN ({marks})", list(doc_ids))
