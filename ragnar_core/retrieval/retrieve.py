"""The union of both searches, for one question or several, merged into passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.deoverlap import chunks_deoverlap
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.prepared import Prepared, prepare
from ragnar_core.retrieval.query import (
    check_bm25,
    check_method,
    check_store,
    check_text,
    check_top_k,
    hits_table,
)
from ragnar_core.retrieval.thresholds import check_threshold

if TYPE_CHECKING:
    from ragnar_core.store import Store

FUSION_K = 60


def retrieve(
    store: Store,
    query: str | Sequence[str],
    *,
    top_k: int = 3,
    deoverlap: bool = True,
    filter: str | Mapping[str, Any] | Filter | None = None,
    method: str = "cosine_distance",
    k: float = 1.2,
    b: float = 0.75,
    conjunctive: bool = False,
    limit: int | None = None,
    min_similarity: float | None = None,
    min_bm25: float | None = None,
    exact: bool = False,
) -> pd.DataFrame:
    """What VSS or BM25 finds for a query or any of several queries, each chunk once, merged into passages.

    Args:
        query: a text or several (say, one question in different words).
        top_k: chunks of each method and query. Up to ``2 * top_k`` rows come back for one query, as in
            ragnar.
        deoverlap: merge chunks that share characters (``chunks_deoverlap``). Chunks of version 1 stores stay
            as they are.
        limit: at most so many rows, and no fewer as long as there are more: ``top_k`` grows until they are
            found.
        min_similarity: leave out chunks below it, whichever search found them; so does min_bm25.
        exact: as in ``retrieve_vss``, whose ``.attrs["vss"]`` the result has as well.
        Others: as in ``retrieve_vss`` and ``retrieve_bm25``.

    Returns:
        The columns of ``store.fetch``, the distance under the name of its method and ``bm25`` (missing where
        that search did not give the chunk; the best value over several queries), and for several queries
        ``query``: the list of those that found it. Order: reciprocal rank fusion over all lists, then
        chunk_id. With deoverlap the columns ``chunk_id``, metrics, ``query`` and extra columns hold lists,
        one value a merged chunk.

    Raises:
        RetrievalError, FilterError, EmbedError: as the two searches do.
    """
    top_k = check_top_k(top_k)
    wanted = None if limit is None else check_top_k(limit, "limit")
    check_method(method)
    check_bm25(k, b)
    check_threshold("min_similarity", min_similarity)
    check_threshold("min_bm25", min_bm25)
    if not isinstance(query, str | Sequence):
        raise RetrievalError(f"the query must be a text or a list of texts, not {type(query).__name__}")
    queries = [check_text(one) for one in ([query] if isinstance(query, str) else query)]
    if not queries:
        raise RetrievalError("the list of queries is empty; give at least one")
    check_store(store)
    deoverlap = deoverlap and store.version >= 2
    ready = [
        prepare(
            store,
            one,
            filter=filter,
            method=method,
            k=k,
            b=b,
            conjunctive=conjunctive,
            min_similarity=min_similarity,
            min_bm25=min_bm25,
            exact=exact,
        )
        for one in queries
    ]
    while True:
        chunks, exhausted = _union(store, ready, queries, top_k, several=not isinstance(query, str))
        table = chunks_deoverlap(store, chunks) if deoverlap else chunks
        if wanted is None or len(table) >= wanted or exhausted:
            table = table if wanted is None else table.head(wanted)
            approximate = any(one.facts.get("vss") == "approximate" for one in ready)
            table.attrs["vss"] = "approximate" if approximate else "exact"
            return table
        top_k = max(2 * top_k, wanted)


def _union(
    store: Store, ready: list[Prepared], queries: list[str], top_k: int, *, several: bool
) -> tuple[pd.DataFrame, bool]:
    """Every chunk that one of the searches gives, once, and whether no search has more to give."""
    fused: dict[int, float] = {}
    asked: dict[int, dict[str, None]] = {}
    method = ready[0].method
    values: dict[str, dict[int, float]] = {method: {}, "bm25": {}}
    exhausted = True
    for question, text in zip(ready, queries, strict=True):
        for name, found in ((method, question.by_vss(top_k)), ("bm25", question.by_bm25(top_k))):
            exhausted = exhausted and len(found) < top_k
            better = max if name == "bm25" else min
            ids = question.vectors.chunk_ids[found.rows].tolist()
            for rank, (chunk, value) in enumerate(zip(ids, found.values.tolist(), strict=True), 1):
                fused[chunk] = fused.get(chunk, 0.0) + 1 / (FUSION_K + rank)
                values[name][chunk] = better(value, values[name].get(chunk, value))
                asked.setdefault(chunk, {})[text] = None
    order = sorted(fused, key=lambda chunk: (-fused[chunk], chunk))
    columns: dict[str, Any] = {
        name: np.array([known.get(chunk, np.nan) for chunk in order], dtype=np.float64)
        for name, known in values.items()
    }
    if several:
        questions = np.empty(len(order), dtype=object)
        questions[:] = [list(asked[chunk]) for chunk in order]
        columns["query"] = questions
    return hits_table(store, np.array(order, dtype=np.int64), columns), exhausted
