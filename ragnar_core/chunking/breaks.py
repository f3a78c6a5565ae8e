"""Sentence, line-break, word and grapheme boundaries of a text, from ICU.

ICU counts UTF-16 units; everything here returns code points, 0-based, as the starts of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

import numpy as np
from icu4py.breakers import BaseBreaker, CharacterBreaker, LineBreaker, SentenceBreaker, WordBreaker
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# stringi puts the session's language in front of "@ss=standard"; ragnar's reference output is English.
# The option keeps "Mr. Jones" in one sentence.
SENTENCE_LOCALE = "en@ss=standard"
LOCALE = "en"


def is_among(positions: IntArray, ascending: IntArray) -> NDArray[np.bool_]:
    """Which positions are among the ascending ones."""
    if not len(ascending):
        return np.zeros(len(positions), bool)
    nearest = np.minimum(np.searchsorted(ascending, positions), len(ascending) - 1)
    among: NDArray[np.bool_] = ascending[nearest] == positions
    return among


def sentence_starts(text: str) -> IntArray:
    """Where sentences start (UAX #29 with CLDR's English abbreviations)."""
    return _starts(SentenceBreaker, text, SENTENCE_LOCALE)


def line_break_starts(text: str) -> IntArray:
    """Where a line may be wrapped (UAX #14): mostly word starts, in any script."""
    return _starts(LineBreaker, text, LOCALE)


def word_starts(text: str) -> IntArray:
    """Where words, spaces and punctuation start (UAX #29)."""
    return _starts(WordBreaker, text, LOCALE)


def grapheme_starts(text: str) -> IntArray:
    """Where user-perceived characters start (UAX #29)."""
    return _starts(CharacterBreaker, text, LOCALE)


def _starts(breaker: type[BaseBreaker], text: str, locale: str) -> IntArray:
    if not text:
        return np.zeros(0, np.int64)
    starts = np.fromiter(map(itemgetter(0), breaker(text, locale).segments()), np.int64)
    if text.isascii():
        return starts
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    astral = np.flatnonzero(points > 0xFFFF)
    if not len(astral):
        return starts
    return starts - np.searchsorted(astral + np.arange(len(astral)), starts)


class BreaksByLine:
    """Boundaries of one kind, found only on the lines that somebody asks about, and kept.

    A line end always ends a sentence and a wrapped line (rules SB4 and LB4), so a line's boundaries depend
    on that line alone. Threads may share an object: each works on the state it saw and at worst
    finds a line twice.
    """

    def __init__(self, text: str, line_starts: IntArray, find: Callable[[str], IntArray]) -> None:
        self._text = text
        self._line_starts = line_starts
        self._find = find
        self._state = (np.zeros(len(line_starts), bool), np.zeros(0, np.int64))

    def near(self, positions: IntArray, distance: FloatArray) -> IntArray:
        """Ascending boundaries, complete within the distance (in characters, one each) of the positions."""
        lines = self._line_starts
        first = np.searchsorted(lines, np.maximum(positions - distance, 0), "right") - 1
        last = np.searchsorted(lines, positions + distance, "right")
        touched = np.zeros(len(lines) + 1, np.int64)
        np.add.at(touched, first, 1)
        np.add.at(touched, last, -1)
        known, starts = self._state
        missing = (np.cumsum(touched[:-1]) > 0) & ~known
        if missing.any():
            starts = np.sort(np.concatenate((starts, self._on(missing))))
            self._state = (known | missing, starts)
        return starts

    def all(self) -> IntArray:
        """Every boundary of the text."""
        return self.near(np.zeros(1, np.int64), np.full(1, np.inf))

    def _on(self, lines: NDArray[np.bool_]) -> IntArray:
        """Boundaries on the chosen lines, in one call: building a breaker costs as much as 20 KB of text."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], lines, [False])).astype(np.int8)))
        bounds = np.append(self._line_starts, len(self._text))[edges].reshape(-1, 2)
        if len(bounds) == 1 and bounds[0, 0] == 0 and bounds[0, 1] == len(self._text):
            return self._find(self._text)
        starts = self._find("".join([self._text[a:b] for a, b in bounds.tolist()]))
        lengths = bounds[:, 1] - bounds[:, 0]
        joined = np.cumsum(lengths) - lengths
        part = np.searchsorted(joined, starts, "right") - 1
        moved: IntArray = starts - joined[part] + bounds[part, 0]
        return moved
