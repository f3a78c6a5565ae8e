"""The union of both searches, for one question or several, merged into passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.bm25 import retrieve_bm25
from ragnar_core.retrieval.deoverlap import chunks_deoverlap
from ragnar_core.retrieval.query import check_text, check_top_k
from ragnar_core.retrieval.vss import retrieve_vss

if TYPE_CHECKING:
    from ragnar_core.store import Store

FUSION_K = 60
METRICS = ("metric_name", "metric_value")


def retrieve(
    store: Store,
    query: str | Sequence[str],
    *,
    top_k: int = 3,
    deoverlap: bool = True,
    filter: str | Mapping[str, Any] | None = None,
    method: str = "cosine_distance",
    k: float = 1.2,
    b: float = 0.75,
    conjunctive: bool = False,
    limit: int | None = None,
    min_similarity: float | None = None,
    min_bm25: float | None = None,
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
        min_similarity: of the chunks of VSS, min_bm25: of those of BM25.
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
    wanted = None if limit is None else check_top_k(limit)
    several = not isinstance(query, str)
    queries = [check_text(one) for one in query] if several else [check_text(query)]
    if not queries:
        raise RetrievalError("the list of queries is empty; give at least one")
    deoverlap = deoverlap and getattr(store, "version", 2) >= 2
    while True:
        vss = {"method": method, "min_similarity": min_similarity}
        bm25 = {"k": k, "b": b, "conjunctive": conjunctive, "min_bm25": min_bm25}
        lists = [
            (one, found)
            for one in queries
            for found in (
                retrieve_vss(store, one, top_k=top_k, filter=filter, **vss),
                retrieve_bm25(store, one, top_k=top_k, filter=filter, **bm25),
            )
        ]
        chunks = _union(lists, method, several)
        table = chunks_deoverlap(store, chunks) if deoverlap else chunks
        exhausted = all(len(found) < top_k for _, found in lists)
        if wanted is None or len(table) >= wanted or exhausted:
            return table if wanted is None else table.head(wanted)
        top_k = max(2 * top_k, wanted)


def _union(lists: list[tuple[str, pd.DataFrame]], method: str, several: bool) -> pd.DataFrame:
    fused: dict[int, float] = {}
    values: dict[str, dict[int, float]] = {method: {}, "bm25": {}}
    asked: dict[int, dict[str, None]] = {}
    for query, found in lists:
        for rank, (chunk, name, value) in enumerate(
            zip(
                found["chunk_id"].tolist(), found["metric_name"], found["metric_value"].tolist(), strict=True
            ),
            1,
        ):
            fused[chunk] = fused.get(chunk, 0.0) + 1 / (FUSION_K + rank)
            better = max if name == "bm25" else min
            values[name][chunk] = better(value, values[name].get(chunk, value))
            asked.setdefault(chunk, {})[query] = None
    order = sorted(fused, key=lambda chunk: (-fused[chunk], chunk))
    table = pd.concat([found for _, found in lists], ignore_index=True).drop(columns=list(METRICS))
    at = table.drop_duplicates("chunk_id").reset_index(drop=True)
    place = {chunk: row for row, chunk in enumerate(at["chunk_id"].tolist())}
    at = at.iloc[[place[chunk] for chunk in order]].reset_index(drop=True)
    for name, by_chunk in values.items():
        at[name] = np.array([by_chunk.get(chunk, np.nan) for chunk in order], dtype=np.float64)
    if several:
        at["query"] = pd.Series([list(asked[chunk]) for chunk in order], dtype=object)
    return at
