"""Keyword search: BM25 over the store's own postings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragnar_core.retrieval.allowed import allowed_rows
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.query import check_bm25, check_store, check_text, check_top_k, query_terms
from ragnar_core.retrieval.scoring import bm25_scores, rank_scores
from ragnar_core.retrieval.selection import Candidates, Selection, select
from ragnar_core.retrieval.thresholds import check_threshold, passing

if TYPE_CHECKING:
    from ragnar_core.store import Store


def retrieve_bm25(
    store: Store,
    query: str,
    *,
    top_k: int = 3,
    k: float = 1.2,
    b: float = 0.75,
    conjunctive: bool = False,
    filter: str | Mapping[str, Any] | Filter | None = None,
    min_bm25: float | None = None,
    selection: Selection | None = None,
) -> pd.DataFrame:
    """The chunks that match the query's words best, best first; equal scores in the order of chunk_id.

    The score is the sum over the query's distinct terms of ``idf * tf (k + 1) / (tf + k (1 - b + b len /
    avgdl))`` with ``idf = log10((N - df + 0.5) / (df + 0.5) + 1)`` (Robertson and others 1994, as DuckDB's
    fts computes it). Higher is better; scores are comparable within one query only. A filter never changes
    scores.

    Args:
        query: a text; its terms are found as the store found those of the chunks (``store.analyzer``).
        top_k: number of rows; fewer come back only where fewer chunks match.
        k: how much repetition of a term counts (0: not at all).
        b: how much long chunks are marked down (0: not at all, 1: fully).
        conjunctive: only chunks that hold every term of the query (words that the analyzer drops, as stop
            words, aside).
        filter: conditions on columns, as a dict or as text (see ``docs/retrieval.md``).
        min_bm25: leave out chunks with a lower score.
        selection: distinct passages, limits per document, diversity; see ``Selection``.

    Returns:
        The columns of ``store.fetch`` with ``metric_name`` ("bm25") and ``metric_value``. Chunks without any
        term of the query are no results.

    Raises:
        RetrievalError: a setting is out of range.
        FilterError: the filter does not parse or names an unknown column.
    """
    top_k = check_top_k(top_k)
    check_bm25(k, b)
    check_threshold("min_bm25", min_bm25)
    check_store(store)
    postings = store.postings()
    allowed = allowed_rows(store, filter, postings.chunk_ids)
    terms = query_terms(store, check_text(query))
    scores = passing(bm25_scores(postings, terms, k=k, b=b, conjunctive=conjunctive), min_bm25)
    best = float(scores.max(initial=0.0)) or 1.0

    def ranker(depth: int) -> Candidates:
        found = rank_scores(scores, depth, allowed)
        columns = {"metric_name": "bm25", "metric_value": found.values}
        return Candidates(postings.chunk_ids[found.rows], columns, found.values / best)

    return select(store, ranker, top_k, selection or Selection())
