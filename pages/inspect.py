"""Inspect: look through a store, passage by passage."""

from __future__ import annotations

import re
from typing import Any

import streamlit as st

from pages.shared import inspect_passage, results, workspace
from pages.shared.components.passage_list import Row, passage_list
from pages.shared.components.split_handle import split_handle
from pages.shared.inspect_search import DEPTH, METHODS, Listing, documents, listing, readable_store
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from pages.shared.text import snippet
from ragnar_core import RagnarError, Store
from ragnar_core.chunking.headings import context_line

through_navigation()
header("Inspect", "Search or leaf through a store, and see each passage with where it stands.")
store = readable_store()
PAGE = 100
ALL = "All documents"
MOST_LISTED = 2000


@st.fragment
def inspector() -> None:
    state = st.session_state
    query, method, filter_text, doc_id = _controls(store)
    search = (str(store.location), query, method, filter_text, doc_id)
    before = state.get("inspect_search", search)
    if before != search:
        state["inspect_missing"] = []
    if before[0] != search[0]:
        state["inspect_selected"] = None
    _follow_url(changed=before != search)
    state["inspect_search"] = search
    problem, found = "", None
    try:
        found = listing(store, query, method, filter_text, doc_id)
    except RagnarError as error:
        problem = str(error)
    chosen = _chosen(found)
    if missing := state.get("inspect_missing"):
        st.warning(plain(" ".join(missing)), icon=":material/search_off:")
    with st.container(key="split"):
        split_handle(key="handle")
        left, right = st.columns([0.38, 0.62], gap="medium")
        with left:
            if found is None:
                st.error(plain(problem), icon=":material/error:")
            else:
                _list(found, chosen, query)
        with right:
            if chosen is None:
                st.caption("No passage to show.")
            else:
                outside = found is not None and found.place(chosen) is None
                inspect_passage.draw(store, chosen, query, go=_go, outside=outside)
    copy_as_python(_code(query, method, filter_text))


def _controls(store: Store) -> tuple[str, str, str, Any]:
    known = documents(store, str(store.location), store.revision)
    asked = st.session_state.get("doc") or st.query_params.get("doc")
    listed = known[(known.index < MOST_LISTED) | (known["label"] == asked)]
    if asked and asked not in (ALL, *listed["label"]):
        st.session_state["inspect_missing"] = [
            f"There is no document “{asked}” in this store: all are shown."
        ]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        query = st.text_input("Search", key="find", type="search", live="250ms", bind="query-params",
                              placeholder="Search the store … (press /)", label_visibility="collapsed")  # fmt: skip
        method = st.segmented_control("Search by", METHODS, default=METHODS[0], required=True, key="by", bind="query-params",
                                      label_visibility="collapsed")  # fmt: skip
        label = st.selectbox("Document", [ALL, *listed["label"]], key="doc", bind="query-params", width=155,
                             label_visibility="collapsed")  # fmt: skip
        filter_text = st.text_input("Filter", key="where", bind="query-params", placeholder="Filter: start > 1000 …",
                                    width=180, label_visibility="collapsed", icon=":material/filter_alt:")  # fmt: skip
    at = listed.index[listed["label"] == label]
    doc_id = None if label in (None, ALL) or not len(at) else listed["doc_id"][at[0]]
    if doc_id is not None and not isinstance(doc_id, str):
        doc_id = int(doc_id)
    filter_text = (filter_text or "").strip()
    return (query or "").strip(), method or METHODS[0], filter_text, doc_id


def _follow_url(*, changed: bool) -> None:
    """A chunk that a link, another page or the URL names is shown even where the search does not find it.

    The URL counts once a session: from then on the list says the choice in it, and a request may still carry an older
    one.
    """
    state = st.session_state
    if changed:
        state["inspect_pinned"] = False
    wanted = state.pop("inspect_chunk", None)
    asked = "" if state.get("inspect_opened") else st.query_params.get("chunk", "")
    state["inspect_opened"] = True
    if wanted is None and asked:
        if re.fullmatch("[0-9]{1,18}", asked):
            wanted = int(asked)
        else:
            _miss(f"“{asked}” is not the number of a chunk: the first one is shown.")
    if wanted is not None:
        state["inspect_selected"], state["inspect_pinned"] = wanted, True


