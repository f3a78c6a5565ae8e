"""The headings of a document, and which of them are in force at a position."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ragnar_core.chunking.breaks import IntArray, is_among

ATX_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
ONLY_HASHES = re.compile(r"#*\Z")
QUOTE_MARKS = re.compile(r"^[ \t>]+")
FRONT_MATTER = re.compile(r"---\n(?:[ \t]*#.*\n)*['\"]?\w[^\n:]*:(?:[ \t].*)?\n")
FRONT_MATTER_END = re.compile(r"^(?:---|\.\.\.)$", re.MULTILINE)
LONGEST_IN_CONTEXT = 20_000
TABLE_RULE = re.compile(r"[\s|:-]*")
CELL_END = re.compile(r"(?<!\\)\|")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def context_line(context: str | None) -> str:
    """A chunk's context on one line, for people: "Guide › Prices › table of Name, Price"; "" for none.

    Hashes and backslashes before marks go; a table's header stands as its cells.
    """
    parts = []
    for line in (context or "").split("\n"):
        if TABLE_RULE.fullmatch(line):
            continue
        if line.startswith("|"):
            cells = [cell.strip() for cell in CELL_END.split(line) if cell.strip()]
            line = f"table of {', '.join(cells)}"
        parts.append(ESCAPE.sub(r"\1", line.lstrip("# ").strip()))
    return " › ".join(part for part in parts if part)


class Headings(NamedTuple):
    """The headings of a document, in the order they stand in it.

    `level` is 1 to 6, and 0 for a heading without text, which opens no section. `text` is one line in ATX
    form, as written where it was written so: an underlined heading becomes "# Its text".
    """

    start: IntArray
    end: IntArray
    level: IntArray
    text: list[str]


def read_headings(text: str, start: IntArray, end: IntArray, level: IntArray) -> Headings:
    """The headings at the given places, whose order does not matter."""
    order = np.lexsort((end, start))
    start, end, level = start[order], end[order], level[order]
    lines = []
    for i, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        line = text[first:last]
        if not ATX_HEADING.match(line):
            line = _on_one_line(line, int(level[i]))
        elif ONLY_HASHES.match(line):
            level[i] = 0
        lines.append(line)
    return Headings(start, end, level, lines)


def _on_one_line(underlined: str, level: int) -> str:
    lines = underlined.rstrip("\n").split("\n")[:-1]
    return f"{'#' * level} " + " ".join(QUOTE_MARKS.sub("", line).strip() for line in lines)


def front_matter_end(text: str) -> int:
    """Where the text after YAML front matter starts; 0 when there is none."""
    opening = FRONT_MATTER.match(text)
    closing = FRONT_MATTER_END.search(text, opening.end()) if opening else None
    return closing.end() if closing else 0


class Sections:
    """The tree that heading levels span: a heading is in force until one of its level or above follows."""

    def __init__(self, headings: Headings) -> None:
        self._headings = headings
        outer = []  # the heading in force where heading i starts, -1 for none
        inner = []  # the heading in force after heading i
        open_at = [-1] * 7
        current = -1
        for i, level in enumerate(headings.level.tolist()):
            outer.append(max(open_at[:level]) if level else current)
            if level:
                open_at[level:] = [-1] * (7 - level)
                open_at[level] = current = i
            inner.append(current)
        self._outer = np.array(outer, np.int64)
        self._before = np.array([-1, *inner], np.int64)  # the heading in force between headings i - 1 and i
        self._contexts: dict[int, str] = {-1: ""}

    def contexts(self, positions: IntArray) -> list[str]:
        """The headings above each position, one a line, outermost first.

        A heading that starts exactly there is part of the text that follows, so it is not among them.
        """
        starts = self._headings.start
        following = np.searchsorted(starts, positions, "left")
        heading = self._before[following]
        at_heading = is_among(positions, starts)
        heading[at_heading] = self._outer[following[at_heading]]
        for one in np.unique(heading).tolist():
            self._context(one)
        return list(map(self._contexts.__getitem__, heading.tolist()))

    def _context(self, heading: int) -> str:
        known = self._contexts.get(heading)
        if known is None:
            outer = self._context(int(self._outer[heading]))
            line = self._headings.text[heading][:LONGEST_IN_CONTEXT]
            known = self._contexts[heading] = f"{outer}\n{line}" if outer else line
        return known
