"""Documents, chunks, vectors and postings in one DuckDB file that ragnar (R) opens as well."""

from __future__ import annotations

from ragnar_core.store.analyzer import Analyzer, AnalyzerOptions
from ragnar_core.store.cache import VectorTable
from ragnar_core.store.postings import PostingsTable
from ragnar_core.store.store import Store, StoreCounts
from ragnar_core.store.text import searched_text
from ragnar_core.store.update import UpdateResult

__all__ = [
    "Analyzer",
    "AnalyzerOptions",
    "PostingsTable",
    "Store",
    "StoreCounts",
    "UpdateResult",
    "VectorTable",
    "searched_text",
]
