"""The work behind the Build page: what a build will cost, and the job that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from pages.shared.jobs import Job
from pages.shared.workspace import OpenStores, store_path
from ragnar_core import (
    Boundaries,
    Chunks,
    ChunkSettings,
    Embedder,
    IngestProgress,
    IngestSummary,
    MarkdownDocument,
    Store,
    StoreError,
)
from ragnar_core.chunking.report import CHARACTERS_A_TOKEN, EmbeddingCost
from ragnar_core.retrieval.filters import Column

TYPES = ("text", "integer", "number", "boolean", "date")
_SQL_TYPES = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
}


@dataclass(frozen=True)
class ExtraColumn:
    """A column of a store, and the value that the documents of this build get in it."""

    name: str
    kind: str
    value: Any = None


@dataclass(frozen=True)
class Plan:
    """Everything a build needs. `create` is False for a store that is there already."""

    name: str
    create: bool
    documents: tuple[MarkdownDocument, ...]
    settings: ChunkSettings
    title: str | None = None
    version: int = 2
    columns: tuple[ExtraColumn, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """What will be done: `characters` counts context and overlap; `seconds` is None where the speed is not known."""

    chunks: int
    characters: int
    tokens: int
    seconds: float | None
    dollars: float


def estimate(chunked: Sequence[tuple[int, int]], cost: EmbeddingCost) -> Estimate:
    """From (chunks, characters) of each document."""
    chunks, characters = sum(c for c, _ in chunked), sum(n for _, n in chunked)
    tokens = round(characters / CHARACTERS_A_TOKEN)
    return Estimate(chunks, characters, tokens, cost.seconds(tokens), cost.dollars(tokens))


def chunked(text: str, settings: ChunkSettings) -> tuple[int, int]:
    """How many chunks a text gives, and how many characters of them go to the model. Sizes in tokens are estimated."""
    table = Boundaries.of(text).chunk(settings, count_tokens=_about).table
    return len(table), int((table["end"] - table["start"]).sum() + table["context"].str.len().sum())


def _about(texts: Sequence[str]) -> np.ndarray:
    return np.array([len(text) for text in texts]) / CHARACTERS_A_TOKEN


def with_columns(chunks: Chunks, columns: Sequence[ExtraColumn]) -> Chunks:
    """The chunks with each column's value in every row."""
    for column in columns:
        chunks.table[column.name] = column.value
    return chunks


def column_types(columns: Sequence[ExtraColumn]) -> dict[str, str]:
    """Raises StoreError for a type that is not in TYPES."""
    for column in columns:
        if column.kind not in _SQL_TYPES:
            raise StoreError(f"{column.name}: the type {column.kind!r} is not one of {', '.join(TYPES)}.")
    return {column.name: _SQL_TYPES[column.kind] for column in columns}


def value_of(text: str | None, kind: str, name: str) -> Any:
    """The typed value a person wrote; None for nothing. Raises StoreError when it is not of its type."""
    if text is None or not str(text).strip():
        return None
    given = str(text).strip()
    try:
        return _READERS[kind](given)
    except (ValueError, KeyError):
        raise StoreError(
            f"The value {given!r} of the extra column {name!r} is not of the type {kind}."
        ) from None


def existing_column(name: str, sql_type: str, text: str) -> ExtraColumn:
    """A column that a store has, with the value a person wrote. Raises StoreError as `value_of` does."""
    kind = Column.of_type(name, sql_type).kind
    kind = kind if kind in TYPES else "text"
    return ExtraColumn(name, kind, value_of(text, kind, name))


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "integer": int,
    "number": float,
    "boolean": lambda text: {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
        text.lower()
    ],
    "date": date.fromisoformat,
}


def build(job: Job, plan: Plan, embedder: Embedder | None, stores: OpenStores) -> IngestSummary:
    """Chunk, embed and store the documents of a plan; a failed one is named and does not stop the others.

    `embedder` is the model of a new store, or None to use that of the store that is there.
    """
    job.unit = "documents"
    job.report(0, len(plan.documents), "opening the store")
    if plan.create:
        path = store_path(plan.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        extra = column_types(plan.columns) or None
        store = Store.create(
            path, embedder, name=plan.name, title=plan.title, version=plan.version, extra_cols=extra
        )
        stores.put(plan.name, store)
    else:
        store = stores.get(plan.name)

    def tell(progress: IngestProgress) -> None:
        said = f"{progress.chunks_embedded:,} chunks embedded, {progress.chunks_written:,} written"
        job.report(progress.documents_done, len(plan.documents), f"{progress.origin or ''} · {said}")

    def prepare(document: MarkdownDocument) -> Chunks:
        count = store.embedder.count_tokens if plan.settings.unit == "tokens" and store.dim else None
        return with_columns(Boundaries.of(document).chunk(plan.settings, count_tokens=count), plan.columns)

    summary = store.ingest(
        plan.documents,
        settings=plan.settings,
        prepare=prepare if plan.columns else None,
        progress=tell,
        cancel=job.cancel,
    )
    job.problems = list(summary.failed)
    return summary


def sentence(summary: IngestSummary) -> str:
    """What a build did, for a person."""
    parts = (
        (summary.inserted, "new"),
        (summary.replaced, "replaced"),
        (summary.unchanged, "unchanged"),
        (len(summary.failed), "failed"),
        (len(summary.pending), "left for the next run"),
    )
    said = ", ".join(f"{count:,} {what}" for count, what in parts if count) or "nothing to do"
    reused = f", {summary.vectors_reused:,} vectors used again" if summary.vectors_reused else ""
    return f"documents: {said}; {summary.chunks_embedded:,} chunks embedded{reused}"
