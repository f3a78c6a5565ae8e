"""Chunks overlap: the words that several of them share are looked at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_SPACES = " \n\t"
_REACH = 200


class SharedCodes:
    """Codes of the words of ranges of a text, for an analyzer whose words hold no spaces.

    The text is cut at spaces at or near the ranges' ends, and each piece is coded once. `codes_of` gives the codes of
    a text's words.
    """

    def __init__(
        self,
        codes_of: Callable[[str], list[int]],
        text: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> None:
        self._codes_of = codes_of
        self._text = text
        self._near = {place: self._cuts_near(place) for place in {*starts.tolist(), *ends.tolist()}}
        self._cuts = sorted({cut for cuts in self._near.values() if cuts for cut in cuts})
        self._number = {cut: number for number, cut in enumerate(self._cuts)}
        self._pieces: dict[int, list[int]] = {}

    def between(self, start: int, end: int) -> list[int]:
        """The codes of `text[start:end]`, in order; both are ends of ranges."""
        after, before = self._near[start], self._near[end]
        if after is None or before is None or after[1] > before[0]:
            return self._codes_of(self._text[start:end])
        first, last = after[1], before[0]
        codes = self._codes_of(self._text[start:first]) if start < first else []
        for number in range(self._number[first], self._number[last]):
            codes += self._piece(number)
        return codes + self._codes_of(self._text[last:end]) if last < end else codes

    def _piece(self, number: int) -> list[int]:
        found = self._pieces.get(number)
        if found is None:
            piece = self._text[self._cuts[number] : self._cuts[number + 1]]
            found = self._pieces[number] = self._codes_of(piece)
        return found

    def _cuts_near(self, place: int) -> tuple[int, int] | None:
        """The nearest places at or before and at or after, where no word is cut; None when they are far away, as in
        scripts without spaces."""
        text = self._text
        if place in (0, len(text)) or text[place - 1] in _SPACES or text[place] in _SPACES:
            return place, place
        before = max(text.rfind(space, max(place - _REACH, 0), place) for space in _SPACES) + 1
        after = [text.find(space, place, place + _REACH) for space in _SPACES]
        following = min((at for at in after if at >= 0), default=len(text))
        if (not before and place > _REACH) or following - place > _REACH:
            return None
        return before, following
