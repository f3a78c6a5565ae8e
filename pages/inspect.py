"""Inspect: look through a store, passage by passage."""

from __future__ import annotations

import streamlit as st

from pages.shared import results, workspace
from pages.shared.components.passage_list import Row, passage_list
from pages.shared.rendered import rendered_markdown
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from pages.shared.text import snippet

through_navigation()
header("Inspect", "Search or leaf through a store, and see each passage with where it stands.")
store = workspace.current_store()
PAGE = 100


@st.fragment
def inspector() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input("Search the store", key="find", type="search", live="250ms", bind="query-params",
                              placeholder="Search the store …", label_visibility="collapsed")  # fmt: skip
        method = st.segmented_control("Method", ["VSS", "BM25"], default="BM25", required=True, key="method",
                                      bind="query-params", label_visibility="collapsed")  # fmt: skip
    query = (query or "").strip()
    wanted = st.session_state.pop("inspect_chunk", None)
    with workspace.page_errors():
        if query:
            table = results.found(store, query, method.lower(), PAGE)
            metric = "distance" if method == "VSS" else "score"
        else:
            table, metric = store.chunks().head(PAGE), ""
        if wanted is not None and wanted not in set(table["chunk_id"]):
            table = store.fetch([wanted, *table["chunk_id"].head(PAGE - 1)])
    terms = set(store.analyzer.tokens(query)) if query else set()
    left, right = st.columns([0.4, 0.6], gap="medium")
    with left:
        st.caption(f"Showing {len(table):,} of {store.counts().chunks:,} chunks")
        rows = [_row(row, terms, metric) for row in table.itertuples(index=False)]
        chosen = passage_list(rows, wanted=wanted, key="passages",
                              empty="No passage matches. Try the other method, or other words.")  # fmt: skip
    with right:
        if chosen is None:
            st.caption("Choose a passage on the left.")
        else:
            _passage(chosen)
    copy_as_python(
        f"from ragnar_core import Store\n\nwith Store.connect({str(store.location)!r}) as store:\n    print(store.chunks())\n"
    )


def _row(row, terms: set[str], metric: str) -> Row:
    shown, marks = snippet(row.text, results.matches(store, row.text, terms) if terms else [], 180)
    score = f"{metric} {row.metric_value:.3f}" if metric and hasattr(row, "metric_value") else ""
    return Row(int(row.chunk_id), row.origin or "no origin", score, shown, marks)


def _passage(chunk_id: int) -> None:
    row = next(store.fetch([chunk_id]).itertuples(index=False))
    how = st.segmented_control("Show as", ["Rendered", "Raw text"], default="Rendered", required=True, key="show_as",
                               label_visibility="collapsed")  # fmt: skip
    st.markdown(f"**{plain(row.origin or 'no origin')}**")
    st.caption(f"chunk {row.chunk_id} · document {row.doc_id} · characters {row.start:,}–{row.end:,} of the document")
    if row.context:
        st.caption(plain(" › ".join(line.lstrip("# ") for line in row.context.split("\n"))))
    if how == "Rendered":
        rendered_markdown(row.text)
    else:
        st.code(row.text, language=None, wrap_lines=True, height=520)


inspector()
