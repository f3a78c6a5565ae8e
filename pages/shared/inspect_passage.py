"""The right half of the Inspect page: one passage, its document and its nearest ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import streamlit as st

from pages.shared import results, workspace
from pages.shared.components.doc_context import doc_context
from pages.shared.components.passage_list import Row, passage_list
from pages.shared.components.passage_view import passage_view
from pages.shared.inspect_facts import Parts, chunk_facts, document_facts, draw_facts, parts
from pages.shared.rendered import rendered_markdown
from pages.shared.shell import plain
from pages.shared.text import snippet
from ragnar_core import RagnarError, Store
from ragnar_core.chunking.headings import context_line
from ragnar_core.retrieval.scoring import rank_vectors

VIEWS = ("Rendered", "Raw", "In document", "Nearest", "History")
NEAREST = 12
NEARLY_SAME = 0.97


def draw(store: Store, chunk_id: int, query: str, *, go: Callable[[int], None], outside: bool) -> None:
    """Draw a chunk; `go(id)` is called when the person moves to another. `outside`: the search does not list it."""
    with workspace.page_errors():
        row = next(store.fetch([chunk_id]).itertuples(index=False))
        whole = parts(store, str(store.location), store.revision, _plain_id(row.doc_id))
    st.markdown(f"**{_origin(row.origin)}**")
    if row.context:
        st.caption(plain(context_line(row.context)))
    draw_facts(chunk_facts(store, row, whole))
    if outside:
        st.caption(":material/info: The search on the left does not find this passage.")
    view = st.segmented_control("View", VIEWS, default=VIEWS[0], required=True, key="show", bind="query-params",
                                persist_state="session", label_visibility="collapsed")  # fmt: skip
    words = _words(store, row.text, query)
    if view == "Raw":
        passage_view(text=row.text, words=words, key="raw")
    elif view == "In document":
        if not whole.exact:
            st.caption("This store keeps chunks only: they stand here one behind the other.")
        doc_context(whole.window(chunk_id), chosen=chunk_id, key="context", choose=go)
    elif view == "Nearest":
        _nearest(store, row, whole, go)
    elif view == "History":
        draw_facts(document_facts(store, row, whole), rows=True)
    else:
        rendered_markdown(row.text, words=words, key="rendered")


def _nearest(store: Store, row: Any, whole: Parts, go: Callable[[int], None]) -> None:
    table = store.vectors()
    at = int(np.searchsorted(table.chunk_ids, row.chunk_id))
    vector = table.matrix[at]
    if not len(vector) or not np.isfinite(vector).all() or not vector.any():
        st.info("This chunk has no vector, so it is near to none.", icon=":material/scatter_plot:")
        return
    try:
        found = rank_vectors(table, vector, "cosine_distance", NEAREST + 1)
    except RagnarError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    others = [
        (int(table.chunk_ids[r]), 1 - v) for r, v in zip(found.rows, found.values, strict=True) if r != at
    ]
    likeness = dict(others[:NEAREST])
    rows = []
    for near in store.fetch(list(likeness)).itertuples(index=False):
        shown, marks = snippet(near.text, [], 190)
        similarity = likeness[int(near.chunk_id)]
        note = _relation(row, near, similarity, whole)
        rows.append(
            Row(int(near.chunk_id), near.origin or "no origin", f"{similarity:.3f}", shown, marks, note=note)
        )
    passage_list(rows, chosen=None, key="nearest", choose=go, compact=True, label="Nearest passages",
                 summary="By cosine similarity of their vectors, 1 is the same direction",
                 empty="There is no other chunk with a vector.")  # fmt: skip


def _relation(row: Any, near: Any, similarity: float, whole: Parts) -> str:
    if near.text == row.text:
        return "same text"
    if whole.exact and near.doc_id == row.doc_id and near.start < row.end and row.start < near.end:
        return f"shares {min(near.end, row.end) - max(near.start, row.start):,} characters"
    return "nearly the same" if similarity >= NEARLY_SAME else ""


def _origin(origin: str | None) -> str:
    """The origin as Markdown; a web address is a link."""
    if not origin:
        return "no origin"
    try:
        web = urlsplit(origin).scheme in ("http", "https") and bool(urlsplit(origin).netloc)
    except ValueError:
        web = False
    return f"[{plain(origin)}](<{quote(origin, safe=':/?#@!$&*+,;=%~-._')}>)" if web else plain(origin)


def _words(store: Store, text: str, query: str) -> list[str]:
    terms = set(store.analyzer.tokens(query)) if query else set()
    return [text[start:end] for start, end in results.matches(store, text, terms)] if terms else []


def _plain_id(doc_id: Any) -> Any:
    return doc_id if isinstance(doc_id, str) else int(doc_id)