def _miss(sentence: str) -> None:
    """Say what an address named and the store does not have, until the person goes elsewhere."""
    said = st.session_state.setdefault("inspect_missing", [])
    if sentence not in said:
        said.append(sentence)


def _go(chunk_id: int) -> None:
    _choose(chunk_id, pinned=True)


def _choose(chunk_id: int, *, pinned: bool = False) -> None:
    st.session_state["inspect_selected"] = chunk_id
    st.session_state["inspect_pinned"] = pinned
    st.session_state["inspect_missing"] = []


def _chosen(found: Listing | None) -> int | None:
    """The chunk on the right: the last choice while it is listed or was asked for, else the first of the list."""
    state = st.session_state
    chosen = state.get("inspect_selected")
    listed = found is not None and found.place(chosen) is not None
    if not listed:
        pinned = chosen is not None and state.get("inspect_pinned")
        if not (pinned and len(store.fetch([chosen]))):
            if pinned:
                _miss(f"There is no chunk {chosen} in this store: the first one is shown.")
            chosen = int(found.ids[0]) if found is not None and len(found.ids) else None
            state["inspect_pinned"] = False
    state["inspect_selected"] = chosen
    return chosen


def _list(found: Listing, chosen: int | None, query: str) -> None:
    place = found.place(chosen)
    page = (place or 0) // PAGE
    first = page * PAGE
    ids = found.ids[first : first + PAGE]
    terms = set(store.analyzer.tokens(query)) if query else set()
    rows = [
        _row(row, terms, "" if found.values is None else f"{found.metric} {found.values[first + i]:.3f}")
        for i, row in enumerate(store.fetch(ids).itertuples(index=False))
    ]

    def turn(step: int) -> None:
        target = max(0, min(len(found.ids) - 1, first + step * PAGE + (PAGE - 1 if step < 0 else 0)))
        _choose(int(found.ids[target]))

    passage_list(
        rows, chosen=chosen if place is not None else None, key="passages", choose=_choose, turn=turn,
        summary=_summary(found, first, len(rows), query), earlier=first > 0, later=first + PAGE < len(found.ids),
        search_key="find", rank=first + 1 if query else 0, empty=_nothing(query),
        address={"chunk": "" if chosen is None else str(chosen)},
    )  # fmt: skip


def _summary(found: Listing, first: int, shown: int, query: str) -> str:
    of = f"of {found.total:,} {'chunk' if found.total == 1 else 'chunks'}"
    if not shown:
        return "0 chunks"
    part = f"{shown:,}" if shown == found.total else f"{first + 1:,}–{first + shown:,}"
    deep = f", the best {DEPTH:,} can be leafed through" if found.total > len(found.ids) else ""
    return f"Showing {part} {of}{deep}{', best first' if query and shown > 1 and not deep else ''}"


def _nothing(query: str) -> str:
    if query:
        return "Nothing found. BM25 matches words: try other words, VSS, or a wider filter."
    if st.session_state.get("where") or st.session_state.get("doc") not in (None, ALL):
        return "No chunk passes the filter."
    return "This store holds no chunks yet."


def _row(row: Any, terms: set[str], score: str) -> Row:
    shown, marks = snippet(row.text, results.matches(store, row.text, terms) if terms else [], 190)
    origin = row.origin or "no origin"
    if score:
        return Row(int(row.chunk_id), origin, score, shown, marks)
    heading = context_line(row.context).rpartition(" › ")[2]
    return Row(int(row.chunk_id), heading, f"{len(row.text):,} characters", shown, marks, group=origin)


def _code(query: str, method: str, filter_text: str) -> str:
    name = {"BM25": "retrieve_bm25", "VSS": "retrieve_vss", "Hybrid": "retrieve_hybrid"}[method]
    narrowed = f", filter={filter_text!r}" if filter_text else ""
    if query:
        what, line = f"Store, {name}", f"{name}(store, {query!r}, top_k={PAGE}{narrowed})"
    else:
        what, line = "Store", "store.chunks()"
    return f"from ragnar_core import {what}\n\nwith Store.connect({str(store.location)!r}) as store:\n    print({line})\n"


def _empty() -> None:
    st.info("This store holds no chunks yet: there is nothing to look through.", icon=":material/search:")
    st.page_link(
        "pages/build.py", label="Put documents into it on the Build page", icon=":material/construction:"
    )


with workspace.page_errors():
    counts = store.counts()
if counts.chunks:
    inspector()
else:
    _empty()
