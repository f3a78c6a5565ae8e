"""Two result lists side by side: what moved, what only one has, how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from ragnar_core.errors import RetrievalError

MATCHES = ("chunk", "range")


@dataclass(frozen=True)
class Move:
    """One passage in both lists or in one. Ranks start at 1; ``change`` is how many places up (+) or down (-)
    the passage goes from the left list to the right one. ``status`` is "same", "up", "down", "only_left" or
    "only_right".
    """

    left_rank: int | None
    right_rank: int | None
    change: int | None
    status: str
    origin: str | None
    left_chunks: tuple[int, ...]
    right_chunks: tuple[int, ...]


@dataclass(frozen=True)
class Comparison:
    """How two lists agree.

    Attributes:
        moves: passages of the left list in its order, then those that only the right one has.
        overlap: passages in both; ``jaccard`` the share of both among all.
        rank_biased_overlap: 1 for equal lists, 0 for disjoint ones, the top weighing most (Webber, Moffat and
            Zobel 2010, extrapolated, ``p`` = 0.9); None when both are empty.
        kendall, spearman: rank correlations (-1 to 1) of the passages in both; None for fewer than two.
    """

    moves: tuple[Move, ...]
    left: int
    right: int
    overlap: int
    jaccard: float | None
    rank_biased_overlap: float | None
    kendall: float | None
    spearman: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_frame(self) -> pd.DataFrame:
        """The moves as a table, one row a passage."""
        return pd.DataFrame([asdict(move) for move in self.moves], columns=list(Move.__dataclass_fields__))


def compare_results(
    left: pd.DataFrame, right: pd.DataFrame, *, match: str = "chunk", p: float = 0.9
) -> Comparison:
    """Compare two results of searches.

    Args:
        match: "chunk" for two searches in one store: passages that share a chunk are the same. "range" for
            two stores or chunk sizes: passages of one origin that share at least half of the shorter one's
            characters are.
        p: how deep rank-biased overlap looks; the first ``1 / (1 - p)`` ranks carry most of the weight.

    Raises:
        RetrievalError: ``match`` or ``p`` is out of range, or a table is no search result.
    """
    if match not in MATCHES:
        raise RetrievalError(f"match {match!r} is unknown; use one of {', '.join(MATCHES)}")
    if not 0 < p < 1:
        raise RetrievalError(f"p must be between 0 and 1, not {p!r}")
    here, there = _passages(left), _passages(right)
    pairs = _pairs(here, there, match)
    partner = dict(pairs)
    moves = [_move(one, there[partner[at]] if at in partner else None) for at, one in enumerate(here)]
    taken = set(partner.values())
    moves += [_move(None, one) for at, one in enumerate(there) if at not in taken]
    union = len(here) + len(there) - len(pairs)
    return Comparison(
        moves=tuple(moves),
        left=len(here),
        right=len(there),
        overlap=len(pairs),
        jaccard=len(pairs) / union if union else None,
        rank_biased_overlap=rank_biased_overlap(len(here), len(there), pairs, p),
        kendall=_kendall([b for _, b in pairs]),
        spearman=_spearman([b for _, b in pairs]),
    )


@dataclass(frozen=True)
class _Passage:
    rank: int
    chunks: tuple[int, ...]
    origin: str | None
    start: int | None
    end: int | None


def _passages(table: pd.DataFrame) -> list[_Passage]:
    if not isinstance(table, pd.DataFrame) or "chunk_id" not in table.columns:
        raise RetrievalError("a table to compare needs the column chunk_id; pass the result of a search")
    passages = []
    for rank, row in enumerate(table.to_dict("records"), 1):
        ids = row["chunk_id"]
        chunks = tuple(int(number) for number in (ids if isinstance(ids, list) else [ids]))
        origin, start, end = row.get("origin"), row.get("start"), row.get("end")
        start, end = (None if place is None or pd.isna(place) else int(place) for place in (start, end))
        passages.append(
            _Passage(
                rank,
                chunks,
                None if pd.isna(origin) else str(origin),
                start,
                end,
            )
        )
    return passages


def _pairs(left: Sequence[_Passage], right: Sequence[_Passage], match: str) -> list[tuple[int, int]]:
    """Each passage with at most one of the other list, those that share most first; in the order of the left
    list."""
    shared = [
        (-amount, a, b)
        for a, one in enumerate(left)
        for b, other in enumerate(right)
        if (amount := _shared(one, other, match)) > 0
    ]
    pairs: dict[int, int] = {}
    for _, a, b in sorted(shared):
        if a not in pairs and b not in pairs.values():
            pairs[a] = b
    return sorted(pairs.items())


def _shared(one: _Passage, other: _Passage, match: str) -> float:
    if match == "chunk":
        return float(len(set(one.chunks) & set(other.chunks)))
    if one.origin is None or one.origin != other.origin:
        return 0.0
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return 0.0
    common = min(one.end, other.end) - max(one.start, other.start)
    shorter = min(one.end - one.start, other.end - other.start)
    return float(common) if common > 0 and 2 * common >= shorter else 0.0


def _move(left: _Passage | None, right: _Passage | None) -> Move:
    change = left.rank - right.rank if left and right else None
    if change is None:
        status = "only_left" if left else "only_right"
    else:
        status = "same" if change == 0 else "up" if change > 0 else "down"
    origin = left.origin if left else right.origin if right else None
    return Move(
        left.rank if left else None,
        right.rank if right else None,
        change,
        status,
        origin,
        left.chunks if left else (),
        right.chunks if right else (),
    )


def rank_biased_overlap(
    left: int, right: int, pairs: Sequence[tuple[int, int]], p: float = 0.9
) -> float | None:
    """Extrapolated rank-biased overlap of two lists of these lengths (equation 32 of Webber, Moffat and Zobel
    2010).

    ``pairs`` are the positions (from 0) of the items in both.
    """
    short, long = sorted((left, right))
    if not long:
        return None
    if not short:
        return 0.0
    depths = [max(pair) + 1 for pair in pairs]
    common = [sum(depth <= d for depth in depths) for d in range(long + 1)]
    total = sum(common[d] / d * p**d for d in range(1, long + 1))
    total += sum(common[short] * (d - short) / (short * d) * p**d for d in range(short + 1, long + 1))
    tail = (common[long] - common[short]) / long + common[short] / short
    return (1 - p) / p * total + tail * p**long


def _kendall(order: Sequence[int]) -> float | None:
    """Concordant minus discordant pairs, as a share of all; ``order`` are right ranks in the order of the
    left."""
    n = len(order)
    if n < 2:
        return None
    signs = [1 if order[a] < order[b] else -1 for a in range(n) for b in range(a + 1, n)]
    return sum(signs) / len(signs)


def _spearman(order: Sequence[int]) -> float | None:
    n = len(order)
    if n < 2:
        return None
    place = {value: at for at, value in enumerate(sorted(order))}
    squares = sum((at - place[value]) ** 2 for at, value in enumerate(order))
    return 1 - 6 * squares / (n * (n * n - 1))
