"""Documents, chunks, vectors and postings in one DuckDB file that ragnar (R) opens as well."""

from __future__ import annotations

from ragnar_core.store.analyzer import Analyzer, AnalyzerOptions
from ragnar_core.store.cache import VectorTable
from ragnar_core.store.doctor import Finding
from ragnar_core.store.history import Written
from ragnar_core.store.index import IndexState
from ragnar_core.store.ingest import IngestProgress, IngestSummary
from ragnar_core.store.postings import PostingsTable
from ragnar_core.store.reading import StoreCounts
from ragnar_core.store.store import Store
from ragnar_core.store.text import searched_text
from ragnar_core.store.update import UpdateResult

__all__ = [
    "Analyzer",
    "AnalyzerOptions",
    "Finding",
    "IndexState",
    "IngestProgress",
    "IngestSummary",
    "PostingsTable",
    "Store",
    "StoreCounts",
    "UpdateResult",
    "VectorTable",
    "Written",
    "searched_text",
]
