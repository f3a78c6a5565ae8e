"""Vector and keyword search fused into one list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.prepared import NOTHING, Prepared, prepare
from ragnar_core.retrieval.query import (
    check_bm25,
    check_method,
    check_text,
    check_top_k,
    check_weights,
    is_number,
)
from ragnar_core.retrieval.scoring import Floats, Ranking, Rows
from ragnar_core.retrieval.selection import Candidates, Selection, select
from ragnar_core.retrieval.thresholds import check_threshold

if TYPE_CHECKING:
    from ragnar_core.store import Store

FUSIONS = ("rrf", "weighted_scores", "convex")
DEFAULT_WEIGHTS: dict[str, tuple[float, float]] = {
    "rrf": (1.0, 1.0),
    "weighted_scores": (1.0, 1.0),
    "convex": (9.0, 1.0),
}


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
    weights: tuple[float, float] | None = None,
    rrf_k: float = 60,
    filter: str | Mapping[str, Any] | Filter | None = None,
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
    exact: bool = False,
) -> pd.DataFrame:
    """Chunks in the order of both searches together, best first; equal scores in the order of chunk_id.

    Each search gives its best ``candidates`` chunks. ``fusion="rrf"``, reciprocal rank fusion (Cormack and
    others 2009), scores a chunk ``w_vss / (rrf_k + vss_rank) + w_bm25 / (rrf_k + bm25_rank)``, a missing rank
    adding nothing. ``fusion="weighted_scores"`` scores it
    ``(w_vss * s_vss + w_bm25 * s_bm25) / (w_vss + w_bm25)``, where both ``s`` run from 0 to 1: the distance
    between that of the last candidate (0) and of the first (1), and the BM25 score as a share of the best
    one. ``fusion="convex"`` (Bruch and others 2023, with theoretical minima) takes every candidate's both scores
    as they are, wherever it ranks: ``s_vss = (1 + cosine) / (1 + best cosine)`` and the BM25 score as a share of
    the best one; a lead in cosine then counts as much in every query. A search of weight 0 gives no candidates.

    Args:
        weights: of VSS and of BM25; None stands for (1, 1), and (9, 1) for "convex", whose cosines lie close
            together.
        rrf_k: the larger, the less the first ranks stand out.
        candidates: how deep each search goes; at least ``top_k`` is taken, and more where passages run out.
        min_similarity: leave out chunks below it, whichever search found them; so does min_bm25.
        vector: the query's vector where it is known; else the store's embedder makes it.
        exact: as in ``retrieve_vss``, whose ``.attrs["vss"]`` the result has as well.
        Others: as in ``retrieve_vss`` and ``retrieve_bm25``.

    Returns:
        The columns of ``store.fetch`` with ``metric_name`` (the fusion), ``metric_value``, the distance under
        the name of its method, ``bm25`` (0 where no term occurs), ``vss_rank`` and ``bm25_rank`` (missing
        beyond the candidates), and ``score`` (the same number as ``metric_value``; comparable within one
        query only).

    Raises:
        RetrievalError, FilterError, EmbedError: as the two searches do.
    """
    top_k = check_top_k(top_k)
    check_method(method)
    check_bm25(k, b)
    check_fusion(fusion, rrf_k)
    weights = fusion_weights(weights, fusion)
    reach = check_top_k(candidates, "candidates")
    check_threshold("min_similarity", min_similarity)
    check_threshold("min_bm25", min_bm25)
    ready = prepare(
        store,
        check_text(query),
        filter=filter,
        method=method,
        k=k,
        b=b,
        conjunctive=conjunctive,
        min_similarity=min_similarity,
        min_bm25=min_bm25,
        vector=vector,
        exact=exact,
    )

    def ranker(depth: int) -> Candidates:
        fused = fuse_prepared(ready, weights, fusion=fusion, rrf_k=rrf_k, candidates=max(reach, depth))
        return _candidates(ready, fused, fusion, depth)

    found = select(store, ranker, top_k, selection or Selection())
    found.attrs.update(ready.facts)
    return found


def check_fusion(fusion: str, rrf_k: float) -> None:
    if fusion not in FUSIONS:
        raise RetrievalError(f"fusion {fusion!r} is unknown; use one of {', '.join(FUSIONS)}")
    if not is_number(rrf_k) or rrf_k < 0:
        raise RetrievalError(f"rrf_k must be a number of 0 or more, not {rrf_k!r}")


def fusion_weights(weights: object, fusion: str) -> tuple[float, float]:
    """The weights as given, or those that a fusion starts with. Raises RetrievalError."""
    return DEFAULT_WEIGHTS[fusion] if weights is None else check_weights(weights)


def fuse_prepared(
    ready: Prepared, weights: tuple[float, float], *, fusion: str, rrf_k: float, candidates: int
) -> Fused:
    by_vss = ready.by_vss(candidates) if weights[0] else NOTHING
    by_bm25 = ready.by_bm25(candidates) if weights[1] else NOTHING
    if fusion == "convex":
        return _convex(ready, by_vss, by_bm25, weights)
    return fuse(by_vss, by_bm25, weights, fusion=fusion, rrf_k=rrf_k)


def fuse(
    by_vss: Ranking,
    by_bm25: Ranking,
    weights: tuple[float, float],
    *,
    fusion: str = "rrf",
    rrf_k: float = 60,
) -> Fused:
    """Two rankings as one, every row of either; by "rrf" or "weighted_scores", which need nothing but ranks and
    values."""
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
    return _ordered(rows, vss_rank, bm25_rank, parts)


def _convex(ready: Prepared, by_vss: Ranking, by_bm25: Ranking, weights: tuple[float, float]) -> Fused:
    rows = np.union1d(by_vss.rows, by_bm25.rows).astype(np.int64)
    share = np.asarray(weights, dtype=np.float64) / sum(weights)
    parts = [np.zeros(len(rows)), np.zeros(len(rows))]
    if len(by_vss):
        similarity = 2 - ready.distances(rows, "cosine_distance")
        parts[0] = share[0] * similarity / max(float(similarity.max()), 1e-300)
    if len(by_bm25):
        parts[1] = share[1] * ready.scores[rows] / float(by_bm25.values[0])
    return _ordered(rows, _placed(rows, by_vss)[0], _placed(rows, by_bm25)[0], parts)


def _ordered(
    rows: Rows, vss_rank: NDArray[np.int64], bm25_rank: NDArray[np.int64], parts: list[Floats]
) -> Fused:
    score = parts[0] + parts[1]
    order = np.lexsort((rows, -score))
    return Fused(
        rows[order], score[order], vss_rank[order], bm25_rank[order], parts[0][order], parts[1][order]
    )


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
    return np.asarray((farthest - distance) / (farthest - nearest))


def _candidates(ready: Prepared, fused: Fused, fusion: str, depth: int) -> Candidates:
    rows, score = fused.rows[:depth], fused.score[:depth]
    best = float(score[0]) if len(score) and score[0] > 0 else 1.0
    columns = {
        "metric_name": fusion,
        "metric_value": score,
        ready.method: ready.distances(rows),
        "bm25": ready.scores[rows],
        "vss_rank": _nullable(fused.vss_rank[:depth]),
        "bm25_rank": _nullable(fused.bm25_rank[:depth]),
        "score": score,
    }
    return Candidates(ready.postings.chunk_ids[rows], columns, score / best)


def _nullable(rank: NDArray[np.int64]) -> Any:
    return pd.arrays.IntegerArray(rank.copy(), rank == 0)
