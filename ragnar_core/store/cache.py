"""What searching needs in memory: the vectors as one matrix and the postings by term.

Both belong to the process's one open file and to a revision. A write leaves a note of what it took away and added; the
next search brings the tables up to date from the notes, or reads them anew when there are too many.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragnar_core.store.analyzer import Analyzer, AnalyzerOptions
from ragnar_core.store.layout import Layout
from ragnar_core.store.postings import ChunkTerms, Ints, PostingsTable, TermCoder, Terms
from ragnar_core.store.segments import read_segments, read_terms
from ragnar_core.store.text import texts_of

Floats = NDArray[np.float32]

_MOST_NOTES = 500
_BATCH = 8192

Snapshot = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]


@dataclass(frozen=True)
class VectorTable:
    """The store's vectors: `matrix` float32 `(n, dim)`, row i belonging to `chunk_ids[i]` (int64, ascending).

    `norms` float32 `(n,)` are the lengths of the rows; a chunk without a vector has a row of zeros and norm 0. `unit`
    says that all vectors have length 1, so that a dot product is the cosine.
    """

    chunk_ids: Ints
    matrix: Floats
    norms: Floats
    unit: bool

    def __len__(self) -> int:
        return len(self.chunk_ids)


@dataclass(frozen=True)
class Change:
    """One committed write: chunks taken away, chunks added (ids ascending)."""

    revision: int
    gone: Ints
    new_ids: Ints
    vectors: Floats
    terms: ChunkTerms


class Cache:
    """The tables of one open file. Safe to share between threads."""

    def __init__(self, layout: Layout, dim: int) -> None:
        self.layout = layout
        self.dim = dim
        self.revision = 0
        # How often the vectors were read from the file; between two times a chunk's vector does not change.
        self.loads = 0
        self.coder: TermCoder | None = None
        self._lock = threading.RLock()
        self._notes: list[Change] = []
        self._vectors: tuple[int, VectorTable, _Buffer] | None = None
        self._postings: tuple[int, PostingsTable] | None = None

    def note(self, change: Change) -> None:
        with self._lock:
            self.revision = change.revision
            self._notes.append(change)
            if len(self._notes) > _MOST_NOTES:
                self._catch_up()

    def forget_tables(self, revision: int) -> None:
        """After a change that is no list of chunks; the tables are read anew when they are asked for."""
        with self._lock:
            self.revision = revision
            self._notes.clear()
            self._vectors = self._postings = None

    def forget(self, revision: int) -> None:
        """After other analyzer options or another model."""
        with self._lock:
            self.forget_tables(revision)
            self.coder = None

    def standing_still(self) -> AbstractContextManager[bool]:
        """While it is entered no table is read, so that terms and postings change together."""
        return self._lock

    def vectors(self, open_snapshot: Snapshot) -> VectorTable:
        with self._lock:
            self._catch_up()
            if self._vectors is None:
                with open_snapshot() as cursor:
                    revision = file_revision(cursor)
                    table = load_vectors(cursor, self.layout, self.dim)
                self._vectors = (revision, table, _Buffer(table.matrix, len(table)))
                self.loads += 1
            return self._vectors[1]

    def postings(self, open_snapshot: Snapshot) -> PostingsTable:
        with self._lock:
            self._catch_up()
            if self._postings is None:
                with open_snapshot() as cursor:
                    revision = file_revision(cursor)
                    table = load_postings(cursor, self.layout, self.term_coder(cursor))
                self._postings = (revision, table)
            return self._postings[1]

    def term_coder(self, cursor: duckdb.DuckDBPyConnection) -> TermCoder:
        with self._lock:
            if self.coder is None:
                self.coder = load_coder(cursor)
            return self.coder

    def _catch_up(self) -> None:
        """Brings loaded tables up to date from the notes. A table may have been read after a write and before its
        note arrived, so each looks only at notes newer than itself."""
        if not self._notes:
            return
        if self._vectors is not None:
            revision, table, buffer = self._vectors
            since = _Sum.of([note for note in self._notes if note.revision > revision])
            if since.follows(table.chunk_ids):
                table, buffer = buffer.changed(table, since.gone, since.new_ids, since.vectors)
                self._vectors = (self.revision, table, buffer)
            else:
                self._vectors = None
        if self._postings is not None:
            revision, postings = self._postings
            since = _Sum.of([note for note in self._notes if note.revision > revision])
            if self.coder is not None and since.follows(postings.chunk_ids):
                known = len(self.coder.ids)
                terms = Terms(self.coder.ids, known)
                postings = postings.changed(since.gone, since.new_ids, since.terms, terms, known)
                self._postings = (self.revision, postings)
            else:
                self._postings = None
        self._notes.clear()


@dataclass(frozen=True)
class _Sum:
    """Several changes as one: what is gone in the end and what is new in the end."""

    gone: Ints
    new_ids: Ints
    vectors: Floats
    terms: ChunkTerms

    @classmethod
    def of(cls, notes: list[Change]) -> _Sum:
        if not notes:
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, np.zeros((0, 0), np.float32), ChunkTerms.join([]))
        gone = np.concatenate([note.gone for note in notes])
        new_ids = np.concatenate([note.new_ids for note in notes])
        vectors = np.concatenate([note.vectors for note in notes])
        terms = ChunkTerms.join([note.terms for note in notes])
        stays = np.flatnonzero(~np.isin(new_ids, gone))
        if len(stays) < len(new_ids):
            new_ids, vectors, terms = new_ids[stays], vectors[stays], terms.take(stays)
        return cls(gone, new_ids, vectors, terms)

    def follows(self, ids: Ints) -> bool:
        """Whether all new ids are ascending and above `ids`, so that rows can be put behind the rest."""
        if not len(self.new_ids):
            return True
        return bool(np.all(np.diff(self.new_ids) > 0)) and (not len(ids) or bool(self.new_ids[0] > ids[-1]))


@dataclass(frozen=True)
class _Buffer:
    """Room behind a matrix, so that new rows are written where no reader of the old table looks."""

    matrix: Floats
    used: int

    def changed(
        self, table: VectorTable, gone: Ints, new_ids: Ints, vectors: Floats
    ) -> tuple[VectorTable, _Buffer]:
        buffer, ids, norms = self, table.chunk_ids, table.norms
        if not len(gone) and not len(new_ids):
            return table, self
        if len(gone) and np.isin(ids, gone).any():
            stays = ~np.isin(ids, gone)
            ids, norms = ids[stays], norms[stays]
            buffer = _Buffer(table.matrix[stays], len(ids))
        n = buffer.used + len(new_ids)
        if n > len(buffer.matrix):
            roomy = np.zeros((n + n // 4 + 64, table.matrix.shape[1]), np.float32)
            roomy[: buffer.used] = buffer.matrix[: buffer.used]
            buffer = _Buffer(roomy, buffer.used)
        buffer.matrix[buffer.used : n] = vectors
        buffer = replace(buffer, used=n)
        new_norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
        norms = np.concatenate([norms, new_norms])
        return (
            VectorTable(np.concatenate([ids, new_ids]), buffer.matrix[:n], norms, _unit(norms)),
            buffer,
        )


def load_vectors(cursor: duckdb.DuckDBPyConnection, layout: Layout, dim: int) -> VectorTable:
    if not dim:
        ids = cursor.execute(f"SELECT chunk_id FROM {layout.table} ORDER BY chunk_id").fetchnumpy()[
            "chunk_id"
        ]
        ids = np.asarray(ids, np.int64)
        return VectorTable(ids, np.zeros((len(ids), 0), np.float32), np.zeros(len(ids), np.float32), False)
    row = cursor.execute(f"SELECT count(*) FROM {layout.table}").fetchone()
    n = int(row[0]) if row else 0
    ids, matrix, at = np.zeros(n, np.int64), np.zeros((n, dim), np.float32), 0
    # Batch by batch, since the vectors of a large store should not be in memory twice.
    for batch in cursor.execute(f"SELECT chunk_id, embedding FROM {layout.table}").to_arrow_reader(_BATCH):
        ids[at : at + len(batch)] = batch.column(0).to_numpy()
        matrix[at : at + len(batch)] = fixed_size_matrix(batch.column(1), dim)
        at += len(batch)
    if len(ids) and np.any(np.diff(ids) <= 0):
        order = np.argsort(ids, kind="stable")
        ids, matrix = ids[order], matrix[order]
    norms = np.linalg.norm(matrix, axis=1).astype(np.float32)
    return VectorTable(ids, matrix, norms, _unit(norms))


def fixed_size_matrix(part: pa.Array, dim: int) -> Floats:
    """Rows of a DuckDB FLOAT[dim] column, float32 `(n, dim)`; rows that are NULL become zeros."""
    values = np.asarray(part.values.slice(part.offset * dim, len(part) * dim).to_numpy(zero_copy_only=False))
    matrix = np.ascontiguousarray(values, np.float32).reshape(len(part), dim)
    if part.null_count:
        matrix = matrix.copy()
        matrix[np.asarray(part.is_null())] = 0.0
    return matrix


def load_coder(cursor: duckdb.DuckDBPyConnection) -> TermCoder:
    """The store's analyzer with the terms its file knows; our options where the file has none."""
    if not has_own_tables(cursor):
        return TermCoder(Analyzer(), {})
    state = cursor.execute("SELECT analyzer FROM ragnar_state").fetchone()
    options = AnalyzerOptions.from_dict(json.loads(state[0])) if state and state[0] else AnalyzerOptions()
    return TermCoder(Analyzer(options), read_terms(cursor))


