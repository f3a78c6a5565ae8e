"""The chunkers for plain text, which know nothing of Markdown and give texts instead of ranges.

They return what ragnar's `ragnar_segment()`, `ragnar_chunk()` and `ragnar_chunk_segments()` return. That
includes a peculiarity: a piece starts with the last character of the one before. It is nearly always a blank or a
line end, and trimmed away. New code is better served by `markdown_chunk`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ragnar_core.chunking.breaks import IntArray, grapheme_starts, sentence_starts, word_starts
from ragnar_core.chunking.segment import WHITE_SPACE
from ragnar_core.errors import ChunkError

Boundary = str | re.Pattern[str]

PATTERNS = {"paragraph": re.compile("\n\n"), "line_break": re.compile("\n")}
BREAKS = {"sentence": sentence_starts, "word": word_starts, "character": grapheme_starts}
STRONGEST_FIRST = ("paragraph", "sentence", "line_break", "word", "character")


def segment_text(
    x: str | Sequence[str] | pd.DataFrame,
    boundaries: Boundary | Sequence[Boundary] = "sentence",
    *,
    trim: bool = False,
    simplify: bool = True,
) -> Any:
    r"""Split texts at every boundary (`ragnar_segment()` in the manual).

    Args:
        x: a text, a list of texts, or a DataFrame with a column `text`.
        boundaries: one or more of "paragraph", "sentence", "line_break", "word", "character", or compiled
            regular expressions, after whose matches the text is split.
        trim: whether white space around each piece goes, and pieces of nothing else with it.
        simplify: one flat list (or one row a piece); otherwise a list for each text.

    Returns:
        A list of texts, a list of such lists, or a DataFrame, depending on `x` and `simplify`.

    Raises:
        ChunkError: a boundary is unknown, or the input is of another kind.

    >>> segment_text("One. Two.", trim=True)
    ['One.', 'Two.']
    """
    wanted = _checked(boundaries)

    def split(text: str) -> list[str]:
        _refuse_other(text)
        if not text:
            return [""]
        ends = np.concatenate([_ends(text, boundary) for boundary in wanted])
        return _pieces(text, np.unique(ends), trim)

    return _each(x, split, simplify)


def chunk_text(
    x: str | Sequence[str | None] | pd.DataFrame,
    max_size: int = 1600,
    boundaries: Boundary | Sequence[Boundary] = STRONGEST_FIRST,
    *,
    trim: bool = True,
    simplify: bool = True,
) -> Any:
    """Split texts into pieces as long as fit into a size (`ragnar_chunk()` in the manual).

    The first kind of boundary is tried on the whole text, the next on the pieces that are still too long.

    Args:
        x: a text, a list of texts, or a DataFrame with a column `text`. None stays None.
        max_size: the size, in code points. Pieces may have one more, and any length where the boundaries
            do not divide them.
        boundaries: as for `segment_text`, strongest first.
        trim: whether white space around the pieces of a text that was split goes.
        simplify: as for `segment_text`.

    Raises:
        ChunkError: `max_size` is not positive, a boundary is unknown, or the input is of another kind.

    >>> chunk_text("One two three. Four.", max_size=10)
    ['One two', 'three.', 'Four.']
    """
    wanted = _checked(boundaries)
    size = _positive(max_size)

    def split(text: str | None) -> list[Any]:
        if text is None:
            return [None]
        _refuse_other(text)
        if len(text) <= size:
            return [text]
        return _divide(text, size, wanted, trim)

    return _each(x, split, simplify)


def chunk_segments(
    x: Sequence[str | None] | Sequence[Sequence[str | None]] | pd.DataFrame,
    max_size: int = 1600,
    *,
    trim: bool = True,
    simplify: bool = True,
) -> Any:
    """Join neighbouring segments to pieces as long as fit into a size (`ragnar_chunk_segments()`).

    Args:
        x: a list of segments, a list of such lists, or a DataFrame whose column `text` holds such lists.
        max_size: the size, in code points. A single longer segment stays whole.
        trim: whether white space around the pieces goes, unless all fits into one.
        simplify: one flat list (or one row a piece); otherwise a list for each list of segments.

    Raises:
        ChunkError: `max_size` is not positive, or the input is of another kind.

    >>> chunk_segments(["First. ", "Second. ", "Third. "], max_size=16)
    ['First. Second.', 'Third.']
    """
    size = _positive(max_size)

    def join(segments: Sequence[str | None]) -> list[Any]:
        known = [segment for segment in segments if segment is not None]
        if len(known) < len(segments):
            return [None]
        text = "".join(known)
        if len(text) <= size:
            return [text]
        ends = np.cumsum([len(segment) for segment in known])
        return _pieces(text, _picked(ends, size), trim)

    if isinstance(x, str | bytes) or not isinstance(x, Sequence | pd.DataFrame):
        raise ChunkError(f"Give a list of segments, or a table with a column text, not {type(x).__name__}.")
    if isinstance(x, pd.DataFrame) or (len(x) and not isinstance(x[0], str | None)):
        return _each(x, join, simplify)
    return join([*x])


def _each(x: Any, function: Callable[[Any], list[Any]], simplify: bool) -> Any:
    """Apply a function to each text, and keep the shape of the input."""
    if isinstance(x, pd.DataFrame):
        if "text" not in x.columns:
            raise ChunkError(f"The table needs a column named text; it has {', '.join(map(str, x.columns))}.")
        texts = [None if value is None or value is pd.NA or value != value else value for value in x["text"]]
        table = x.assign(text=pd.Series([function(text) for text in texts], index=x.index, dtype=object))
        return table.explode("text", ignore_index=True) if simplify else table
    if not isinstance(x, str) and not isinstance(x, Sequence):
        raise ChunkError(
            f"Give a text, a list of texts or a table with a column text, not {type(x).__name__}."
        )
    results = [function(text) for text in ([x] if isinstance(x, str) else x)]
    return [piece for pieces in results for piece in pieces] if simplify else results


def _divide(text: str, size: int, boundaries: Sequence[Boundary], trim: bool) -> list[str]:
    pieces = _pieces(text, _picked(_ends(text, boundaries[0]), size), trim)
    if len(boundaries) == 1:
        return pieces
    return [
        part
        for piece in pieces
        for part in (_divide(piece, size, boundaries[1:], trim) if len(piece) > size else [piece])
    ]


def _ends(text: str, boundary: Boundary) -> IntArray:
    """How many characters stand before the end of each part, ascending, the text's own end included."""
    if isinstance(boundary, str) and boundary in BREAKS:
        return np.append(BREAKS[boundary](text)[1:], len(text))
    pattern = PATTERNS[boundary] if isinstance(boundary, str) else boundary
    ends = [match.end() for match in pattern.finditer(text)]
    return np.unique([*ends, len(text)]).astype(np.int64)


