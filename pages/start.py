"""Start: a sample store that answers at once, and the four steps to one's own."""

from __future__ import annotations

import streamlit as st

from pages.shared import results, workspace
from pages.shared.jobs import manager
from pages.shared.shell import header, through_navigation

through_navigation()

EXAMPLES = (
    "What happens to text that is too long for the model?",
    "HNSW_INDEX_SCAN returns too few rows",
    "Why is my search result missing a page of the PDF?",
)

header(
    "See what your retrieval does",
    "A sample store is ready: this project’s own handbook. Ask it something and see vector search beside BM25.",
)


@st.fragment
def first_look() -> None:
    # Where there are fewer than four columns, the question takes a row of its own.
    row = st.grid(4, min_column_width=150)
    with row.cell(column_span=3):
        st.session_state.setdefault("start_query", EXAMPLES[0])
        asked = st.text_input(
            "Question",
            key="start_query",
            type="search",
            live="300ms",
            label_visibility="collapsed",
            placeholder="Ask the handbook …",
        )
    full = row.button("Open in Compare", type="primary", icon=":material/compare_arrows:", width="stretch")
    with st.container(horizontal=True):
        for example in EXAMPLES:
            st.button(example, key=f"example_{example}", on_click=_ask, args=(example,))
    query = (asked or "").strip() or EXAMPLES[0]
    if full:
        workspace.go("pages/compare.py", store=workspace.SAMPLE, q=query)
    with workspace.page_errors():
        columns = results.search(
            workspace.stores().get(workspace.SAMPLE), query, methods=("vss", "bm25"), top_k=3
        )
        results.show(columns, query=query, key="first_look", store=workspace.SAMPLE)


def _ask(example: str) -> None:
    st.session_state["start_query"] = example


def steps() -> None:
    documents, own = len(workspace.shelf()), len(workspace.store_names()) - 1
    settings = workspace.chunk_settings()
    size = "no limit" if settings is None or settings.target_size is None else f"{settings.target_size:,}"
    building = manager().active("build")
    cards = (
        (
            "1 · Add documents",
            f"{documents:,} read" if documents else "None yet",
            "pages/documents.py",
            "Files, text or URLs become Markdown; you see what was read and what was lost.",
        ),
        (
            "2 · Tune the chunks",
            f"Target size: {size}" if settings else "Defaults",
            "pages/chunking.py",
            "Move size and overlap and watch every cut in your own text.",
        ),
        (
            "3 · Build a store",
            "Building …" if building else f"{own:,} of your own" if own else "None yet",
            "pages/build.py",
            "Embed and index into one DuckDB file.",
        ),
        (
            "4 · Compare",
            f"Open: {workspace.current_name()}",
            "pages/compare.py",
            "The same question, VSS beside BM25, with every rank explained.",
        ),
    )
    grid = st.grid(4, min_column_width=170, border=True)
    for title, state, page, says in cards:
        with grid.cell():
            st.markdown(f"**{title}**")
            st.markdown(f":gray[{says}]")
            st.page_link(page, label=state, icon=":material/arrow_forward:")


first_look()
st.subheader("Your own documents, in four steps", anchor=False)
steps()