def load_postings(cursor: duckdb.DuckDBPyConnection, layout: Layout, coder: TermCoder) -> PostingsTable:
    """Postings from the file; of chunks that it has none of (another program wrote them), from their texts."""
    ids = cursor.execute(f"SELECT chunk_id FROM {layout.table} ORDER BY chunk_id").fetchnumpy()["chunk_id"]
    ids = np.asarray(ids, np.int64)
    stored_ids, stored = np.zeros(0, np.int64), ChunkTerms.join([])
    if has_own_tables(cursor):
        stored_ids, stored = read_segments(cursor)
    if not np.array_equal(stored_ids, ids):
        live = np.isin(stored_ids, ids)
        missing = ids[~np.isin(ids, stored_ids)]
        fresh = coder.encode(texts_of(cursor, layout, missing))
        kept = np.flatnonzero(live)
        both = ChunkTerms.join([stored.take(kept), fresh])
        both_ids = np.concatenate([stored_ids[kept], missing])
        stored = both.take(np.argsort(both_ids, kind="stable"))
    known = len(coder.ids)
    return PostingsTable.build(Terms(coder.ids, known), ids, stored, known)


def file_revision(cursor: duckdb.DuckDBPyConnection) -> int:
    """The number of writes by this library that the file has seen; 0 for another program's file."""
    if not has_own_tables(cursor):
        return 0
    row = cursor.execute(
        "SELECT greatest((SELECT max(revision) FROM ragnar_state), (SELECT max(revision) FROM ragnar_postings))"
    ).fetchone()
    return int(row[0] or 0) if row else 0


def has_own_tables(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Whether the file has our tables, in the form this version writes."""
    found = cursor.execute(
        "SELECT count(*) FROM duckdb_columns() WHERE schema_name = 'main' AND (table_name, column_name) IN "
        "(('ragnar_state', 'analyzer'), ('ragnar_terms', 'first_term_id'), ('ragnar_postings', 'sizes'), "
        "('ragnar_history', 'written'))"
    ).fetchone()
    return found == (4,)


def _unit(norms: Floats) -> bool:
    return bool(len(norms)) and bool(np.all(np.abs(norms - 1.0) < 1e-3))