def _picked(ends: IntArray, size: int) -> IntArray:
    """Of the ends those that make the longest pieces of at most `size`, where there are such."""
    ends = np.unique(ends)
    picked, last, i = [], 1, 0
    while i < len(ends):
        i = max(int(np.searchsorted(ends, last + size, "right")) - 1, i)
        last = int(ends[i])
        picked.append(last)
        i += 1
    return np.array(picked, np.int64)


def _pieces(text: str, ends: IntArray, trim: bool) -> list[str]:
    cuts = np.unique(np.append(ends, 1)).tolist()
    pieces = [text[first - 1 : last] for first, last in pairwise(cuts)]
    return _trimmed(pieces) if trim else pieces


def _trimmed(pieces: list[str]) -> list[str]:
    return [trimmed for piece in pieces if (trimmed := piece.strip(WHITE_SPACE))]


def _refuse_other(text: Any) -> None:
    if not isinstance(text, str):
        raise ChunkError(f"Each text must be a string, not {type(text).__name__}: {text!r:.60}.")


def _positive(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ChunkError(f"max_size must be a whole number of at least 1, not {size!r}.")
    return int(size)


def _checked(boundaries: Boundary | Sequence[Boundary]) -> Sequence[Boundary]:
    listed = [boundaries] if isinstance(boundaries, str | re.Pattern) else list(boundaries)
    for boundary in listed:
        if not isinstance(boundary, re.Pattern) and boundary not in STRONGEST_FIRST:
            raise ChunkError(
                f"A boundary must be one of {', '.join(STRONGEST_FIRST)}, or a compiled regular expression, "
                f"not {boundary!r}."
            )
    if not listed:
        raise ChunkError("Give at least one boundary, such as 'sentence'.")
    return listed
