"""Cuts that an edit elsewhere in the text does not move.

ragnar's targets are multiples of a stride from the start of the text, so a sentence inserted at the top
moves every cut after it, and every chunk must be embedded again. Here a boundary becomes a cut because of the
words around it: it is the strongest, and among equals the one whose text has the lowest hash, within half a
stride on both sides (local-minimum chunking; Bjørner, Blass and Gurevich, "Content-dependent chunking for
differential compression, the local maximum approach", 2010). An edit can only move cuts within reach of it.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.breaks import FloatArray, IntArray

KEPT_APART = 0.65  # of a stride: the distance within which only one boundary becomes a cut
LONGEST_GAP = 1.5  # of a stride: longer gaps between cuts are divided evenly


def anchors(
    text: str, candidates: IntArray, strength: IntArray, units: FloatArray, apart: float
) -> NDArray[np.bool_]:
    """Which of the candidates are cuts.

    Args:
        text: the document.
        candidates: ascending positions of boundaries.
        strength: of each candidate, 0 for the strongest.
        units: each candidate's position, in the unit that `apart` is counted in.
        apart: no two cuts of equal strength are nearer to each other than this.
    """
    hashes = _hashes(text, candidates)
    keys = (strength.astype(np.uint64) << np.uint64(32)) | hashes
    first = np.searchsorted(units, units - apart, "right")
    last = np.searchsorted(units, units + apart, "left")
    index = np.arange(len(candidates))
    # Of equal texts the first counts, so that a repeated line does not cancel itself.
    lowest_before = _range_minimum(keys, first, index)
    lowest_after = _range_minimum(keys, index + 1, last)
    cut: NDArray[np.bool_] = (keys < lowest_before) & (keys <= lowest_after)
    return cut


def divide_gaps(cuts: FloatArray, stride: float) -> FloatArray:
    """Targets inside the gaps between ascending cuts that are much longer than the stride."""
    gaps = np.diff(cuts)
    pieces = np.where(gaps > LONGEST_GAP * stride, np.maximum(np.rint(gaps / stride), 2), 1).astype(np.int64)
    gap = np.repeat(np.arange(len(gaps)), pieces - 1)
    step = np.arange(len(gap)) - np.repeat(np.cumsum(pieces - 1) - (pieces - 1), pieces - 1) + 1
    targets: FloatArray = cuts[:-1][gap] + step * gaps[gap] / pieces[gap]
    return targets


def _hashes(text: str, candidates: IntArray) -> NDArray[np.uint64]:
    """A hash of the text from each candidate to the next."""
    edges = [*candidates.tolist(), len(text)]
    pieces = (text[start:end].encode() for start, end in pairwise(edges))
    return np.fromiter(map(zlib.crc32, pieces), np.uint64, len(candidates))


def _range_minimum(keys: NDArray[np.uint64], first: IntArray, last: IntArray) -> NDArray[np.uint64]:
    """The minimum of keys[first:last] for each pair; the largest number where the range is empty.

    A sparse table of which only one level is in memory at a time.
    """
    lowest = np.full(len(keys), np.iinfo(np.uint64).max)
    length = last - first
    level = np.where(length > 0, np.frexp(length)[1] - 1, -1)
    table = keys
    for power in range(int(level.max(initial=-1)) + 1):
        here = np.flatnonzero(level == power)
        lowest[here] = np.minimum(table[first[here]], table[last[here] - (1 << power)])
        table = np.minimum(table[: -(1 << power)], table[1 << power :])
    return lowest
