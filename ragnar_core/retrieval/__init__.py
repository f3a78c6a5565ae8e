"""Find chunks: vector similarity (VSS), keywords (BM25), both; filter, merge, explain, compare."""

from __future__ import annotations

from ragnar_core.retrieval.bm25 import retrieve_bm25
from ragnar_core.retrieval.deoverlap import chunks_deoverlap
from ragnar_core.retrieval.hybrid import retrieve_hybrid
from ragnar_core.retrieval.retrieve import retrieve
from ragnar_core.retrieval.selection import Selection
from ragnar_core.retrieval.vss import retrieve_vss

__all__ = [
    "Selection",
    "chunks_deoverlap",
    "retrieve",
    "retrieve_bm25",
    "retrieve_hybrid",
    "retrieve_vss",
]
