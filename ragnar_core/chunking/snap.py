"""From wanted cuts to real ones: even targets, each moved to the strongest boundary within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.breaks import IntArray

# What a cut was moved to. "line" is the start of a line inside a paragraph, "word" a place where a line may be
# wrapped, "character" a cut that no boundary was near enough for, "edge" the first and the last one.
CUT_KINDS = ("edge", "heading", "paragraph", "row", "cell", "sentence", "line", "word", "character")

Reach = NDArray[np.float64]


class Tier(NamedTuple):
    """Boundaries of one strength: `near(positions, reach)` gives those around the positions, ascending."""

    kind: str
    near: Callable[[IntArray, Reach], IntArray]


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

    def count(self) -> dict[str, int]:
        """How many cuts there are of each kind that occurs, strongest kind first."""
        counts = np.bincount(self.kind, minlength=len(CUT_KINDS)).tolist()
        return {kind: count for kind, count in zip(CUT_KINDS, counts, strict=True) if count}


def even_targets(first: IntArray, last: IntArray, size: float, overlap: float) -> tuple[IntArray, IntArray]:
    """Wanted starts and ends of the chunks of each segment [first, last).

    Chunks start every `size * (1 - overlap)` characters; the last one of a segment ends where the segment
    does and so overlaps more. A segment no longer than `size` is one chunk.
    """
    first = first.astype(np.float64)
    last_start = last - size
    short = last_start < first
    starts = [first[short]]
    ends = [last[short].astype(np.float64)]
    first, last_start = first[~short], last_start[~short]
    stride = size * (1 - overlap)
    if len(first) and stride < 1:
        stride = 1.0  # smaller strides round to every character, each many times
    if len(first):
        strides = np.floor((last_start - first) / stride + 1e-10).astype(np.int64) + 1
        segment = np.repeat(np.arange(len(first)), strides)
        step = np.arange(len(segment)) - np.repeat(np.cumsum(strides) - strides, strides)
        # R rounds 1-based positions, half to even: round them here as well.
        inner = np.rint(np.minimum(first[segment] + 1 + step * stride, last_start[segment] + 1)) - 1
        starts += [inner, last_start]
        ends += [inner + size, last_start + size]
    start, end = np.concatenate(starts).astype(np.int64), np.concatenate(ends).astype(np.int64)
    order = np.lexsort((end, start))
    return start[order], end[order]


def snap(wanted: IntArray, reach: Reach, tiers: Iterable[Tier], length: int) -> Cuts:
    """Move each wanted cut to the nearest boundary of the first tier that has one within its reach.

    Of two boundaries equally far the later wins. The first and the last cut are the edges of the text.
    """
    position = np.where(wanted == wanted[-1], length, -1)
    position[0] = 0
    kind = np.zeros(len(wanted), np.uint8)
    for tier in tiers:
        open_ = np.flatnonzero(position < 0)
        if not len(open_):
            break
        found = _nearest(wanted[open_], reach[open_], tier.near(wanted[open_], reach[open_]))
        position[open_] = found
        kind[open_[found >= 0]] = CUT_KINDS.index(tier.kind)
    left = position < 0
    position[left] = wanted[left]
    kind[left] = CUT_KINDS.index("character")
    return Cuts(position, wanted, kind)


def _nearest(wanted: IntArray, reach: Reach, boundaries: IntArray) -> IntArray:
    """The nearest boundary to each wanted cut, -1 where none is within reach."""
    if not len(boundaries):
        return np.full(len(wanted), -1, np.int64)
    after = np.searchsorted(boundaries, wanted, "left")
    before = boundaries[np.maximum(after - 1, 0)]
    after = boundaries[np.minimum(after, len(boundaries) - 1)]
    nearest = np.where(np.abs(wanted - before) < np.abs(after - wanted), before, after)
    return np.where(np.abs(nearest - wanted) <= reach, nearest, -1)


def pair(starts: IntArray, ends: IntArray, cuts: Cuts) -> tuple[IntArray, IntArray]:
    """The chunks between the cuts that wanted starts and ends moved to.

    A chunk whose two cuts met is stretched to the next cut; of chunks with a common start or end
    the longest stays.
    """
    start = cuts.position[np.searchsorted(cuts.wanted, starts)]
    end = cuts.position[np.searchsorted(cuts.wanted, ends)]
    empty = start >= end
    if empty.any():
        following = np.searchsorted(cuts.position, start[empty], "right")
        end[empty] = cuts.position[np.minimum(following, len(cuts.position) - 1)]
        start, end = start[start < end], end[start < end]
    longest = np.ones(len(start), bool)
    longest[:-1] = start[1:] != start[:-1]
    start, end = start[longest], end[longest]
    longest = np.ones(len(end), bool)
    longest[1:] = end[1:] != end[:-1]
    return start[longest], end[longest]
