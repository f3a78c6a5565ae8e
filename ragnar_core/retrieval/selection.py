"""From a ranking of chunks to a result list of ``top_k`` distinct passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.deoverlap import check_mergeable, chunks_deoverlap
from ragnar_core.retrieval.query import hits_table, rows_of

if TYPE_CHECKING:
    from ragnar_core.store import Store

MMR_POOL = 50


@dataclass(frozen=True)
class Selection:
    """How a ranking becomes a result list. The default takes the first ``top_k`` chunks as they are.

    Whatever is set, candidates are taken from the ranking until there are ``top_k`` passages or no candidates
    left.

    Attributes:
        deoverlap: merge chunks that share characters; a passage counts once towards ``top_k``.
        touching: with deoverlap, also merge a chunk that starts exactly where another ends.
        per_document: at most so many passages of one document.
        drop_duplicates: leave out a chunk whose text (white space aside) a better one has already.
        mmr: maximal marginal relevance (Carbonell and Goldstein 1998), from 1 (relevance only) to 0 (only
            unlike what was taken before). Relevance is scaled so that the best candidate has 1.
    """

    deoverlap: bool = False
    touching: bool = False
    per_document: int | None = None
    drop_duplicates: bool = False
    mmr: float | None = None

    def __post_init__(self) -> None:
        for name in ("deoverlap", "touching", "drop_duplicates"):
            if not isinstance(getattr(self, name), bool):
                raise RetrievalError(f"{name} must be True or False, not {getattr(self, name)!r}")
        limit = self.per_document
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise RetrievalError(f"per_document must be a whole number of 1 or more, or None, not {limit!r}")
        if self.mmr is not None and not (isinstance(self.mmr, (int, float)) and 0 <= self.mmr <= 1):
            raise RetrievalError(f"mmr must be a number between 0 and 1, or None, not {self.mmr!r}")

    @property
    def is_plain(self) -> bool:
        return self.mmr is None and not self.needs_chunks

    @property
    def needs_chunks(self) -> bool:
        return self.deoverlap or self.drop_duplicates or self.per_document is not None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Selection:
        return cls(**values)


@dataclass(frozen=True)
class Candidates:
    """The best chunks of a ranking: ids best first, their result columns, relevance (best = 1) for MMR."""

    chunk_ids: NDArray[np.int64]
    columns: Mapping[str, Any]
    relevance: NDArray[np.float64] = field(repr=False)

    def take(self, at: NDArray[np.int64]) -> Candidates:
        columns = {
            name: values if isinstance(values, str) else values[at] for name, values in self.columns.items()
        }
        return Candidates(self.chunk_ids[at], columns, self.relevance[at])


Ranker = Callable[[int], Candidates]


def select(store: Store, ranker: Ranker, top_k: int, selection: Selection) -> pd.DataFrame:
    """The result table of ``ranker`` (best candidates up to a depth) under ``selection``."""
    if selection.is_plain:
        found = ranker(top_k)
        return hits_table(store, found.chunk_ids, found.columns)
    if selection.deoverlap:
        check_mergeable(store)
    depth = max(MMR_POOL, 4 * top_k)
    while True:
        found = ranker(depth)
        chunks, enough = _taken(store, found, top_k, selection)
        if enough or len(found.chunk_ids) < depth:
            break
        depth *= 4
    return chunks_deoverlap(store, chunks, touching=selection.touching) if selection.deoverlap else chunks


def _taken(store: Store, found: Candidates, top_k: int, selection: Selection) -> tuple[pd.DataFrame, bool]:
    if selection.mmr is not None:
        length = len(found.chunk_ids) if selection.needs_chunks else top_k
        found = found.take(marginal_relevance(store, found, selection.mmr, length))
    table = hits_table(store, found.chunk_ids, found.columns)
    if not selection.needs_chunks:
        return table, True
    kept, enough = _walk(table, top_k, selection)
    return table.iloc[kept].reset_index(drop=True), enough


def _walk(table: pd.DataFrame, top_k: int, selection: Selection) -> tuple[list[int], bool]:
    """Rows of the shortest start of the table that makes ``top_k`` passages, and whether it did."""
    passages: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    texts: set[str] = set()
    kept: list[int] = []
    count = 0
    reach = 1 if selection.touching else 0
    ranges = zip(table["doc_id"], table["start"], table["end"], table["text"], strict=True)
    for row, (doc, start, end, text) in enumerate(ranges):
        if count == top_k:
            break
        shared = []
        if selection.deoverlap:
            shared = [one for one in passages[doc] if start < one[1] + reach and one[0] < end + reach]
        if not shared:
            if selection.per_document is not None and len(passages[doc]) >= selection.per_document:
                continue
            key = " ".join(text.split())
            if selection.drop_duplicates and key in texts:
                continue
            texts.add(key)
        kept.append(row)
        count += 1 - len(shared)
        if shared:
            passages[doc] = [one for one in passages[doc] if one not in shared]
            start, end = min(start, *(one[0] for one in shared)), max(end, *(one[1] for one in shared))
        passages[doc].append((start, end))
    return kept, count == top_k


def marginal_relevance(store: Store, found: Candidates, weight: float, length: int) -> NDArray[np.int64]:
    """Positions of the first ``length`` candidates in the order of maximal marginal relevance."""
    vectors = store.vectors()
    matrix = vectors.matrix[rows_of(vectors, found.chunk_ids)].astype(np.float64)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    left = np.ones(len(matrix), dtype=bool)
    likeness = np.zeros(len(matrix))
    picked: list[int] = []
    while len(picked) < min(length, len(matrix)):
        gain = weight * found.relevance - (1 - weight) * likeness
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        picked.append(best)
        left[best] = False
        with_best = matrix @ matrix[best]
        likeness = with_best if len(picked) == 1 else np.maximum(likeness, with_best)
    return np.asarray(picked, dtype=np.int64)
