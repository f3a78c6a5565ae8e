"""Which chunks the Inspect page lists, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from pages.shared import workspace
from ragnar_core import Store, StoreError
from ragnar_core.retrieval.allowed import allowed_rows
from ragnar_core.retrieval.hybrid import fuse
from ragnar_core.retrieval.query import query_terms, query_vector
from ragnar_core.retrieval.scoring import bm25_scores, rank_scores, rank_vectors

METHODS = ("BM25", "VSS", "Hybrid")
DEPTH = 1000
CANDIDATES = 100


@dataclass(frozen=True)
class Listing:
    """Chunk ids in order, with each one's metric where there was a query. `total` is how many match in all."""

    ids: NDArray[np.int64]
    values: NDArray[np.float64] | None
    metric: str
    total: int

    def place(self, chunk_id: int | None) -> int | None:
        """At which place (from 0) a chunk stands."""
        if chunk_id is None:
            return None
        at = np.flatnonzero(self.ids == chunk_id)
        return int(at[0]) if len(at) else None


def readable_store() -> Store:
    """The open store; on trouble the page shows why and stops. One that can only be read is opened for reading."""
    name = workspace.current_name()
    try:
        return workspace.stores().get(name)
    except StoreError:
        with workspace.page_errors():
            return _read_only(name, str(workspace.store_path(name)))
    raise AssertionError  # page_errors does not return


@st.cache_resource(show_spinner=False)
def _read_only(name: str, path: str) -> Store:
    return Store.connect(path, read_only=True)


def listing(store: Store, query: str, method: str, filter_text: str, doc_id: Any) -> Listing:
    """All chunks in their order, or those that a query finds, most relevant first (at most 1,000 of VSS).

    Raises FilterError, RetrievalError and EmbedError.
    """
    if not query:
        ids = _all_ids(store)
        rows = _allowed(store, ids, filter_text, doc_id)
        ids = ids if rows is None else ids[rows]
        return Listing(ids, None, "", len(ids))
    by_words = method != "VSS"
    table = store.postings() if by_words else store.vectors()
    rows = _allowed(store, table.chunk_ids, filter_text, doc_id)
    words = near = None
    if by_words:
        scores = bm25_scores(store.postings(), query_terms(store, query), k=1.2, b=0.75, conjunctive=False)
        words = rank_scores(scores, len(scores) if method == "BM25" else CANDIDATES, rows)
    if method != "BM25":
        depth = DEPTH if method == "VSS" else CANDIDATES
        near = rank_vectors(store.vectors(), query_vector(store, query), "cosine_distance", depth, rows)
    if words is not None and near is not None:
        fused = fuse(near, words, (1.0, 1.0))
        return Listing(table.chunk_ids[fused.rows], fused.score, "score", len(fused.rows))
    if near is not None:
        total = len(table.chunk_ids) if rows is None else len(rows)
        return Listing(table.chunk_ids[near.rows], near.values, "distance", total)
    assert words is not None
    return Listing(table.chunk_ids[words.rows], words.values, "score", len(words.rows))


@st.cache_data(show_spinner=False, max_entries=16)
def documents(_store: Store, location: str, revision: int) -> pd.DataFrame:
    """`store.documents()` with a column `label`: the origin, or a name for a document without one."""
    found = _store.documents()
    named = zip(found["origin"], found["doc_id"], strict=True)
    labels = [origin or f"no origin (document {doc_id})" for origin, doc_id in named]
    return found.assign(label=labels)


def _allowed(store: Store, ids: NDArray[np.int64], filter_text: str, doc_id: Any) -> NDArray[np.int64] | None:
    rows = allowed_rows(store, filter_text or None, ids)
    if doc_id is None:
        return rows
    own = allowed_rows(store, {"doc_id": doc_id}, ids)
    return own if rows is None or own is None else np.intersect1d(rows, own)


def _all_ids(store: Store) -> NDArray[np.int64]:
    with store.opened.database.reading() as cursor:
        found = cursor.execute(f"SELECT chunk_id FROM {store.layout.table} ORDER BY chunk_id").fetchnumpy()
    return np.asarray(found["chunk_id"], np.int64)
