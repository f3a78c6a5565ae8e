"""Thresholds: a promise about every row that comes back, on one named scale each. None and 0 mean off.

``min_similarity`` is the cosine similarity of chunk and query (-1 to 1, higher is more alike) whatever
distance ranks, ``min_bm25`` the BM25 score. Both are inclusive and mean the same in every search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.query import is_number
from ragnar_core.retrieval.scoring import FLOAT32_STEP, Floats, Rows, vector_distances

if TYPE_CHECKING:
    from ragnar_core.store import VectorTable

SLACK = 1e-6


def check_threshold(name: str, value: object) -> None:
    if value is None:
        return
    if not is_number(value):
        raise RetrievalError(f"{name} must be a number or None, not {value!r}")
    if name == "min_similarity" and float(value) > 1:  # type: ignore[arg-type]
        raise RetrievalError(f"min_similarity is a cosine similarity, between -1 and 1; {value!r} is above 1")


def similar_rows(
    table: VectorTable, vector: NDArray[Any], min_similarity: float | None, allowed: Rows | None
) -> Rows | None:
    """The allowed rows whose cosine similarity is at least ``min_similarity`` (to within 1e-6)."""
    if not min_similarity or not vector.any():
        return allowed
    norms = table.norms * np.linalg.norm(vector)
    dots = table.matrix @ vector
    rough = np.divide(dots, norms, out=np.full_like(dots, -1.0), where=norms > 0)
    error = (table.matrix.shape[1] + 8) * FLOAT32_STEP + SLACK
    sure = rough >= min_similarity + error
    near = np.flatnonzero((rough >= min_similarity - error) & ~sure)
    sure[near] = 1 - vector_distances(table, vector, "cosine_distance", near) >= min_similarity - SLACK
    return np.flatnonzero(sure) if allowed is None else allowed[sure[allowed]]


def passing(scores: Floats, minimum: float | None) -> Floats:
    """Scores with those under the minimum set to 0, which is no match."""
    return np.where(scores >= minimum - SLACK, scores, 0.0) if minimum else scores
