"""What a map is read for: each chunk's nearest ones, near-duplicates, outliers, and clusters with their
words.

All of it works on unit vectors `(n, dim)` in blocks of whole-array products, and gives the same answer
each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
SEED = 42
EXACT_UP_TO = 20_000
_BLOCK = 1024
_LARGEST_CELL = 8_000


@dataclass(frozen=True)
class Neighbours:
    """Each point's nearest other points, nearest first.

    Attributes:
        index: int32 (n, k), rows.
        similarity: float32 (n, k), cosine.
        exact: False when only points of the same region were compared; a near one may then be missing.
    """

    index: NDArray[np.int32]
    similarity: Floats
    exact: bool


@dataclass(frozen=True)
class DuplicateGroup:
    """Chunks that say nearly the same: their rows, and the lowest similarity that joins them."""

    rows: Rows
    similarity: float


@dataclass(frozen=True)
class Clusters:
    """`label` int32 (n,), 0 for the largest cluster; `sizes` one a cluster."""

    label: NDArray[np.int32]
    sizes: list[int]


def neighbours(unit: Floats, k: int = 15, *, exact_up_to: int = EXACT_UP_TO, seed: int = SEED) -> Neighbours:
    """The k nearest of each point, itself left out; fewer where there are fewer points.

    Up to `exact_up_to` points every pair is compared. Beyond, points are compared within their two
    nearest of about sqrt(n) regions, which costs n to the power of 1.5.
    """
    n = len(unit)
    k = min(k, max(n - 1, 0))
    index, similarity = np.zeros((n, k), np.int32), np.full((n, k), -1.0, np.float32)
    if not k:
        return Neighbours(index, similarity, True)
    if n <= exact_up_to:
        everything = np.arange(n)
        for start in range(0, n, _BLOCK):
            rows = everything[start : start + _BLOCK]
            index[rows], similarity[rows] = _nearest(unit, rows, everything, k)
        return Neighbours(index, similarity, True)
    for primary, members in _cells(unit, k, seed):
        for start in range(0, len(primary), _BLOCK):
            rows = primary[start : start + _BLOCK]
            index[rows], similarity[rows] = _nearest(unit, rows, members, k)
    return Neighbours(index, similarity, False)


def near_duplicates(
    near: Neighbours, threshold: float = 0.97, *, apart: NDArray[np.bool_] | None = None
) -> list[DuplicateGroup]:
    """Groups of points joined by similarities of `threshold` and above, the most similar first.

    `apart` (n, k) says which neighbours may be joined; the caller leaves out chunks that share characters.
    """
    joined = near.similarity >= threshold
    if apart is not None:
        joined &= apart
    left, place = np.nonzero(joined)
    right = near.index[left, place].astype(np.int64)
    label = np.arange(len(near.index))
    while True:
        low = np.minimum(label[left], label[right])
        fresh = label.copy()
        np.minimum.at(fresh, left, low)
        np.minimum.at(fresh, right, low)
        fresh = fresh[fresh]
        if np.array_equal(fresh, label):
            break
        label = fresh
    lowest = np.full(len(label), 2.0)
    np.minimum.at(lowest, label[left], near.similarity[left, place])
    members = np.flatnonzero(np.isin(label, label[left]))
    order = members[np.argsort(label[members], kind="stable")]
    bounds = np.flatnonzero(np.diff(label[order])) + 1
    groups = [
        DuplicateGroup(rows, float(lowest[label[rows[0]]])) for rows in np.split(order, bounds) if len(rows)
    ]
    return sorted(groups, key=lambda group: (-group.similarity, int(group.rows[0])))


def outliers(near: Neighbours, *, among: int = 5) -> tuple[Rows, Floats, NDArray[np.bool_]]:
    """(rows, mean cosine similarity to the nearest `among`, whether it stands out), the loneliest first.

    A point stands out when its mean lies more than 3.5 scaled median absolute deviations below the
    median (Iglewicz and Hoaglin 1993).
    """
    n, k = near.similarity.shape
    if not k:
        return np.arange(n), np.zeros(n, np.float32), np.zeros(n, np.bool_)
    mean = near.similarity[:, : min(among, k)].mean(axis=1)
    middle = float(np.median(mean))
    spread = 1.4826 * float(np.median(np.abs(mean - middle)))
    order = np.argsort(mean, kind="stable")
    return order, mean[order], mean[order] < middle - 3.5 * max(spread, 1e-4)


def clusters(unit: Floats, count: int | None = None, *, seed: int = SEED) -> Clusters:
    """Spherical k-means with k-means++ starts; `count` defaults to sqrt(n / 2), from 2 to 12, 1 below 4
    points.
    """
    n = len(unit)
    if not n:
        return Clusters(np.zeros(0, np.int32), [])
    wanted = count or (1 if n < 4 else int(np.clip(round((n / 2) ** 0.5), 2, 12)))
    centres = _starts(unit, min(wanted, n), np.random.default_rng(seed))
    label = np.argmax(unit @ centres.T, axis=1)
    for _ in range(30):
        centres = _means(unit, label, centres)
        fresh = np.argmax(unit @ centres.T, axis=1)
        if np.array_equal(fresh, label):
            break
        label = fresh
    sizes = np.bincount(label, minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return Clusters(rank[label], [int(size) for size in sizes[order] if size])


def cluster_words(
    postings: PostingsTable, chunk_ids: Rows, label: NDArray[np.int32], *, count: int = 3
) -> list[str]:
    """The indexed terms that set each cluster apart: frequent within, rare elsewhere (class-based TF-IDF)."""
    n = len(postings.chunk_ids)
    group = np.full(n, -1, np.int32)
    at = np.searchsorted(postings.chunk_ids, chunk_ids)
    known = (at < n) & (postings.chunk_ids[np.minimum(at, max(n - 1, 0))] == chunk_ids) if n else at < 0
    group[at[known]] = label[known]
    sizes = np.diff(postings.indptr)
    term_of = np.repeat(np.arange(len(sizes)), sizes)
    terms: dict[int, str] = {number: term for term, number in postings.terms.items()}
    rare = np.log1p(n / np.maximum(sizes, 1))
    found = []
    for number in range(int(label.max(initial=-1)) + 1):
        inside = np.bincount(term_of[group[postings.rows] == number], minlength=len(sizes))
        weight = inside * rare * inside / np.maximum(sizes, 1)
        best = [int(term) for term in np.argsort(-weight, kind="stable")[: count * 4] if inside[term]]
        words = [
            terms[term]
            for term in best
            if term in terms and len(terms[term]) > 2 and not terms[term].isdigit()
        ]
        found.append(", ".join(words[:count]))
    return found


def _nearest(unit: Floats, rows: Rows, members: Rows, k: int) -> tuple[NDArray[Any], NDArray[Any]]:
    similarity = unit[rows] @ unit[members].T
    similarity[rows[:, None] == members[None, :]] = -np.inf
    if similarity.shape[1] > k:
        best = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
    else:
        best = np.arange(similarity.shape[1])[None, :].repeat(len(rows), axis=0)
    value = np.take_along_axis(similarity, best, axis=1)
    order = np.lexsort((members[best], -value), axis=1)
    best, value = np.take_along_axis(best, order, axis=1), np.take_along_axis(value, order, axis=1)
    return members[best], np.clip(value, -1.0, 1.0)


def _cells(unit: Floats, k: int, seed: int) -> list[tuple[Rows, Rows]]:
    """(the points of a region, the points they are compared with) for each region."""
    rng = np.random.default_rng(seed)
    n = len(unit)
    count = max(2, int(n**0.5))
    centres = unit[np.sort(rng.choice(n, count, replace=False))]
    sample = unit[np.sort(rng.choice(n, min(n, 50_000), replace=False))]
    for _ in range(3):
        centres = _means(sample, np.argmax(sample @ centres.T, axis=1), centres)
    first, second = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, 8 * _BLOCK):
        block = unit[start : start + 8 * _BLOCK] @ centres.T
        pair = np.argpartition(-block, 1, axis=1)[:, :2]
        value = np.take_along_axis(block, pair, axis=1)
        swap = value[:, 1] > value[:, 0]
        pair[swap] = pair[swap][:, ::-1]
        first[start : start + len(pair)], second[start : start + len(pair)] = pair[:, 0], pair[:, 1]
    cells = []
    for number in range(count):
        primary = np.flatnonzero(first == number)
        if not len(primary):
            continue
        members = np.flatnonzero((first == number) | (second == number))
        if len(members) > _LARGEST_CELL:
            members = np.sort(rng.choice(members, _LARGEST_CELL, replace=False))
        if len(members) <= k:
            others = np.setdiff1d(np.arange(min(n, 4 * (k + 1))), members)
            members = np.sort(np.concatenate((members, others)))
        cells.append((primary, members))
    return cells


def _starts(unit: Floats, count: int, rng: np.random.Generator) -> Floats:
    chosen = [int(rng.integers(len(unit)))]
    nearest = np.full(len(unit), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.maximum(1 - unit @ unit[chosen[-1]], 0).astype(np.float64))
        if nearest.sum() < 1e-9:
            break
        chosen.append(int(rng.choice(len(unit), p=nearest / nearest.sum())))
    return unit[chosen]


def _means(unit: Floats, label: NDArray[Any], centres: Floats) -> Floats:
    order = np.argsort(label, kind="stable")
    present, begin = np.unique(label[order], return_index=True)
    sums = np.add.reduceat(unit[order], begin, axis=0)
    length = np.linalg.norm(sums, axis=1)
    moved = centres.copy()
    moved[present] = np.where(
        length[:, None] > 1e-9, sums / np.maximum(length, 1e-9)[:, None], centres[present]
    )
    return moved
