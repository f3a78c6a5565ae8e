"""Map: every chunk of a store as a point in the plane."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from pages.shared import map_lists, workspace
from pages.shared.components.map_points import Overlay, map_overlay, map_points, packed
from pages.shared.inspect_search import readable_store
from pages.shared.jobs import job_progress
from pages.shared.map_colours import (
    CLUSTER,
    DOCUMENT,
    LENGTH,
    SCORE,
    Colouring,
    attribute,
    by_group,
    by_scale,
)
from pages.shared.map_layouts import AT_ONCE, UNASKED, StoreMap, maps
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from pages.shared.text import snippet
from ragnar_core import RagnarError, Store
from ragnar_core.retrieval.layout import Layout, place_query
from ragnar_core.retrieval.query import query_vector

through_navigation()
header("Map", "Every chunk as a point: near points have similar vectors.")
store = readable_store()
TEXTS = 3_000


@st.fragment
def board(chart: StoreMap) -> None:
    query, colour, method = _controls()
    if len(chart) <= AT_ONCE:
        chart.make_groups()
    _background(chart, method)
    layout = chart.umap if method == "UMAP" and chart.umap is not None else chart.pca
    hits, likeness, star, all_likeness = _query(chart, layout, query)
    state = st.session_state
    if state.get("map_of") != chart.file.name:
        state.update(map_of=chart.file.name, map_picked=[], map_front=None, map_hover=None)
    colouring = _colouring(chart, colour, all_likeness)
    left, right = st.columns([0.61, 0.39], gap="medium")
    with left:
        overlay = Overlay(star, hits.tolist(), state["map_picked"], state["map_front"], _hovered(chart))
        map_points(_message(chart, layout, colouring), key="points", pick=_pick, hover=_hover)
        st.caption(_says(chart, layout))
        map_overlay(overlay, key="overlay")
    with right:
        map_lists.draw(store, chart, query, hits, likeness, state["map_picked"])
        map_lists.passage(store, chart, state.get("map_front"))


def _controls() -> tuple[str, str, str]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input("Query", key="star", type="search", live="300ms", bind="query-params",
                              placeholder="Place a query among the chunks …", label_visibility="collapsed")  # fmt: skip
        colours = _colours()
        colour = st.selectbox("Colour", list(colours), key="colour", bind="query-params", width=170,
                              label_visibility="collapsed")  # fmt: skip
        method = st.segmented_control("Layout", ["PCA", "UMAP"], default="PCA", required=True, key="layout",
                                      bind="query-params", label_visibility="collapsed")  # fmt: skip
    return (query or "").strip(), colours.get(colour, DOCUMENT), method or "PCA"


def _colours() -> dict[str, str]:
    """What the points can be coloured by, as the page says it and as it is called."""
    own = {f"By {name.lower()}": name for name in (DOCUMENT, CLUSTER, SCORE, LENGTH)}
    return own | {
        f"By {name}" if f"By {name}" not in own else f"By column {name}": name for name in store.extra_cols
    }


def _background(chart: StoreMap, method: str) -> None:
    """Start what takes longer: unasked up to 20,000 chunks, beyond that when UMAP is chosen or by a button."""
    if chart.umap is not None or not chart.worth_umap:
        if method == "UMAP" and not chart.worth_umap and len(chart) > 0:
            st.caption(":material/info: UMAP needs 10 chunks whose vectors differ; this is PCA.")
        if chart.groups is None:
            _start_groups(chart)
        return
    job = chart.last_job()
    if job is None and (method == "UMAP" or len(chart) <= UNASKED):
        job = chart.start()
    if job is None:
        _start_groups(chart)
    elif job.active:
        _waiting(chart, method == "UMAP")
    elif job.state in ("failed", "cancelled") and method == "UMAP":
        said = plain(job.error or "UMAP was cancelled; this is PCA.")
        st.warning(f"{said}", icon=":material/scatter_plot:")
        if st.button("Try again", key="umap_again", icon=":material/refresh:"):
            chart.start()
            st.rerun()


def _start_groups(chart: StoreMap) -> None:
    """Clusters, near-duplicates and outliers of a large store, without UMAP."""
    if chart.groups is None and st.button(
        "Find clusters, near-duplicates and outliers", key="groups", icon=":material/hub:"
    ):
        chart.start()
        st.rerun()


@st.fragment(run_every=1.0)
def _waiting(chart: StoreMap, asked: bool) -> None:
    job = chart.last_job()
    if job is None or not job.active:
        st.rerun()
    if asked:
        job_progress(job, key="umap")
    else:
        st.caption(
            f":material/progress_activity: UMAP is on its way · {job.seconds:.0f} s · {plain(job.message)}"
        )


def _query(
    chart: StoreMap, layout: Layout, query: str
) -> tuple[NDArray[np.int64], NDArray[np.float32], list[float] | None, NDArray[np.float32] | None]:
    """Rows of the hits with their similarities, the query's place, and every row's similarity."""
    nothing = np.zeros(0, np.int64), np.zeros(0, np.float32), None, None
    if not query:
        return nothing
    try:
        vector = query_vector(store, query)
    except RagnarError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return nothing
    likeness = chart.points.unit @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
    hits = np.argsort(-likeness, kind="stable")[: map_lists.HITS]
    place = place_query(layout, vector, hits, likeness[hits])
    return hits, likeness[hits], [float(place[0]), float(place[1])], likeness


def _pick(rows: list[int]) -> None:
    state = st.session_state
    state["map_picked"] = rows
    map_lists.put_in_front(rows[0] if rows else None)
    if rows:
        state["list"] = "Picked"


def _hover(row: int) -> None:
    st.session_state["map_hover"] = row


def _hovered(chart: StoreMap) -> dict[str, list[str]]:
    row = st.session_state.get("map_hover")
    if row is None or row >= len(chart) or len(chart) <= TEXTS:
        return {}
    return _tips(chart, np.array([row]))


def _tips(chart: StoreMap, rows: NDArray[np.int64]) -> dict[str, list[str]]:
    found = store.fetch(chart.points.chunk_ids[rows])
    row_of = dict(zip(chart.points.chunk_ids[rows].tolist(), rows.tolist(), strict=True))
    return {
        str(row_of[int(row.chunk_id)]): [
            f"{row.origin or 'no origin'} · chunk {row.chunk_id}",
            snippet(row.text, [], 240)[0],
        ]
        for row in found.itertuples(index=False)
    }


@st.cache_data(show_spinner=False, max_entries=4)
def _all_tips(_chart: StoreMap, location: str, revision: int, name: str) -> dict[str, list[str]]:
    return _tips(_chart, np.arange(len(_chart)))


def _at(chart: StoreMap) -> tuple[str, int, str]:
    """What tells one state of a store from another."""
    return str(store.location), store.revision, chart.file.name


def _message(chart: StoreMap, layout: Layout, colouring: Colouring) -> bytes:
    version = f"{_at(chart)} {layout.method} {colouring.title} {zlib.crc32(colouring.code.tobytes())}"
    head: dict[str, Any] = {
        "store": chart.file.name,
        "layout": layout.method,
        "version": version,
        "title": colouring.title,
        "names": colouring.names,
        "others": colouring.others,
        "counts": colouring.counts,
        "low": colouring.low,
        "high": colouring.high,
        "texts": _all_tips(chart, *_at(chart)) if len(chart) <= TEXTS else {},
    }
    return packed(head, layout.xy, colouring.code)


def _colouring(chart: StoreMap, colour: str, likeness: NDArray[np.float32] | None) -> Colouring:
    if colour == SCORE:
        if likeness is not None:
            return by_scale("Similarity to the query", likeness, 3)
        st.caption(":material/info: Type a query to colour the chunks by their similarity to it.")
        colour = DOCUMENT
    if colour == CLUSTER:
        if chart.groups is not None:
            words = chart.groups.words
            named = [f"{i + 1} · {words[i]}" if words[i] else f"{i + 1}" for i in range(len(words))]
            return by_number("Cluster", chart.groups.clusters.label, named)
        st.caption(
            ":material/progress_activity: Clusters come when every chunk is compared with its nearest."
        )
        colour = DOCUMENT
    values = _column(store, *_at(chart), colour, chart)
    if colour == LENGTH:
        return by_scale("Length in characters", values)
    return attribute(colour, values) if colour != DOCUMENT else by_group(DOCUMENT, values)


def by_number(title: str, label: NDArray[np.int32], names: list[str]) -> Colouring:
    counts = np.bincount(label, minlength=len(names)).tolist()
    return Colouring(title, label.astype(np.uint8), names, counts)


@st.cache_data(show_spinner="Reading the chunks …", max_entries=8)
def _column(
    _store: Store, location: str, revision: int, name: str, colour: str, _chart: StoreMap
) -> pd.Series:
    """One value a point: origin, length in characters, or a further column of the store."""
    layout, column = _store.layout, '"' + colour.replace('"', '""') + '"'
    if layout.version == 1:
        value = {DOCUMENT: "origin", LENGTH: "length(text)"}.get(colour, column)
        sql = f"SELECT chunk_id, {value} AS value FROM chunks"
    elif colour == DOCUMENT:
        sql = f"SELECT e.chunk_id, d.origin AS value FROM {layout.table} e JOIN documents d ON d.doc_id = e.{layout.doc_id}"
    elif colour == LENGTH:
        first = 1 if layout.kind == "ragnar" else 0
        sql = f"SELECT chunk_id, {layout.end} - {layout.start} + {first} AS value FROM {layout.table}"
    else:
        sql = f"SELECT chunk_id, {column} AS value FROM {layout.table}"
    with _store.opened.database.reading() as cursor:
        frame = cursor.execute(sql).df()
    found = frame.drop_duplicates("chunk_id").set_index("chunk_id")["value"]
    return found.reindex(_chart.points.chunk_ids).reset_index(drop=True)


def _says(chart: StoreMap, layout: Layout) -> str:
    parts = [f"{len(chart):,} {'chunk' if len(chart) == 1 else 'chunks'}."]
    if layout.note:
        parts.append(layout.note)
    elif layout.method == "pca" and layout.kept is not None:
        parts.append(
            f"PCA: the two axes keep {layout.kept:.0%} of the variance of {store.dim:,} dimensions, so points that lie "
            "together can still differ."
        )
    elif layout.method == "umap":
        parts.append("UMAP: who is near whom counts; distances between groups and their sizes mean little.")
    if chart.points.left_out:
        parts.append(chart.points.left_out)
    if chart.groups is not None and not chart.groups.near.exact:
        parts.append("Neighbours were looked for within regions; a near-duplicate may be missing.")
    return plain(" ".join(parts))


def page() -> None:
    with workspace.page_errors():
        if not store.counts().chunks:
            st.info(
                "This store holds no chunks yet: there is nothing to map.", icon=":material/scatter_plot:"
            )
            st.page_link(
                "pages/build.py",
                label="Put documents into it on the Build page",
                icon=":material/construction:",
            )
            return
        with st.spinner("Placing the chunks …"):
            chart = maps().get(store, workspace.current_name())
    if not len(chart):
        said = "it was made for BM25 only" if not store.dim else chart.points.left_out
        st.info(
            plain(f"No chunk of this store has a vector that can be placed: {said}"),
            icon=":material/scatter_plot:",
        )
        return
    board(chart)
    copy_as_python(
        "from ragnar_core import Store\n"
        "from ragnar_core.retrieval.layout import pca_layout, usable_points\n\n"
        f"with Store.connect({str(store.location)!r}) as store:\n"
        "    points = usable_points(store.vectors())\n"
        "    print(points.chunk_ids, pca_layout(points.unit).xy)\n"
    )


page()
