"""Vector and keyword search fused into one list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.allowed import allowed_rows
from ragnar_core.retrieval.query import (
    both_tables,
    check_bm25,
    check_method,
    check_text,
    check_top_k,
    check_weights,
    is_blank,
    query_terms,
    query_vector,
)
from ragnar_core.retrieval.scoring import (
    Floats,
    Ranking,
    Rows,
    bm25_scores,
    rank_scores,
    rank_vectors,
    vector_distances,
)
from ragnar_core.retrieval.selection import Candidates, Selection, select
from ragnar_core.retrieval.thresholds import check_threshold, passing, similar_rows

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable, Store, VectorTable

FUSIONS = ("rrf", "weighted_scores")


@dataclass(frozen=True)
class Fused:
    """Candidates of both methods, best first; ranks from 1, or 0 where the method lacks the row."""

    rows: Rows
    score: Floats
    vss_rank: NDArray[np.int64]
    bm25_rank: NDArray[np.int64]
    vss_part: Floats
    bm25_part: Floats


def retrieve_hybrid(
    store: Store,
    query: str,
    *,
    top_k: int = 3,
    weights: tuple[float, float] = (1, 1),
    rrf_k: float = 60,
    filter: str | Mapping[str, Any] | None = None,
    fusion: str = "rrf",
    method: str = "cosine_distance",
    k: float = 1.2,
    b: float = 0.75,
    conjunctive: bool = False,
    candidates: int = 100,
    min_similarity: float | None = None,
    min_bm25: float | None = None,
    selection: Selection | None = None,
    vector: Any = None,
) -> pd.DataFrame:
    """Chunks in the order of both searches together, best first; equal scores in the order of chunk_id.

    Each search gives its best ``candidates`` chunks. ``fusion="rrf"``, reciprocal rank fusion (Cormack and
    others 2009), scores a chunk ``w_vss / (rrf_k + vss_rank) + w_bm25 / (rrf_k + bm25_rank)``, a missing rank
    adding nothing. ``fusion="weighted_scores"`` scores it ``(w_vss * s_vss + w_bm25 * s_bm25) / (w_vss +
    w_bm25)``, where both ``s`` run from 0 to 1: the similarity between that of the last candidate (0) and of
    the first (1), and the BM25 score as a share of the best one. A search of weight 0 gives no candidates.

    Args:
        weights: of VSS and of BM25.
        rrf_k: the larger, the less the first ranks stand out.
        candidates: how deep each search goes; at least ``top_k`` is taken, and more where passages run out.
        min_similarity, min_bm25: leave out chunks below either, wherever they came from.
        vector: the query's vector where it is known; else the store's embedder makes it.
        Others: as in ``retrieve_vss`` and ``retrieve_bm25``.

    Returns:
        The columns of ``store.fetch`` with ``metric_name`` (the fusion), ``metric_value``, the distance under
        the name of its method, ``bm25`` (0 where no term occurs), ``vss_rank`` and ``bm25_rank`` (missing
        beyond the candidates), and ``score`` (the same number as ``metric_value``; comparable within one
        query only).

    Raises:
        RetrievalError, FilterError, EmbedError: as the two searches do.
    """
    top_k, weights = check_top_k(top_k), check_weights(weights)
    check_method(method)
    check_bm25(k, b)
    check_fusion(fusion, rrf_k)
    candidates = check_top_k(candidates)
    check_threshold("min_similarity", min_similarity)
    check_threshold("min_bm25", min_bm25)
    vectors, postings = both_tables(store)
    allowed = allowed_rows(store, filter, vectors.chunk_ids)
    if is_blank(check_text(query)):
        return select(store, lambda depth: _nothing(method, fusion), top_k, selection or Selection())
    vector = query_vector(store, query if vector is None else vector, method)
    allowed = similar_rows(vectors, vector, min_similarity, allowed)
    scores = bm25_scores(postings, query_terms(store, query), k=k, b=b, conjunctive=conjunctive)
    scores = passing(scores, min_bm25)
    if min_bm25:
        matched = np.flatnonzero(scores)
        allowed = matched if allowed is None else np.intersect1d(allowed, matched)

    def ranker(depth: int) -> Candidates:
        reach = max(candidates, depth)
        by_vss = rank_vectors(vectors, vector, method, reach, allowed) if weights[0] else NONE
        by_bm25 = rank_scores(scores, reach, allowed) if weights[1] else NONE
        fused = fuse(by_vss, by_bm25, weights, fusion=fusion, rrf_k=rrf_k)
        return _candidates(vectors, postings, vector, method, scores, fused, fusion, depth)

    return select(store, ranker, top_k, selection or Selection())


def check_fusion(fusion: str, rrf_k: float) -> None:
    if fusion not in FUSIONS:
        raise RetrievalError(f"fusion {fusion!r} is unknown; use one of {', '.join(FUSIONS)}")
    if isinstance(rrf_k, bool) or not isinstance(rrf_k, (int, float)) or not np.isfinite(rrf_k) or rrf_k < 0:
        raise RetrievalError(f"rrf_k must be a number of 0 or more, not {rrf_k!r}")


NONE = Ranking(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


def fuse(
    by_vss: Ranking,
    by_bm25: Ranking,
    weights: tuple[float, float],
    *,
    fusion: str = "rrf",
    rrf_k: float = 60,
) -> Fused:
    """Two rankings as one, every row of either."""
    rows = np.union1d(by_vss.rows, by_bm25.rows).astype(np.int64)
    vss_rank, vss_value = _placed(rows, by_vss)
    bm25_rank, bm25_value = _placed(rows, by_bm25)
    if fusion == "rrf":
        parts = [
            np.where(rank > 0, weight / (rrf_k + np.maximum(rank, 1)), 0.0)
            for rank, weight in ((vss_rank, weights[0]), (bm25_rank, weights[1]))
        ]
    else:
        share = np.asarray(weights, dtype=np.float64) / sum(weights)
        parts = [
            share[0] * np.where(vss_rank > 0, _scaled_distance(vss_value, by_vss), 0.0),
            share[1] * bm25_value / max(float(by_bm25.values.max(initial=0.0)), 1e-300),
        ]
    score = parts[0] + parts[1]
    order = np.lexsort((rows, -score))
    return Fused(*(values[order] for values in (rows, score, vss_rank, bm25_rank, *parts)))


def _placed(rows: Rows, ranking: Ranking) -> tuple[NDArray[np.int64], Floats]:
    rank = np.zeros(len(rows), dtype=np.int64)
    value = np.zeros(len(rows), dtype=np.float64)
    at = np.searchsorted(rows, ranking.rows)
    rank[at] = np.arange(1, len(ranking) + 1)
    value[at] = ranking.values
    return rank, value


def _scaled_distance(distance: Floats, ranking: Ranking) -> Floats:
    if not len(ranking):
        return np.zeros_like(distance)
    nearest, farthest = float(ranking.values[0]), float(ranking.values[-1])
    if farthest <= nearest:
        return np.ones_like(distance)
    return (farthest - distance) / (farthest - nearest)


def _candidates(
    vectors: VectorTable,
    postings: PostingsTable,
    vector: NDArray[np.float32],
    method: str,
    scores: Floats,
    fused: Fused,
    fusion: str,
    depth: int,
) -> Candidates:
    rows, score = fused.rows[:depth], fused.score[:depth]
    best = float(score[0]) if len(score) else 1.0
    columns = {
        "metric_name": fusion,
        "metric_value": score,
        method: vector_distances(vectors, vector, method, rows),
        "bm25": scores[rows],
        "vss_rank": _nullable(fused.vss_rank[:depth]),
        "bm25_rank": _nullable(fused.bm25_rank[:depth]),
        "score": score,
    }
    return Candidates(postings.chunk_ids[rows], columns, score / best)


def _nullable(rank: NDArray[np.int64]) -> Any:
    return pd.arrays.IntegerArray(rank.copy(), rank == 0)


def _nothing(method: str, fusion: str) -> Candidates:
    empty = np.empty(0, dtype=np.float64)
    ranks = _nullable(np.empty(0, dtype=np.int64))
    columns = {
        "metric_name": fusion,
        "metric_value": empty,
        method: empty,
        "bm25": empty,
        "vss_rank": ranks,
        "bm25_rank": ranks,
        "score": empty,
    }
    return Candidates(np.empty(0, dtype=np.int64), columns, empty)
