"""The lists beside the map: hits, picked chunks, near-duplicates, outliers; and the passage in front."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from pages.shared import results, workspace
from pages.shared.components.passage_list import Row, passage_list
from pages.shared.map_layouts import UNASKED, StoreMap
from pages.shared.rendered import rendered_markdown
from pages.shared.shell import plain
from pages.shared.text import snippet
from ragnar_core import Store
from ragnar_core.chunking.headings import context_line
from ragnar_core.retrieval.layout_groups import near_duplicates

LISTS = ("Hits", "Picked", "Duplicates", "Outliers")
MOST = 100
HITS = 10


def draw(
    store: Store,
    chart: StoreMap,
    query: str,
    hits: NDArray[np.int64],
    likeness: NDArray[np.float32],
    picked: list[int],
) -> None:
    """Draw the chosen list. A row of it puts its chunk in front on the map."""
    if "list" not in st.session_state and st.query_params.get("list") not in LISTS:
        st.session_state["list"] = LISTS[0]
    kind = st.segmented_control(
        "List", LISTS, required=True, key="list", bind="query-params", label_visibility="collapsed"
    )
    if kind == "Hits":
        empty = "Type a query: its nearest chunks are listed here and marked on the map."
        notes = [f"{value:.3f}" for value in likeness]
        _list(
            store,
            chart,
            hits,
            notes,
            query,
            "By cosine similarity to the query" if len(hits) else "",
            empty,
            rank=1,
        )
    elif kind == "Picked":
        empty = "Click a point, or draw around some with the lasso."
        shown = np.array(picked[:MOST], np.int64)
        more = f", the first {MOST} listed" if len(picked) > MOST else ""
        count = f"{len(picked):,} {'chunk' if len(picked) == 1 else 'chunks'} picked{more}" if picked else ""
        _list(store, chart, shown, [""] * len(shown), query, count, empty)
    elif chart.groups is None:
        asked = len(chart) <= UNASKED
        st.caption(
            ":material/progress_activity: Comparing every chunk with its nearest; this list comes when that is done."
            if asked
            else f"With more than {UNASKED:,} chunks these lists are made when you ask for them, with the button above."
        )
    elif kind == "Duplicates":
        _duplicates(store, chart, query)
    else:
        _outliers(store, chart, query)


def passage(store: Store, chart: StoreMap, front: int | None) -> None:
    """Draw the chunk in front on the map."""
    if front is None or front >= len(chart):
        return
    chunk_id = int(chart.points.chunk_ids[front])
    with workspace.page_errors():
        row = next(store.fetch([chunk_id]).itertuples(index=False), None)
    if row is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(row.origin or 'no origin')}** · chunk {row.chunk_id}")
        if st.button("Inspect", icon=":material/search:", key="map_inspect", type="tertiary"):
            st.session_state["inspect_chunk"] = chunk_id
            workspace.go("pages/inspect.py")
    if row.context:
        st.caption(plain(context_line(row.context)))
    rendered_markdown(row.text, key="map_passage")


def put_in_front(row: int | None) -> None:
    st.session_state["map_front"] = row


def _list(
    store: Store, chart: StoreMap, rows: NDArray[np.int64], scores: list[str], query: str, summary: str, empty: str,
    *, groups: list[str] | None = None, notes: list[str] | None = None, rank: int = 0,
) -> None:  # fmt: skip
    ids = chart.points.chunk_ids[rows]
    terms = set(store.analyzer.tokens(query)) if query else set()
    items = []
    for i, found in enumerate(store.fetch(ids).itertuples(index=False)):
        shown, marks = snippet(found.text, results.matches(store, found.text, terms) if terms else [], 190)
        items.append(
            Row(int(found.chunk_id), found.origin or "no origin", scores[i], shown, marks,
                group=groups[i] if groups else "", note=notes[i] if notes else "")
        )  # fmt: skip
    row_of = dict(zip(ids.tolist(), rows.tolist(), strict=True))
    front = st.session_state.get("map_front")
    chosen = next((chunk_id for chunk_id, row in row_of.items() if row == front), None)

    def choose(chunk_id: int) -> None:
        put_in_front(row_of.get(chunk_id))

    passage_list(items, chosen=chosen, key="map_list", choose=choose, compact=True, summary=summary, empty=empty,
                 rank=rank, label="Chunks")  # fmt: skip


def _duplicates(store: Store, chart: StoreMap, query: str) -> None:
    assert chart.groups is not None
    least = st.slider("Similarity of at least", 0.90, 1.0, 0.97, 0.005, key="alike", format="%.3f")
    found = near_duplicates(chart.groups.near, least, apart=_apart(store, chart))
    rows: list[int] = []
    headings: list[str] = []
    for number, group in enumerate(found, 1):
        rows += group.rows.tolist()
        headings += [f"{number} · {len(group.rows)} chunks, similarity {min(group.similarity, 1):.3f}"] * len(
            group.rows
        )
        if len(rows) >= MOST:
            break
    chunks = sum(len(group.rows) for group in found)
    summary = f"{len(found):,} {'group' if len(found) == 1 else 'groups'}, {chunks:,} chunks" if found else ""
    empty = "No two chunks are as similar as that. Chunks that overlap in their document do not count."
    _list(store, chart, np.array(rows, np.int64), [""] * len(rows), query, summary, empty, groups=headings)


def _outliers(store: Store, chart: StoreMap, query: str) -> None:
    groups = chart.groups
    assert groups is not None
    rows, count = groups.lonely[:20], int(groups.stands_out.sum())
    notes = ["stands out" if out else "" for out in groups.stands_out[:20]]
    summary = (
        f"{count:,} of {len(chart):,} stand out; the loneliest first, by mean similarity to their 5 nearest"
    )
    _list(
        store,
        chart,
        rows,
        [f"{value:.3f}" for value in groups.likeness[:20]],
        query,
        summary,
        "No chunks.",
        notes=notes,
    )


@st.cache_data(show_spinner=False, max_entries=4)
def _places(_store: Store, location: str, revision: int) -> tuple[Any, Any, Any, Any]:
    layout = _store.layout
    if layout.version == 1:
        sql = "SELECT chunk_id, origin AS doc, NULL AS s, NULL AS e FROM chunks ORDER BY chunk_id"
    else:
        columns = f"chunk_id, {layout.doc_id} AS doc, {layout.start} AS s, {layout.end} AS e"
        sql = f"SELECT {columns} FROM {layout.table} ORDER BY chunk_id"
    with _store.opened.database.reading() as cursor:
        frame = cursor.execute(sql).df()
    ids = frame["chunk_id"].to_numpy(np.int64)
    documents = frame["doc"].astype("category").cat.codes.to_numpy(np.int64)
    starts, ends = (frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in ("s", "e"))
    return ids, documents, starts, ends


def _apart(store: Store, chart: StoreMap) -> NDArray[np.bool_]:
    """Which of each chunk's neighbours share no characters with it."""
    assert chart.groups is not None
    ids, documents, starts, ends = _places(store, str(store.location), store.revision)
    at = np.searchsorted(ids, chart.points.chunk_ids)
    documents, starts, ends = documents[at], starts[at], ends[at]
    near = chart.groups.near.index
    overlap = (starts[:, None] < ends[near]) & (starts[near] < ends[:, None])
    return ~((documents[:, None] == documents[near]) & overlap)
