"""Everything about a text that chunking needs and that no setting changes.

`Boundaries.of(document)` reads the text once. Each `chunk(settings)` afterwards only snaps, so a moved
slider costs milliseconds.
"""

from __future__ import annotations

import re
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
from ragnar_core.chunking.places import Places
from ragnar_core.chunking.plan import plan_cuts
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.snap import Cuts, pair
from ragnar_core.chunking.units import Characters, CountTokens, Tokens
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import ChunkError

QUOTE_MARKS = re.compile(r"^[ \t>]+", re.MULTILINE)
LONGEST_TABLE_HEADER = 2_000


@dataclass(frozen=True, eq=False)
class Boundaries:
    """The boundaries of a document, strongest first: headings, paragraphs, sentences, wrapped lines.

    All positions are 0-based code points, ascending. Sentences and line breaks are found when a cut comes
    near them, and kept. Threads may share an object.
    """

    document: MarkdownDocument
    headings: Headings
    paragraphs: IntArray  # starts of paragraphs and code blocks
    tables: IntArray  # (n, 2): start of the line with the column names, end of the last row
    code: IntArray  # (n, 2): start and end of each code block
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
        places = Places(data, ascii_only=text.isascii())
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

    def chunk(self, settings: ChunkSettings, *, count_tokens: CountTokens | None = None) -> Chunks:
        """The chunks these settings give; an empty document has none.

        Args:
            settings: sizes, overlap and the rest.
            count_tokens: with `unit="tokens"`, a function from texts to their numbers of tokens, such as
                `Embedder.count_tokens`. It is called once for a document.

        Raises:
            ChunkError: the unit is tokens and nothing was given that counts them.
        """
        starts, ends, cuts = plan_cuts(self, settings, self._units(settings, count_tokens))
        starts, ends = pair(starts, ends, cuts)
        contexts = self.sections.contexts(starts) if settings.context else [""] * len(starts)
        if settings.table_context:
            contexts = self._with_table_headers(contexts, starts)
        return Chunks(self.document, settings, starts, ends, contexts)

    def cuts(self, settings: ChunkSettings, *, count_tokens: CountTokens | None = None) -> Cuts:
        """Where these settings cut, and what each cut was moved to; arguments as in `chunk`."""
        return plan_cuts(self, settings, self._units(settings, count_tokens))[2]

    @cached_property
    def sections(self) -> Sections:
        """Which headings are in force where."""
        return Sections(self.headings)

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
    def line_ends(self) -> IntArray:
        """The positions of the line feeds."""
        return self.line_starts[1:] - 1

    @cached_property
    def rows(self) -> IntArray:
        """Starts of the rows of tables, and the ends of the tables."""
        return self._lines_of(self.tables)

    @cached_property
    def code_lines(self) -> IntArray:
        """Starts of the lines of code blocks, and the ends of the blocks."""
        return self._lines_of(self.code)

    @cached_property
    def cells(self) -> IntArray:
        """The pipes in tables, where a row that is too long may be cut."""
        text = self.document.text
        pipe = re.compile(r"(?<!\\)\|")
        found = [match.start() for a, b in self.tables.tolist() for match in pipe.finditer(text, a, b)]
        return np.array(found, np.int64)

    @cached_property
    def _tokens(self) -> dict[CountTokens, Tokens]:
        return {}

    def _units(self, settings: ChunkSettings, count: CountTokens | None) -> Characters:
        if settings.unit == "characters":
            return Characters()
        if count is None:
            raise ChunkError(
                'unit="tokens" needs count_tokens, a function from texts to their numbers of tokens, such as '
                "embedder.count_tokens."
            )
        if count not in self._tokens:
            borders = np.concatenate((self.line_starts, self.headings.start))
            self._tokens[count] = Tokens(self.document.text, borders, count)
        return self._tokens[count]

    def _lines_of(self, blocks: IntArray) -> IntArray:
        first, last = np.searchsorted(self.line_starts, blocks).T.tolist()
        lines = [self.line_starts[a:b] for a, b in zip(first, last, strict=True)]
        return np.unique(np.concatenate([*lines, blocks.ravel()]))

    def _with_table_headers(self, contexts: list[str], starts: IntArray) -> list[str]:
        """Add the column names and the delimiter row where a chunk starts inside a table."""
        contexts = list(contexts)
        table = np.searchsorted(self.tables[:, 0], starts, "left") - 1
        for chunk in np.flatnonzero(table >= 0).tolist():
            first, end = self.tables[table[chunk]].tolist()
            if starts[chunk] < end:
                header = self._table_header(first)
                contexts[chunk] = "\n".join(filter(None, (contexts[chunk], header)))
        return contexts

    def _table_header(self, first: int) -> str:
        text = self.document.text
        names_end = text.find("\n", first)
        end = text.find("\n", names_end + 1)
        header = text[first : end if end >= 0 else len(text)]
        return QUOTE_MARKS.sub("", header) if len(header) <= LONGEST_TABLE_HEADER else ""
