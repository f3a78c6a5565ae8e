"""One question made ready: tables, vector, terms, scores, and the chunks that filter and thresholds let
through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.retrieval.allowed import allowed_rows
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.near import rank_near
from ragnar_core.retrieval.query import both_tables, is_blank, query_terms, query_vector
from ragnar_core.retrieval.scoring import (
    Floats,
    Ranking,
    Rows,
    bm25_scores,
    rank_scores,
    vector_distances,
)
from ragnar_core.retrieval.thresholds import SLACK, passing, similar_rows
from ragnar_core.store.ann import GraphView, graph_view

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable, Store, VectorTable

NOTHING = Ranking(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


@dataclass(frozen=True)
class Prepared:
    """A question over both tables. ``vector`` is None for a blank text, or where ``no_vector`` says what kept
    it away; ``allowed`` is None when nothing is shut out. ``facts["vss"]`` says how the last ``by_vss``
    searched: "exact" or "approximate"."""

    vectors: VectorTable
    postings: PostingsTable
    vector: NDArray[np.float32] | None
    terms: list[str]
    scores: Floats
    filtered: Rows | None
    allowed: Rows | None
    method: str
    no_vector: str = ""
    graph: GraphView | None = None
    facts: dict[str, str] = field(default_factory=dict)

    def by_vss(self, depth: int) -> Ranking:
        if self.vector is None:
            return NOTHING
        found = rank_near(self.vectors, self.vector, self.method, depth, self.allowed, self.graph)
        self.facts["vss"] = "exact" if found.exact else "approximate"
        return found

    def by_bm25(self, depth: int) -> Ranking:
        return rank_scores(self.scores, depth, self.allowed)

    def distances(self, rows: Rows, method: str | None = None) -> Floats:
        if self.vector is None:
            return np.full(len(rows), np.nan)
        return vector_distances(self.vectors, self.vector, method or self.method, rows)


def prepare(
    store: Store,
    query: str,
    *,
    filter: str | Mapping[str, Any] | Filter | None = None,
    method: str = "cosine_distance",
    k: float = 1.2,
    b: float = 0.75,
    conjunctive: bool = False,
    min_similarity: float | None = None,
    min_bm25: float | None = None,
    vector: Any = None,
    words_only: bool = False,
    exact: bool = False,
) -> Prepared:
    """``words_only`` needs no vector; ``exact`` does without a store's graph. Raises what the searches raise:
    RetrievalError, FilterError, EmbedError."""
    vectors, postings = both_tables(store)
    filtered = allowed = allowed_rows(store, filter, vectors.chunk_ids)
    terms = query_terms(store, query)
    scores = bm25_scores(postings, terms, k=k, b=b, conjunctive=conjunctive)
    found = None
    if not words_only and (not is_blank(query) or vector is not None):
        found = query_vector(store, query if vector is None else vector, method)
        allowed = similar_rows(vectors, found, min_similarity, allowed)
    graph = graph_view(store, vectors) if found is not None and allowed is None and not exact else None
    if min_bm25:
        enough = passing(scores, min_bm25) >= min_bm25 - SLACK
        allowed = np.flatnonzero(enough) if allowed is None else allowed[enough[allowed]]
    return Prepared(vectors, postings, found, terms, scores, filtered, allowed, method, graph=graph)
