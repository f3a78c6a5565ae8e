"""Looking into a store: what it holds and what searching needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import StoreError
from ragnar_core.store.analyzer import Analyzer
from ragnar_core.store.cache import VectorTable
from ragnar_core.store.doctor import Finding, check
from ragnar_core.store.history import Written, read_history
from ragnar_core.store.index import IndexState, index_state
from ragnar_core.store.layout import Layout
from ragnar_core.store.opened import Opened
from ragnar_core.store.postings import PostingsTable
from ragnar_core.store.text import frame_of, rows_of
from ragnar_core.store.write import find_existing


@dataclass(frozen=True)
class StoreCounts:
    """How much a store holds; `bytes` is the size of the file with its write-ahead log, 0 in memory."""

    documents: int
    chunks: int
    dim: int
    bytes: int


class StoreReader:
    """The verbs of `Store` that change nothing."""

    location: str
    read_only: bool
    opened: Opened

    @property
    def layout(self) -> Layout:
        return self.opened.layout

    @property
    def name(self) -> str:
        return self.opened.name

    @property
    def title(self) -> str | None:
        return self.opened.title

    @property
    def version(self) -> int:
        """1 or 2: the layout of ragnar's that the file has."""
        return self.layout.version

    @property
    def dim(self) -> int:
        """Numbers a vector; 0 in a store without vectors."""
        return self.opened.dim

    @property
    def extra_cols(self) -> dict[str, str]:
        """Further columns of chunks: name -> DuckDB type."""
        return dict(self.opened.extra_cols)

    @property
    def revision(self) -> int:
        """A number that changes at each write."""
        return self.opened.revision

    @property
    def embed_config(self) -> dict[str, Any] | None:
        """The model's configuration, without secrets; None where the file names none."""
        return self.opened.embed_config

    @property
    def r_call(self) -> str | None:
        """What the file says about its model to other programs, as text: the R expression in `embed_func` that
        embeds `x`, or raghilda's embedding class; None when it says nothing."""
        return self.opened.r_call

    @property
    def analyzer(self) -> Analyzer:
        with self.opened.database.reading() as cursor:
            return self.opened.cache.term_coder(cursor).analyzer

    @property
    def chunk_settings(self) -> ChunkSettings | None:
        """The settings of the chunks written last, where they are known."""
        if not self.opened.has_own_tables:
            return None
        with self.opened.database.reading() as cursor:
            row = cursor.execute("SELECT chunk_settings FROM ragnar_state").fetchone()
        return ChunkSettings.from_dict(json.loads(row[0])) if row and row[0] else None

    def documents(self) -> pd.DataFrame:
        """doc_id, origin, chunks, characters: a row a document, in the order they came."""
        if self.version == 1:
            sql = (
                "SELECT min(chunk_id) AS doc_id, any_value(origin) AS origin, count(*) AS chunks, "
                "sum(length(text)) AS characters FROM chunks "
                "GROUP BY origin, CASE WHEN origin IS NULL THEN chunk_id END ORDER BY 1"
            )
        else:
            sql = (
                "SELECT d.doc_id, d.origin, coalesce(e.chunks, 0) AS chunks, length(d.text) AS characters "
                f"FROM documents d LEFT JOIN "
                f"(SELECT doc_id, count(*) AS chunks FROM {self.layout.table} GROUP BY doc_id) e "
                "USING (doc_id) ORDER BY d.doc_id"
            )
        with self.opened.database.reading() as cursor:
            frame = frame_of(cursor.execute(sql).to_arrow_table())
        return frame.assign(
            chunks=frame["chunks"].astype(np.int64), characters=frame["characters"].fillna(0).astype(np.int64)
        )

    def history(self, which: str | int) -> list[Written]:
        """Each time a document (by origin or doc_id) was written here, oldest first; empty where another program
        wrote it."""
        if not self.opened.has_own_tables:
            return []
        with self.opened.database.reading() as cursor:
            found = find_existing(self, cursor, which)
            if found is None:
                return []
            if self.version == 1:
                return read_history(cursor, None, which if isinstance(which, str) else None)
            return read_history(cursor, found.doc_id, None)

    def document(self, which: str | int) -> MarkdownDocument:
        """A document by origin or doc_id. In a version 1 store, which keeps no documents, its chunks joined by blank
        lines. Raises StoreError when there is none."""
        with self.opened.database.reading() as cursor:
            if self.version == 1:
                found = find_existing(self, cursor, which)
                if found is not None:
                    rows = rows_of(cursor, self.layout, found.chunk_ids, ())
                    return MarkdownDocument("\n\n".join(rows["text"]), rows["origin"].iloc[0])
            else:
                column = "origin" if isinstance(which, str) else "doc_id"
                value = which if isinstance(which, str) else int(which)
                row = cursor.execute(
                    f"SELECT text, origin FROM documents WHERE {column} = ?", [value]
                ).fetchone()
                if row is not None:
                    return exact_document(row[0] or "", row[1])
        raise StoreError(
            f"there is no document {which!r} in {self.location}; documents() lists what there is"
        )

    def chunks(self, doc_id: int | None = None) -> pd.DataFrame:
        """chunk_id, doc_id, origin, start, end, context, text and extra columns; of one document or of all."""
        with self.opened.database.snapshot() as cursor:
            ids = None
            if doc_id is not None:
                if self.version == 1:
                    found = find_existing(self, cursor, int(doc_id))
                    ids = np.zeros(0, np.int64) if found is None else found.chunk_ids
                else:
                    sql = f"SELECT chunk_id FROM {self.layout.table} WHERE doc_id = ? ORDER BY chunk_id"
                    ids = np.asarray(cursor.execute(sql, [int(doc_id)]).fetchnumpy()["chunk_id"], np.int64)
            return rows_of(cursor, self.layout, ids, list(self.opened.extra_cols))

    def fetch(self, chunk_ids: Sequence[int] | np.ndarray[Any, Any]) -> pd.DataFrame:
        """The rows of `chunks()` for some ids, in their order; ids that are gone have no row."""
        with self.opened.database.snapshot() as cursor:
            ids = np.asarray(chunk_ids, np.int64)
            return rows_of(cursor, self.layout, ids, list(self.opened.extra_cols))

    def counts(self) -> StoreCounts:
        if self.version == 1:
            sql = "SELECT count(DISTINCT origin) + count(*) FILTER (origin IS NULL), count(*) FROM chunks"
        else:
            sql = "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM embeddings)"
        with self.opened.database.reading() as cursor:
            row = cursor.execute(sql).fetchone()
        assert row is not None
        path = self.opened.database.path
        size = sum(p.stat().st_size for p in (Path(path), Path(path + ".wal")) if p.exists()) if path else 0
        return StoreCounts(int(row[0]), int(row[1]), self.dim, size)

    def vectors(self) -> VectorTable:
        """All vectors as one matrix, kept for the process until the next write."""
        return self.opened.cache.vectors(self.opened.database.snapshot)

    def postings(self) -> PostingsTable:
        """All postings by term, kept for the process until the next write. Chunks that another program wrote are
        indexed on the way, so that a search never misses them; `build_index` saves that work for the next time."""
        return self.opened.cache.postings(self.opened.database.snapshot)

    def index_state(self) -> IndexState:
        """What BM25 and vector search find up to date, and what of R's own indexes is in the file."""
        return index_state(self)  # type: ignore[arg-type]

    def check(self, *, probe: bool | None = None) -> list[Finding]:
        """The store doctor: everything that is wrong, worst first, each with the repair that `repair` offers.

        `probe` embeds three chunks again to see whether the vectors are the model's; None does it where that is free.
        """
        return check(self, probe=probe)  # type: ignore[arg-type]


def exact_document(text: str, origin: str | None) -> MarkdownDocument:
    """A document whose text is exactly what the file holds, since ranges point into it."""
    document = MarkdownDocument(text, origin)
    if document.text != text:
        object.__setattr__(document, "text", text)
    return document
