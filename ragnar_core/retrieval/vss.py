"""Vector similarity search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.retrieval.allowed import allowed_rows
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.near import rank_near
from ragnar_core.retrieval.query import check_method, check_store, check_top_k, is_blank, query_vector
from ragnar_core.retrieval.scoring import Ranking, Rows, vector_distances
from ragnar_core.retrieval.selection import Candidates, Selection, select
from ragnar_core.retrieval.thresholds import check_threshold, similar_rows
from ragnar_core.store.ann import GraphView, graph_view

if TYPE_CHECKING:
    from ragnar_core.store import Store, VectorTable


def retrieve_vss(
    store: Store,
    query: str | Any,
    *,
    top_k: int = 3,
    method: str = "cosine_distance",
    filter: str | Mapping[str, Any] | Filter | None = None,
    min_similarity: float | None = None,
    selection: Selection | None = None,
    exact: bool = False,
) -> pd.DataFrame:
    """The chunks nearest to the query's vector, nearest first; ties in the order of chunk_id.

    Every vector is compared, unless a store of 300,000 chunks or more keeps a graph (``docs/store.md``): then one of
    the nearest may be missing. ``.attrs["vss"]`` of the result says "exact" or "approximate".

    Args:
        query: a text (embedded by the store's embedder) or a vector of ``store.dim`` numbers.
        top_k: number of rows; fewer come back only where fewer chunks match.
        method: ``cosine_distance`` (0 same direction to 2 opposite), ``euclidean_distance`` (0 and up) or
            ``negative_inner_product`` (minus the dot product). Lower is nearer for all three.
        filter: conditions on columns, as a dict or as text (see ``docs/retrieval.md``).
        min_similarity: leave out chunks whose cosine similarity to the query is lower, whatever the method.
        selection: distinct passages, limits per document, diversity; see ``Selection``.
        exact: compare every vector in any case.

    Returns:
        The columns of ``store.fetch`` with ``metric_name`` (the method) and ``metric_value``. A blank query
        or a filter that nothing passes gives an empty table with these columns.

    Raises:
        RetrievalError: a setting or the query vector is out of range.
        FilterError: the filter does not parse or names an unknown column.
        EmbedError: the query is a text and the store's embedder is unknown or fails.
    """
    top_k, method = check_top_k(top_k), check_method(method)
    check_threshold("min_similarity", min_similarity)
    check_store(store)
    table = store.vectors()
    allowed = allowed_rows(store, filter, table.chunk_ids)
    if is_blank(query):
        ranker, facts = _nothing(method), {"vss": "exact"}
    else:
        vector = query_vector(store, query, method)
        allowed = similar_rows(table, vector, min_similarity, allowed)
        graph = graph_view(store, table) if allowed is None and not exact else None
        ranker, facts = _ranker(table, vector, method, allowed, graph)
    found = select(store, ranker, top_k, selection or Selection())
    found.attrs.update(facts)
    return found


def _ranker(
    table: VectorTable,
    vector: NDArray[np.float32],
    method: str,
    allowed: Rows | None,
    graph: GraphView | None,
) -> tuple[Any, dict[str, str]]:
    facts: dict[str, str] = {}

    def best(depth: int) -> Candidates:
        found = rank_near(table, vector, method, depth, allowed, graph)
        facts["vss"] = "exact" if found.exact else "approximate"
        return vss_candidates(table, vector, method, found)

    return best, facts


def vss_candidates(
    table: VectorTable, vector: NDArray[np.float32], method: str, found: Ranking
) -> Candidates:
    cosine = 1 - vector_distances(table, vector, "cosine_distance", found.rows)
    best = float(cosine.max(initial=0.0))
    return Candidates(
        table.chunk_ids[found.rows],
        {"metric_name": method, "metric_value": found.values},
        cosine / best if best > 0 else cosine,
    )


def _nothing(name: str) -> Any:
    empty = np.empty(0, dtype=np.float64)
    found = Candidates(np.empty(0, dtype=np.int64), {"metric_name": name, "metric_value": empty}, empty)
    return lambda depth: found
