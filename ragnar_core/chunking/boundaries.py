"""Everything about a text that chunking needs and that no setting changes.

`Boundaries.of(document)` reads the text once. Each `chunk(settings)` afterwards only snaps, so a moved
slider costs milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ragnar_core.chunking.breaks import (
    BreaksByLine,
    IntArray,
    grapheme_starts,
    line_break_starts,
    sentence_starts,
)
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.headings import Headings, Sections, front_matter_end, read_headings
from ragnar_core.chunking.markdown import parse_blocks
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.snap import Cuts, Tier, even_targets, pair, snap
from ragnar_core.documents.document import MarkdownDocument


@dataclass(frozen=True, eq=False)
class Boundaries:
    """The boundaries of a document, strongest first: headings, paragraphs, sentences, wrapped lines.

    All positions are 0-based code points, ascending. Sentences and line breaks are found when a cut comes
    near them, and kept.
    """

    document: MarkdownDocument
    headings: Headings
    paragraphs: IntArray  # starts of paragraphs and code blocks
    tables: IntArray  # (n, 2) start of the line with the column names, end of the last row
    code: IntArray  # (n, 2) start and end
    line_starts: IntArray

    @classmethod
    def of(cls, document: MarkdownDocument | str) -> Boundaries:
        """Read a document (a string is normalised first).

        Raises:
            DocumentError: the text is not valid Unicode.
        """
        if not isinstance(document, MarkdownDocument):
            document = MarkdownDocument(document)
        text = document.text
        data = text.encode("utf-8")
        blocks = parse_blocks(data)
        places = _Places(data, ascii_only=text.isascii())
        first_line, first_column, last_line, last_column, level = blocks.headings.T
        start, end = places.at(first_line, first_column - 1), places.at(last_line, last_column)
        # What cmark takes for headings in YAML front matter stays a boundary, but is no heading.
        inside = start >= front_matter_end(text)
        paragraphs = (
            places.at(blocks.paragraphs[:, 0], blocks.paragraphs[:, 1] - 1),
            places.at(blocks.code[:, 0], blocks.code[:, 1] - 1),
            start[~inside],
        )
        return cls(
            document=document,
            headings=read_headings(text, start[inside], end[inside], level[inside]),
            paragraphs=np.unique(np.concatenate(paragraphs)),
            tables=places.lines(blocks.tables[:, 0], blocks.tables[:, 1]),
            code=places.lines(blocks.code[:, 0], blocks.code[:, 2]),
            line_starts=places.line_starts,
        )

    @cached_property
    def sentences(self) -> BreaksByLine:
        """Sentence starts; every line start is one."""
        return BreaksByLine(self.document.text, self.line_starts, sentence_starts)

    @cached_property
    def line_breaks(self) -> BreaksByLine:
        """Places where a line may be wrapped; every line start is one."""
        return BreaksByLine(self.document.text, self.line_starts, line_break_starts)

    @cached_property
    def graphemes(self) -> BreaksByLine:
        """Starts of user-perceived characters."""
        return BreaksByLine(self.document.text, self.line_starts, grapheme_starts)

    @cached_property
    def sections(self) -> Sections:
        """Which headings are in force where."""
        return Sections(self.headings)

    def cuts(self, settings: ChunkSettings) -> Cuts:
        """Where these settings cut, and what each cut was moved to."""
        return self._cut(settings)[2]

    def chunk(self, settings: ChunkSettings) -> Chunks:
        """The chunks these settings give; an empty document has none."""
        starts, ends, cuts = self._cut(settings)
        starts, ends = pair(starts, ends, cuts)
        contexts = self.sections.contexts(starts) if settings.context else [""] * len(starts)
        return Chunks(self.document, settings, starts, ends, contexts)

    def _cut(self, settings: ChunkSettings) -> tuple[IntArray, IntArray, Cuts]:
        length = len(self.document)
        none = np.zeros(0, np.int64)
        if not length:
            return none, none, Cuts(none, none, none.astype(np.uint8))
        first, last = self._segments(settings.segment_by_heading_levels)
        size = np.inf if settings.target_size is None else settings.target_size
        starts, ends = even_targets(first, last, size, settings.target_overlap)
        wanted = np.unique(np.concatenate((starts, ends)))
        reach = np.full(len(wanted), max(settings.snap_distance, 0))
        return starts, ends, snap(wanted, reach, self._tiers(), length)

    def _segments(self, levels: tuple[int, ...]) -> tuple[IntArray, IntArray]:
        borders = self.headings.start[np.isin(self.headings.level, [level for level in levels if level > 0])]
        first = np.unique(np.append(borders, 0))
        return first, np.append(first[1:], len(self.document))

    def _tiers(self) -> list[Tier]:
        return [
            Tier("heading", lambda positions, reach: self.headings.start),
            Tier("paragraph", lambda positions, reach: self.paragraphs),
            Tier("sentence", self.sentences.near),
            Tier("line", lambda positions, reach: self.line_starts[1:] - 1),
            Tier("word", self.line_breaks.near),
        ]


class _Places:
    """Turns cmark's lines and byte columns into code points."""

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
