"""From wanted cuts to real ones: even targets, each moved to the strongest boundary within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.breaks import FloatArray, IntArray

# What a cut was moved to, strongest first. "edge" is the start or end of the text; "row" and "cell" are in
# tables; "line" is the start or end of a line; "word" is a place where a line may be wrapped; "character" is
# a cut that no boundary was near enough for.
CUT_KINDS = ("edge", "heading", "paragraph", "row", "cell", "sentence", "line", "word", "character")


class Tier(NamedTuple):
    """Boundaries of one strength.

    `near(positions, reach)` gives at least those within reach of the positions, ascending. With `within`,
    an (n, 2) array of ranges, only cuts inside one of the ranges look at them.
    """

    kind: str
    near: Callable[[IntArray, FloatArray], IntArray]
    within: IntArray | None = None


class Cuts(NamedTuple):
    """Where the text is cut, ascending, one row a cut.

    `position` is where, `wanted` where the target sizes alone would have cut, `kind` indexes `CUT_KINDS`.
    """

    position: IntArray
    wanted: IntArray
    kind: NDArray[np.uint8]

    @property
    def kinds(self) -> list[str]:
        """The kind of each cut by name."""
        return [CUT_KINDS[kind] for kind in self.kind.tolist()]

    @property
    def counts(self) -> dict[str, int]:
        """How many cuts there are of each kind that occurs, strongest kind first."""
        counts = np.bincount(self.kind, minlength=len(CUT_KINDS)).tolist()
        return {kind: count for kind, count in zip(CUT_KINDS, counts, strict=True) if count}


def even_targets(
    first: FloatArray, last: FloatArray, size: float, overlap: float
) -> tuple[FloatArray, FloatArray]:
    """Wanted starts and ends of the chunks of each segment [first, last), in units.

    Chunks start every `size * (1 - overlap)` units; the last one of a segment ends where the segment does,
    and so overlaps more. A segment no longer than `size` is one chunk.
    """
    last_start = last - size
    short = last_start < first
    starts, ends = [first[short]], [last[short]]
    first, last_start = first[~short], last_start[~short]
    if len(first):
        # Strides below 1 would round to every position anyway, each many times.
        stride = max(size * (1 - overlap), 1.0)
        strides = np.floor((last_start - first) / stride + 1e-10).astype(np.int64) + 1
        segment = np.repeat(np.arange(len(first)), strides)
        step = np.arange(len(segment)) - np.repeat(np.cumsum(strides) - strides, strides)
        # R rounds 1-based positions, half to even: round the same numbers.
        inner = np.rint(np.minimum(first[segment] + 1 + step * stride, last_start[segment] + 1)) - 1
        starts += [inner, last_start]
        ends += [inner + size, last_start + size]
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.lexsort((end, start))
    return start[order], end[order]


def snap(wanted: IntArray, reach: FloatArray, tiers: Iterable[Tier], length: int) -> Cuts:
    """Move each wanted cut to the nearest boundary of the first tier that has one within its reach.

    Of two boundaries equally far the later wins. The edges of the text stay.
    """
    position = np.where(wanted == length, length, -1)
    position[wanted == 0] = 0
    kind = np.zeros(len(wanted), np.uint8)
    for tier in tiers:
        loose = np.flatnonzero(position < 0)
        if tier.within is not None:
            loose = loose[_inside(wanted[loose], tier.within)]
        if not len(loose):
            continue
        found = _nearest(wanted[loose], reach[loose], tier.near(wanted[loose], reach[loose]))
        position[loose] = found
        kind[loose[found >= 0]] = CUT_KINDS.index(tier.kind)
    left = position < 0
    position[left] = wanted[left]
    kind[left] = CUT_KINDS.index("character")
    return Cuts(np.maximum.accumulate(position), wanted, kind)


def _inside(positions: IntArray, ranges: IntArray) -> NDArray[np.bool_]:
    """Which positions are inside one of the ascending ranges, their edges excluded."""
    if not len(ranges):
        return np.zeros(len(positions), bool)
    before = np.searchsorted(ranges[:, 0], positions, "left") - 1
    inside: NDArray[np.bool_] = (before >= 0) & (positions < ranges[np.maximum(before, 0), 1])
    return inside


def _nearest(wanted: IntArray, reach: FloatArray, boundaries: IntArray) -> IntArray:
    """The nearest boundary to each wanted cut, -1 where none is within reach."""
    if not len(boundaries):
        return np.full(len(wanted), -1, np.int64)
    following = np.searchsorted(boundaries, wanted, "left")
    before = boundaries[np.maximum(following - 1, 0)]
    after = boundaries[np.minimum(following, len(boundaries) - 1)]
    nearest = np.where(np.abs(wanted - before) < np.abs(after - wanted), before, after)
    return np.where(np.abs(nearest - wanted) <= reach, nearest, -1)


def pair(starts: IntArray, ends: IntArray, cuts: Cuts) -> tuple[IntArray, IntArray]:
    """The chunks between the cuts that wanted starts and ends moved to.

    A chunk whose two cuts met is stretched to the next cut; of chunks with a common start or end the longest
    stays, so that both strictly increase.
    """
    start = cuts.position[np.searchsorted(cuts.wanted, starts)]
    end = cuts.position[np.searchsorted(cuts.wanted, ends)]
    met = start >= end
    if met.any():
        following = np.searchsorted(cuts.position, start[met], "right")
        end[met] = cuts.position[np.minimum(following, len(cuts.position) - 1)]
        start, end = start[start < end], end[start < end]
    longest = np.ones(len(start), bool)
    longest[:-1] = start[1:] != start[:-1]
    start, end = start[longest], end[longest]
    longest = np.ones(len(end), bool)
    longest[1:] = end[1:] != end[:-1]
    return start[longest], end[longest]
