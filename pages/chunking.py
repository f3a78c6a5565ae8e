"""Chunking: move the sliders and see every cut in a real text."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import streamlit as st

from pages.shared import workspace
from pages.shared.components.chunk_text import chunk_text
from pages.shared.shell import copy_as_python, header, through_navigation
from ragnar_core import Boundaries, Chunks, ChunkSettings, MarkdownDocument

through_navigation()
header("Chunking", "Move size and overlap and see where your own text is cut. The settings go with you to the Build page.")


@st.cache_resource(max_entries=8, show_spinner="Reading the structure …")
def boundaries(text: str) -> Boundaries:
    return Boundaries.of(text)


def documents() -> dict[str, MarkdownDocument]:
    """What can be looked at: the documents on the shelf, then those of the open store."""
    found = {entry.origin: entry.document for entry in workspace.shelf().entries()}
    store = workspace.current_store()
    for origin in store.documents()["origin"].dropna():
        found.setdefault(origin, None)
    return found


@st.fragment
def tune() -> None:
    found = documents()
    origin = st.selectbox("Document", list(found), key="chunk_document", persist_state="session")
    document = found[origin] or workspace.current_store().document(origin)
    with st.container(horizontal=True):
        size = st.slider("Target size (characters)", 100, 8000, 1600, 50, key="size", bind="query-params")
        overlap = st.slider("Overlap (%)", 0, 90, 50, 5, key="overlap", bind="query-params")
        levels = st.multiselect("Never across headings of level", [1, 2, 3, 4, 5, 6], key="levels", persist_state="session")
    settings = ChunkSettings(target_size=size, target_overlap=overlap / 100, segment_by_heading_levels=tuple(levels))
    st.session_state["chunk_settings"] = settings
    with workspace.page_errors():
        chunks = boundaries(document.text).chunk(settings)
    figures(document, chunks)
    chunk_text(chunks, version=json.dumps(settings.to_dict()), key="chunk_view")
    histogram(chunks)
    copy_as_python(
        "from ragnar_core import markdown_chunk, read_as_markdown\n\n"
        f"document = read_as_markdown({origin!r})\nchunks = {settings.as_python()}\nprint(chunks.table)\n"
    )


def figures(document: MarkdownDocument, chunks: Chunks) -> None:
    lengths = chunks.table["end"] - chunks.table["start"]
    total = len(document.text)
    grid = st.grid(4, min_column_width=140)
    grid.metric("Chunks", f"{len(chunks):,}", border=True)
    grid.metric("Median length", f"{int(lengths.median()) if len(lengths) else 0:,}", border=True)
    grid.metric("Longest", f"{int(lengths.max()) if len(lengths) else 0:,}", border=True)
    grid.metric("Duplication", f"{lengths.sum() / total:.2f}×" if total else "–", border=True,
                help="Characters in all chunks over characters in the document: what overlap costs.")  # fmt: skip


def histogram(chunks: Chunks) -> None:
    lengths = (chunks.table["end"] - chunks.table["start"]).to_numpy()
    figure = go.Figure(go.Histogram(x=lengths, nbinsx=40, marker_color="#14b8a6"))
    figure.update_layout(height=220, margin={"l": 0, "r": 0, "t": 8, "b": 0}, bargap=0.05,
                         xaxis_title="chunk length (characters)", yaxis_title="chunks")  # fmt: skip
    st.plotly_chart(figure, key="lengths", config={"displayModeBar": False})


tune()
