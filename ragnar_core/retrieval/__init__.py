"""Find chunks: vector similarity (VSS), keywords (BM25), both; filter, merge, explain, compare."""

from __future__ import annotations

from ragnar_core.retrieval.absence import Absence, why_not
from ragnar_core.retrieval.allowed import ColumnChoice, count_matching, filter_choices
from ragnar_core.retrieval.bm25 import retrieve_bm25
from ragnar_core.retrieval.budget import estimate_tokens, fit_tokens
from ragnar_core.retrieval.compare import Comparison, Move, compare_results
from ragnar_core.retrieval.deoverlap import chunks_deoverlap
from ragnar_core.retrieval.explain import (
    Bm25Explanation,
    Explanation,
    FusionExplanation,
    SentenceMatch,
    TermContribution,
    VssExplanation,
    explain,
    nearest_sentences,
    query_matches,
)
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.hybrid import retrieve_hybrid
from ragnar_core.retrieval.retrieve import retrieve
from ragnar_core.retrieval.search import SearchSettings, search, search_batch, search_ids
from ragnar_core.retrieval.selection import Selection
from ragnar_core.retrieval.vss import retrieve_vss

__all__ = [
    "Absence",
    "Bm25Explanation",
    "ColumnChoice",
    "Comparison",
    "Explanation",
    "Filter",
    "FusionExplanation",
    "Move",
    "SearchSettings",
    "Selection",
    "SentenceMatch",
    "TermContribution",
    "VssExplanation",
    "chunks_deoverlap",
    "compare_results",
    "count_matching",
    "estimate_tokens",
    "explain",
    "filter_choices",
    "fit_tokens",
    "nearest_sentences",
    "query_matches",
    "retrieve",
    "retrieve_bm25",
    "retrieve_hybrid",
    "retrieve_vss",
    "search",
    "search_batch",
    "search_ids",
    "why_not",
]
