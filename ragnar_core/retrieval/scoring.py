"""The array code under every search: distances, BM25 sums and exact top-k with ties broken by chunk_id.

Row numbers (``rows``) index ``VectorTable.chunk_ids`` and ``PostingsTable.chunk_ids``, which are ascending
and equal, so the lower row is the lower chunk_id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable, VectorTable

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

VSS_METHODS = ("cosine_distance", "euclidean_distance", "negative_inner_product")
FLOAT32_STEP = 2.0**-24
BLOCK = 8192
SCORE_STEP = 1e-12


@dataclass(frozen=True)
class Ranking:
    """Rows best first, each with its metric: ``rows`` int64 (m,), ``values`` float64 (m,). Not ``exact``: a better
    row may be missing."""

    rows: Rows
    values: Floats
    exact: bool = True

    def __len__(self) -> int:
        return len(self.rows)


def rank_vectors(
    table: VectorTable, query: NDArray[Any], method: str, top_k: int, allowed: Rows | None = None
) -> Ranking:
    """The ``top_k`` nearest rows, exactly, with distances in float64; ties go to the lower chunk_id.

    A float32 product over all rows finds every row that could be among the nearest given the error such a
    product can have (``dim * 2**-24`` of the lengths multiplied); those few are measured again in float64.
    """
    rows, closeness = _closeness(table, query, method, allowed)
    if len(closeness) > top_k:
        kth = np.partition(closeness, len(closeness) - top_k)[len(closeness) - top_k]
        keep = np.flatnonzero(closeness >= kth - 2 * _closeness_error(table, query, method))
        rows = keep if rows is None else rows[keep]
    elif rows is None:
        rows = np.arange(len(closeness))
    values = vector_distances(table, query, method, rows)
    order = np.lexsort((rows, values))[:top_k]
    return Ranking(rows[order].astype(np.int64), values[order])


def rank_of_row(
    table: VectorTable, query: NDArray[Any], method: str, row: int, allowed: Rows | None = None
) -> int:
    """The place (from 1) of an allowed row in the whole ranking of ``rank_vectors``."""
    rows, closeness = _closeness(table, query, method, allowed)
    own = closeness[row if rows is None else np.searchsorted(rows, row)]
    error = 2 * _closeness_error(table, query, method)
    near = np.flatnonzero(np.abs(closeness - own) <= error)
    near = near if rows is None else rows[near]
    distances = vector_distances(table, query, method, near)
    mine = distances[near == row][0]
    before = np.count_nonzero((distances < mine) | ((distances == mine) & (near < row)))
    return 1 + int(np.count_nonzero(closeness > own + error)) + int(before)


def vector_distances(table: VectorTable, query: NDArray[Any], method: str, rows: Rows) -> Floats:
    """Distances of the given rows in float64, each row computed alike whatever stands beside it."""
    wide = np.asarray(query, dtype=np.float64)
    out = np.empty(len(rows), dtype=np.float64)
    for at in range(0, len(rows), BLOCK):
        block = table.matrix[rows[at : at + BLOCK]].astype(np.float64)
        # Multiply-and-sum instead of a BLAS product: equal vectors must get equal distances, or ties break by
        # noise.
        if method == "euclidean_distance":
            out[at : at + BLOCK] = np.sqrt(np.square(block - wide).sum(axis=1))
            continue
        dots = (block * wide).sum(axis=1)
        if method == "cosine_distance":
            lengths = np.sqrt(np.square(block).sum(axis=1)) * np.sqrt(np.square(wide).sum())
            cosine = np.divide(dots, lengths, out=np.full(len(dots), -1.0), where=lengths > 0)
            out[at : at + BLOCK] = np.clip(1.0 - cosine, 0.0, 2.0)
        else:
            out[at : at + BLOCK] = -dots
    return out


def _closeness(
    table: VectorTable, query: NDArray[Any], method: str, allowed: Rows | None
) -> tuple[Rows | None, NDArray[np.float32]]:
    """Float32, larger is nearer, in the order of the metric; over ``allowed`` rows or (None) over all."""
    vector = np.asarray(query, dtype=np.float32)
    few = allowed is not None and len(allowed) * 4 < len(table.matrix)
    dots = (table.matrix[allowed] if few else table.matrix) @ vector
    if allowed is not None and not few:
        dots = dots[allowed]
    if method == "negative_inner_product" or (method == "cosine_distance" and table.unit):
        return allowed, dots
    norms = table.norms if allowed is None else table.norms[allowed]
    if method == "cosine_distance":
        return allowed, np.divide(dots, norms, out=np.full_like(dots, -np.inf), where=norms > 0)
    return allowed, 2 * dots - norms * norms


def _closeness_error(table: VectorTable, query: NDArray[Any], method: str) -> float:
    length = float(np.linalg.norm(np.asarray(query, dtype=np.float64)))
    longest = float(table.norms.max(initial=0.0))
    step = (table.matrix.shape[1] + 8) * FLOAT32_STEP
    if method == "cosine_distance":
        # A table counts as unit when its norms are 1 within 1e-3; dividing or not may then move a cosine as
        # much.
        spread = float(np.abs(table.norms - 1).max(initial=0.0)) if table.unit else 0.0
        return float(length * (step + spread))
    if method == "euclidean_distance":
        return float(step * (2 * length * longest + longest * longest))
    return float(step * length * longest)


def bm25_scores(
    postings: PostingsTable, terms: Sequence[str], *, k: float, b: float, conjunctive: bool
) -> Floats:
    """BM25 of every row, float64 (n,), 0 where no term occurs (or, conjunctive, where one is missing).

    Sum over the distinct terms of ``idf * tf (k + 1) / (tf + k (1 - b + b len / avgdl))``, the formula of
    DuckDB's fts.
    """
    scores = np.zeros(len(postings.chunk_ids), dtype=np.float64)
    ids = [postings.terms.get(term) for term in dict.fromkeys(terms)]
    if conjunctive and None in ids:
        return scores
    found = np.zeros(len(scores), dtype=np.int32) if conjunctive else None
    for term_id in ids:
        if term_id is None:
            continue
        at = slice(int(postings.indptr[term_id]), int(postings.indptr[term_id + 1]))
        rows = postings.rows[at]
        frequency = postings.tf[at].astype(np.float64)
        scores[rows] += inverse_document_frequency(postings, len(rows)) * saturation(
            frequency, postings.lengths[rows], float(postings.average_length), k=k, b=b
        )
        if found is not None:
            found[rows] += 1
    if found is not None:
        scores[found < len(ids)] = 0.0
    return scores


def inverse_document_frequency(postings: PostingsTable, document_frequency: int) -> float:
    """``log10((N - df + 0.5) / (df + 0.5) + 1)``, N counting empty chunks; always above 0."""
    n = len(postings.chunk_ids)
    return float(np.log10((n - document_frequency + 0.5) / (document_frequency + 0.5) + 1))


def saturation(
    frequency: Floats, lengths: NDArray[Any], average_length: float, *, k: float, b: float
) -> Floats:
    """What a term's frequency counts for in chunks of these lengths (tokens): between 0 and ``k + 1``."""
    norm = k * (1 - b + b * np.asarray(lengths, dtype=np.float64) / average_length)
    return frequency * (k + 1) / (frequency + norm)


def rounded(scores: Floats) -> Floats:
    """Scores to 12 decimals: sums that are equal on paper are then equal, so that ties break by chunk_id."""
    return np.round(scores, 12)


def rank_scores(scores: Floats, top_k: int, allowed: Rows | None = None) -> Ranking:
    """The ``top_k`` rows with the highest scores above 0; ties go to the lower row."""
    if allowed is None:
        rows = np.flatnonzero(scores)
        values = scores[rows]
    else:
        values = scores[allowed]
        hit = np.flatnonzero(values)
        rows, values = allowed[hit], values[hit]
    if len(rows) > top_k:
        kth = np.partition(values, len(values) - top_k)[len(values) - top_k]
        keep = np.flatnonzero(values >= kth - 2 * SCORE_STEP)
        rows, values = rows[keep], values[keep]
    values = rounded(values)
    order = np.lexsort((rows, -values))[:top_k]
    return Ranking(rows[order].astype(np.int64), values[order])
