"""The nearest rows by way of the graph that a very large store may keep, each measured exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.retrieval.scoring import Ranking, Rows, rank_vectors, vector_distances
from ragnar_core.store.ann import GraphView

if TYPE_CHECKING:
    from ragnar_core.store import VectorTable

DEEPEST = 100
"""Longest list that is taken from the graph; longer ones are searched exactly."""


def rank_near(
    table: VectorTable,
    query: NDArray[Any],
    method: str,
    top_k: int,
    allowed: Rows | None,
    graph: GraphView | None,
) -> Ranking:
    """As ``rank_vectors``, which it is without a graph, for some of the rows, and for lists of more than 100.

    With a graph, a row of the true list may be missing (see ``docs/store.md`` for how often); the values of those that
    are there are exact, and so is their order.
    """
    # The graph knows directions: other distances have its order only among vectors of one length.
    if (
        graph is None
        or allowed is not None
        or top_k > DEEPEST
        or not (method == "cosine_distance" or table.unit)
    ):
        return rank_vectors(table, query, method, top_k, allowed)
    rows = graph.near(np.asarray(query, np.float32), 2 * top_k + 32)
    if len(rows) < min(top_k, len(table)):
        return rank_vectors(table, query, method, top_k, allowed)
    if len(graph.outside):
        beside = rank_vectors(table, query, method, top_k, graph.outside)
        rows = np.concatenate([rows, beside.rows])
    values = vector_distances(table, query, method, rows)
    order = np.lexsort((rows, values))[:top_k]
    return Ranking(rows[order], values[order], exact=False)
