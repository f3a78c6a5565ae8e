"""From a query to result columns: what the Start and Compare pages draw."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from pages.shared import workspace
from pages.shared.components.rank_compare import Column, Hit, rank_compare
from pages.shared.text import snippet, utf16_spans
from ragnar_core import Store, retrieve_bm25, retrieve_hybrid, retrieve_vss

TITLES = {"vss": "VSS", "bm25": "BM25", "hybrid": "Hybrid"}
METRICS = {
    "vss": "cosine distance, lower is nearer",
    "bm25": "BM25 score, higher is better",
    "hybrid": "reciprocal rank fusion, higher is better",
}
EMPTY = {
    "vss": "No passage has a vector to compare with.",
    "bm25": "No passage contains a word of this query. BM25 matches words, not meanings: try other words, "
    "or look at VSS.",
    "hybrid": "Neither method found a passage.",
}


def search(
    store: Store, query: str, *, methods: Sequence[str] = ("vss", "bm25"), top_k: int = 10
) -> list[Column]:
    """One column a method, most relevant passage first."""
    return [column(store, query, method, found(store, query, method, top_k)) for method in methods]


def found(store: Store, query: str, method: str, top_k: int) -> pd.DataFrame:
    if method == "vss":
        return retrieve_vss(store, query, top_k=top_k)
    if method == "bm25":
        return retrieve_bm25(store, query, top_k=top_k)
    return retrieve_hybrid(store, query, top_k=top_k)


def column(store: Store, query: str, method: str, table: pd.DataFrame) -> Column:
    terms = set(store.analyzer.tokens(query))
    score = "score" if method == "hybrid" else "metric_value"
    hits = [_hit(store, row, terms, getattr(row, score)) for row in table.itertuples(index=False)]
    return Column(TITLES[method], METRICS[method], method, hits, EMPTY[method])


def _hit(store: Store, row, terms: set[str], score: float) -> Hit:
    spans = matches(store, row.text, terms)
    shown, marks = snippet(row.text, spans)
    return Hit(
        id=int(row.chunk_id),
        origin=row.origin or "no origin",
        score=f"{score:.3f}",
        context=" › ".join(line.lstrip("# ") for line in (row.context or "").split("\n") if line.strip()),
        snippet=shown,
        marks=marks,
        text=row.text,
        text_marks=utf16_spans(row.text, spans),
        facts=f"chunk {row.chunk_id} · characters {row.start:,}–{row.end:,} · {row.end - row.start:,} long",
    )


def matches(store: Store, text: str, terms: set[str]) -> list[tuple[int, int]]:
    """Ranges of `text` whose indexed term is one of `terms`, in order, without overlaps."""
    spans = sorted((start, end) for term, start, end in store.analyzer.spans(text) if term in terms)
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def show(columns: list[Column], *, query: str, key: str, store: str) -> None:
    """Draw the columns; a wish to see a passage in Inspect is followed."""
    action = rank_compare(columns, query=query, key=key)
    if action and "inspect" in action:
        st.session_state["inspect_chunk"] = int(action["inspect"])
        workspace.go("pages/inspect.py", store=store)
