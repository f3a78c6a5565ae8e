"""What sizes are counted in: characters, or tokens of an embedding model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragnar_core.chunking.breaks import FloatArray, IntArray

CountTokens = Callable[[Sequence[str]], ArrayLike]

# Tokens are counted line by line, and long lines in pieces of this many characters.
LONGEST_PIECE = 200


class Characters:
    """Sizes are code points."""

    def units(self, positions: IntArray) -> FloatArray:
        """How many units stand before each position."""
        return positions.astype(np.float64)

    def positions(self, units: FloatArray | IntArray) -> IntArray:
        """The position that so many units stand before."""
        return np.rint(units).astype(np.int64)

    def reach(self, positions: IntArray, distance: float) -> FloatArray:
        """How many characters the distance is at each position."""
        return np.full(len(positions), distance, np.float64)


class Tokens(Characters):
    """Sizes are tokens, counted once in short pieces of the text and spread evenly within each.

    Counting in pieces finds a few tokens more than the model will, so that chunks come out a little shorter
    than asked rather than longer.
    """

    def __init__(self, text: str, borders: IntArray, count: CountTokens) -> None:
        edges = _pieces(borders, len(text))
        pieces = [text[a:b] for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
        counts = np.asarray(count([*pieces, ""]), np.float64)
        # The empty text counts what a model adds to every text. At least 1, so that no two positions
        # have the same number of tokens before them; whole, so that segments start where they should.
        counts = np.maximum(np.rint(counts[:-1] - counts[-1]), 1)
        self._edges = edges.astype(np.float64)
        self._tokens: NDArray[np.float64] = np.append(0, np.cumsum(counts))

    def units(self, positions: IntArray) -> FloatArray:
        return np.interp(positions, self._edges, self._tokens)

    def positions(self, units: FloatArray | IntArray) -> IntArray:
        positions: IntArray = np.rint(np.interp(units, self._tokens, self._edges)).astype(np.int64)
        return positions

    def reach(self, positions: IntArray, distance: float) -> FloatArray:
        if not np.isfinite(distance):
            return super().reach(positions, distance)
        here = self.units(positions)
        around = self.positions(here + distance) - self.positions(here - distance)
        return around / 2


def _pieces(borders: IntArray, length: int) -> IntArray:
    """Edges of pieces no longer than LONGEST_PIECE, among them every border."""
    edges = np.unique(np.concatenate((borders, [0, length])))
    counts = -(-np.diff(edges) // LONGEST_PIECE)
    piece = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(np.repeat(edges[:-1], counts) + piece * LONGEST_PIECE, length)
