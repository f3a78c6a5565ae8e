"""From cmark's lines and byte columns to code points."""

from __future__ import annotations

import numpy as np

from ragnar_core.chunking.breaks import IntArray


class Places:
    """The positions of one text, whose UTF-8 bytes are `data`."""

    def __init__(self, data: bytes, *, ascii_only: bool) -> None:
        octets = np.frombuffer(data, np.uint8)
        self._lines = np.append(0, np.flatnonzero(octets == ord("\n")) + 1)
        self._size = len(data)
        self._continuation = None if ascii_only else np.flatnonzero((octets & 0xC0) == 0x80)
        self.line_starts = self._points(self._lines)

    def at(self, lines: IntArray, columns: IntArray) -> IntArray:
        """The points behind so many bytes of the lines; cmark may name a line or column after the last."""
        inside = np.minimum(lines, len(self._lines)) - 1
        offsets = np.where(lines > len(self._lines), self._size, self._lines[inside] + columns)
        return self._points(np.minimum(offsets, self._size))

    def lines(self, first: IntArray, last: IntArray) -> IntArray:
        """(n, 2): from the start of the first line to the end of the last, in document order."""
        ends = np.append(self._lines[1:], self._size)
        bounds = self._lines[first - 1], ends[np.minimum(last, len(ends)) - 1]
        ranges = np.stack([self._points(bound) for bound in bounds], axis=1)
        return ranges[np.argsort(ranges[:, 0], kind="stable")]

    def _points(self, offsets: IntArray) -> IntArray:
        if self._continuation is None:
            return offsets
        return offsets - np.searchsorted(self._continuation, offsets)
