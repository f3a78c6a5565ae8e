"""Why a chunk or a document is not among the results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.allowed import allowed_rows, filter_columns
from ragnar_core.retrieval.explain import (
    Explanation,
    explain_row,
    fused_for,
    prepare_for,
    rank_in_distances,
    rank_in_scores,
    row_of,
)
from ragnar_core.retrieval.filter_tree import All, sentence
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.prepared import Prepared
from ragnar_core.retrieval.query import is_blank
from ragnar_core.retrieval.search import SearchSettings, search
from ragnar_core.retrieval.thresholds import SLACK

if TYPE_CHECKING:
    from ragnar_core.store import Store


@dataclass(frozen=True)
class Absence:
    """Where a chunk stands in each search and what kept it out of a result list.

    Attributes:
        reason: "in results", "merged" (part of the passage at ``position``), "filter", "similarity", "bm25",
            "no term", "missing terms", "rank", "duplicate", "per document", "diversity", "empty query" or
            "no model" (the query cannot be embedded, so that the search gives nothing).
        detail: the same as a sentence for people.
        position: row of the result list (from 1) for "in results" and "merged".
        vss_rank, bm25_rank, fused_rank: ranks among what filter and thresholds let through.
        unfiltered_vss_rank, unfiltered_bm25_rank: ranks without them.
        chunks: for a document, how many chunks it has; ``chunk_id`` is then its best one.
    """

    chunk_id: int
    reason: str
    detail: str
    position: int | None
    vss_rank: int | None
    bm25_rank: int | None
    fused_rank: int | None
    unfiltered_vss_rank: int | None
    unfiltered_bm25_rank: int | None
    chunks: int
    explanation: Explanation

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def why_not(
    store: Store,
    query: str,
    settings: SearchSettings,
    *,
    chunk_id: int | None = None,
    origin: str | None = None,
    results: pd.DataFrame | None = None,
) -> Absence:
    """What kept a chunk, or the best chunk of a document, out of the results of ``search``.

    Args:
        chunk_id, origin: one of them.
        results: the result of ``search(store, query, settings)`` where it is at hand.

    Raises:
        RetrievalError: neither or both are given, or the store has no such chunk or document.
    """
    if (chunk_id is None) == (origin is None):
        raise RetrievalError("give chunk_id or origin, one of them")
    ready = prepare_for(store, query, settings)
    results = _results(store, query, settings, ready) if results is None else results
    rows = _rows(store, ready, chunk_id, origin)
    row = _best(ready, rows, results, settings)
    explained = explain_row(store, ready, query, row, settings)
    free = prepare_for(store, query, _without_limits(settings), ready.vector, no_vector=ready.no_vector)
    reason, detail, position = _reason(store, ready, query, row, settings, results, explained)
    return Absence(
        chunk_id=explained.chunk_id,
        reason=reason,
        detail=detail,
        position=position,
        vss_rank=explained.vss.rank if explained.vss else None,
        bm25_rank=explained.bm25.rank,
        fused_rank=explained.fusion.rank if explained.fusion else None,
        unfiltered_vss_rank=rank_in_distances(free, row),
        unfiltered_bm25_rank=rank_in_scores(free, row),
        chunks=len(rows),
        explanation=explained,
    )


def _results(store: Store, query: str, settings: SearchSettings, ready: Prepared) -> pd.DataFrame:
    nothing = bool(ready.no_vector) and settings.mode != "bm25"
    return pd.DataFrame({"chunk_id": [], "text": []}) if nothing else search(store, query, settings)


def _without_limits(settings: SearchSettings) -> SearchSettings:
    return SearchSettings.from_dict(
        settings.to_dict() | {"filter": None, "min_similarity": None, "min_bm25": None}
    )


def _rows(store: Store, ready: Prepared, chunk_id: int | None, origin: str | None) -> list[int]:
    ids = ready.vectors.chunk_ids
    if chunk_id is not None:
        return [row_of(ready, chunk_id)]
    rows = allowed_rows(store, {"origin": origin}, ids)
    if rows is None or not len(rows):
        raise RetrievalError(f"the store has no document {origin!r} with chunks; see store.documents()")
    return [int(row) for row in rows]


def _best(ready: Prepared, rows: list[int], results: pd.DataFrame, settings: SearchSettings) -> int:
    """The row of a document that came or comes nearest to the results."""
    shown = {number for numbers in _numbers(results) for number in numbers}
    at = np.array(rows, dtype=np.int64)
    given = np.isin(ready.vectors.chunk_ids[at], list(shown))
    through = np.ones(len(at), dtype=bool) if ready.allowed is None else np.isin(at, ready.allowed)
    distance = ready.distances(at) if ready.vector is not None else np.zeros(len(at))
    score = ready.scores[at]
    if settings.mode == "bm25" or ready.no_vector:
        order = np.lexsort((at, -score, ~through, ~given))
    elif settings.mode == "hybrid":
        fused = fused_for(ready, settings)
        by_row = dict(zip(fused.rows.tolist(), fused.score.tolist(), strict=True))
        total = np.array([by_row.get(row, 0.0) for row in rows])
        order = np.lexsort((at, distance, -total, ~through, ~given))
    else:
        order = np.lexsort((at, distance, ~through, ~given))
    return rows[int(order[0])]


def _numbers(results: pd.DataFrame) -> list[list[int]]:
    """The chunk_ids of each row; several where chunks were merged."""
    return [list(ids) if isinstance(ids, list) else [int(ids)] for ids in results["chunk_id"]]


Reason = tuple[str, str, int | None]


def _reason(
    store: Store,
    ready: Prepared,
    query: str,
    row: int,
    settings: SearchSettings,
    results: pd.DataFrame,
    explained: Explanation,
) -> Reason:
    number = explained.chunk_id
    for position, numbers in enumerate(_numbers(results), 1):
        if number in numbers and len(numbers) > 1:
            others = ", ".join(str(other) for other in numbers if other != number)
            return "merged", f"it is part of result {position}, merged with chunk {others}", position
        if number in numbers:
            return "in results", f"it is result {position}", position
    if is_blank(query):
        return "empty query", "the query is empty", None
    if ready.no_vector and settings.mode != "bm25":
        return "no model", f"the query cannot be embedded: {ready.no_vector.rstrip('.')}", None
    return (
        _shut_out(store, ready, row, settings, explained)
        or _unmatched(settings, explained)
        or _skipped(store, ready, row, settings, results, explained)
        or ("rank", _ranked(settings, explained), None)
    )


def _shut_out(
    store: Store, ready: Prepared, row: int, settings: SearchSettings, explained: Explanation
) -> Reason | None:
    if ready.filtered is not None and row not in ready.filtered:
        return "filter", _failing(store, explained.chunk_id, settings), None
    similarity = explained.vss.similarity if explained.vss else 0.0
    least = settings.min_similarity
    if settings.mode != "bm25" and least and similarity < least - SLACK:
        return "similarity", f"its similarity {similarity:.3f} is below min_similarity {least:g}", None
    least = settings.min_bm25
    if settings.mode != "vss" and least and explained.bm25.score < least - SLACK:
        return "bm25", f"its BM25 score {explained.bm25.score:.3f} is below min_bm25 {least:g}", None
    return None


def _failing(store: Store, number: int, settings: SearchSettings) -> str:
    """Which parts of the filter the chunk fails, with its own values."""
    parsed = Filter.parse(settings.filter)
    columns = filter_columns(store)
    row = store.fetch(np.array([number], dtype=np.int64)).iloc[0]
    chunk = {str(name): row[name] for name in row.index}
    parts = parsed.tree.parts if isinstance(parsed.tree, All) else (parsed.tree,)
    failed = [Filter(part) for part in parts if not Filter(part).bind(columns).matches(chunk)]
    names = dict.fromkeys(name for part in failed for name in part.columns)
    values = ", ".join(f"{name} is {_shown(chunk[name])}" for name in names if name != "text")
    asked = " and ".join(sentence(part.tree) for part in failed)
    return f"the filter asks for: {asked}" + (f"; its {values}" if values else "")


def _shown(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, list) and pd.isna(value):
        return "missing"
    return repr(value) if isinstance(value, str) else str(value)


def _unmatched(settings: SearchSettings, explained: Explanation) -> Reason | None:
    if settings.mode != "bm25" or explained.bm25.score > 0:
        return None
    missing = [term.words[0] for term in explained.bm25.terms if not term.frequency]
    if settings.conjunctive and len(missing) < len(explained.bm25.terms):
        return "missing terms", f"it does not hold {', '.join(missing)}, and every term is asked for", None
    return "no term", "it holds none of the query's terms", None


def _skipped(
    store: Store,
    ready: Prepared,
    row: int,
    settings: SearchSettings,
    results: pd.DataFrame,
    explained: Explanation,
) -> Reason | None:
    """What ``selection`` did to a chunk that ranks better than one of the results."""
    chosen = settings.selection
    if settings.mode == "union" or chosen.is_plain:
        return None
    rank = rank_in_mode(settings, explained)
    if rank is None:
        return None
    before = {"vss": ready.by_vss, "bm25": ready.by_bm25}.get(settings.mode)
    rows = before(rank).rows if before else fused_for(ready, settings).rows[:rank]
    ids = set(ready.vectors.chunk_ids[rows].tolist())
    if all(number in ids for numbers in _numbers(results) for number in numbers):
        return None
    chunk = store.fetch(np.array([explained.chunk_id], dtype=np.int64)).iloc[0]
    same = [" ".join(text.split()) == " ".join(chunk["text"].split()) for text in results["text"]]
    if chosen.drop_duplicates and any(same):
        position = same.index(True) + 1
        return "duplicate", f"its text is that of result {position}", None
    limit = chosen.per_document
    if limit is not None and int((results["doc_id"] == chunk["doc_id"]).sum()) >= limit:
        return "per document", f"its document has {limit} in the results already, which is the limit", None
    if chosen.mmr is not None:
        return "diversity", f"it is too like the results (mmr {chosen.mmr:g}); its rank is {rank}", None
    return None


def rank_in_mode(settings: SearchSettings, explained: Explanation) -> int | None:
    """The rank that decides in the settings' mode; the better one of both searches for "union"."""
    vss = explained.vss.rank if explained.vss else None
    fused = explained.fusion.rank if explained.fusion else None
    both = [rank for rank in (vss, explained.bm25.rank) if rank is not None]
    ranks = {"vss": vss, "bm25": explained.bm25.rank, "hybrid": fused, "union": min(both, default=None)}
    return ranks[settings.mode]


def _ranked(settings: SearchSettings, explained: Explanation) -> str:
    vss = explained.vss.rank if explained.vss else None
    bm25 = explained.bm25.rank
    own = {
        "vss": f"VSS rank {vss}",
        "bm25": f"BM25 rank {bm25}",
        "union": f"VSS rank {vss}, BM25 rank {bm25 or 'none (no term occurs)'}",
    }
    said = own.get(settings.mode)
    if said is None:
        rank = explained.fusion.rank if explained.fusion else None
        said = f"hybrid rank {rank}" if rank else f"not among the {settings.candidates} candidates"
        said += f" (VSS rank {vss}, BM25 rank {bm25 or 'none'})"
    return f"{said}; the list ends at {settings.top_k}"
