"""Compare: one query, VSS beside BM25, and where each passage stands in the other list."""

from __future__ import annotations

import streamlit as st

from pages.shared import results, workspace
from pages.shared.shell import copy_as_python, header, through_navigation

through_navigation()
header("Compare", "One question, two ways of searching. Lines join the same passage in both lists.")
store = workspace.current_store()


@st.fragment
def board() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input(
            "Query", key="q", type="search", live="250ms", bind="query-params", placeholder="Type a question or words",
        )  # fmt: skip
        top_k = st.number_input("Top k", 1, 50, 8, key="top_k", bind="query-params", width=120)
        hybrid = st.toggle("Hybrid", key="hybrid", bind="query-params", help="A third list: both fused by rank.")
    query = (query or "").strip()
    if not query:
        st.info("Type a query. Results appear as you type.", icon=":material/search:")
        return
    with workspace.page_errors():
        columns = results.search(store, query, methods=("vss", "hybrid", "bm25") if hybrid else ("vss", "bm25"), top_k=top_k)
    _figures(columns[0], columns[-1], top_k)
    results.show(columns, query=query, key="board", store=workspace.current_name())
    copy_as_python(
        "from ragnar_core import Store, retrieve_bm25, retrieve_vss\n\n"
        f"with Store.connect({str(store.location)!r}) as store:\n"
        f"    print(retrieve_vss(store, {query!r}, top_k={top_k}))\n"
        f"    print(retrieve_bm25(store, {query!r}, top_k={top_k}))\n"
    )


def _figures(left: results.Column, right: results.Column, top_k: int) -> None:
    a, b = [hit.id for hit in left.hits], [hit.id for hit in right.hits]
    both = set(a) & set(b)
    grid = st.grid(4, min_column_width=150)
    grid.metric("In both", f"{len(both)} of {max(len(a), len(b), 1)}", border=True)
    grid.metric(f"Only {left.title}", len(a) - len(both), border=True)
    grid.metric(f"Only {right.title}", len(b) - len(both), border=True)
    grid.metric("Rank agreement", f"{overlap(a, b):.2f}", border=True,
                help="Rank-biased overlap (p = 0.9), as far down as the lists go: 0 nothing shared, 1 the same order.")  # fmt: skip


def overlap(a: list[int], b: list[int], p: float = 0.9) -> float:
    depth = max(len(a), len(b))
    weights = [p**d for d in range(depth)]
    shared = [len(set(a[: d + 1]) & set(b[: d + 1])) / (d + 1) for d in range(depth)]
    return sum(w * s for w, s in zip(weights, shared, strict=True)) / sum(weights) if depth else 0.0


board()
