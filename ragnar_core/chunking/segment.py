"""Split Markdown at its elements, and lay it out as a table under its headings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from ragnar_core.chunking.headings import front_matter_end
from ragnar_core.chunking.markdown import parse_elements
from ragnar_core.chunking.places import Places
from ragnar_core.documents.document import BLANKS, OTHER_LINE_ENDS, MarkdownDocument, unify_lines

WHITE_SPACE = BLANKS + OTHER_LINE_ENDS + "\n"


class Segment(NamedTuple):
    """A piece of a document: the tag of the element that starts it ("" for none), its range and text."""

    tag: str
    start: int
    end: int
    text: str


def markdown_segment(
    text: MarkdownDocument | str,
    tags: Sequence[str] | None = ("h1", "h2", "h3", "h4"),
    *,
    trim: bool = False,
    omit_empty: bool = False,
) -> list[Segment]:
    r"""Split Markdown before and after each element with one of the tags.

    Args:
        text: a document, or a string; in a string only line ends and byte order marks are changed, so
            that blanks at line ends stay.
        tags: HTML names of block elements ("h1" to "h6", "p", "pre", "ul", "ol", "li", "blockquote", "table",
            "tr", "th", "td", "hr"); None for all of them. Paragraphs of tight lists are no "p".
        trim: whether white space around each segment goes.
        omit_empty: whether segments without a tag and without any character go.

    Returns:
        The segments in order. Untrimmed they are the whole text; `start` and `end` are 0-based code points.

    Raises:
        DocumentError: the text is not valid Unicode.

    >>> for segment in markdown_segment("# A\n\nText.\n"):
    ...     print(segment.tag, repr(segment.text))
    h1 '# A'
     '\n\nText.\n'
    """
    source = text.text if isinstance(text, MarkdownDocument) else unify_lines(text)
    starts, cuts = _elements(source, None if tags is None else set(tags))
    segments = []
    for start, end in pairwise(cuts):
        segment = Segment(starts.get(start, ""), start, end, source[start:end])
        if trim:
            segment = _trimmed(segment)
        if segment.text or segment.tag or not omit_empty:
            segments.append(segment)
    return segments


def markdown_frame(
    text: MarkdownDocument | str,
    frame_by: Sequence[str] = ("h1", "h2", "h3"),
    segment_by: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""Markdown as a table: one row a segment, with the headings it stands under.

    Args:
        text: a document or a string, as for `markdown_segment`.
        frame_by: tags that become columns, outermost first. A new one empties the columns after its own.
        segment_by: further tags to split at; the column `tag` then says which a row is.

    Returns:
        A DataFrame with a column for each tag in `frame_by` (None above the first), `tag` if there is
        anything to say, and `text` (None under a heading that ends the text).

    >>> markdown_frame("# A\n\nOne.\n\n## B\n\nTwo.\n", frame_by=("h1", "h2")).values.tolist()
    [['# A', None, '\n\nOne.\n\n'], ['# A', '## B', '\n\nTwo.\n']]
    """
    further = [tag for tag in segment_by or () if tag not in frame_by]
    in_force: dict[str, str | None] = dict.fromkeys(frame_by)
    names = list(in_force)
    rows: list[tuple[str | None, ...]] = []
    segments = markdown_segment(text, [*names, *further])
    for segment in segments:
        if segment.tag in in_force:
            for inner in names[names.index(segment.tag) :]:
                in_force[inner] = None
            in_force[segment.tag] = segment.text
        else:
            rows.append((*in_force.values(), segment.tag, segment.text))
    if segments and segments[-1].tag in in_force:
        rows.append((*in_force.values(), None, None))
    frame = pd.DataFrame(rows, columns=[*names, "tag", "text"], dtype=object)
    return frame if further else frame.drop(columns="tag")


def _elements(source: str, tags: set[str] | None) -> tuple[dict[int, str], list[int]]:
    """The tag that starts at each position, and all cuts, ascending, the ends of the text among them."""
    data = source.encode("utf-8")
    elements = [element for element in parse_elements(data) if tags is None or element.tag in tags]
    rows = np.array([element[1:] for element in elements], np.int64).reshape(-1, 4)
    places = Places(data, ascii_only=source.isascii())
    first, last = places.at(rows[:, 0], rows[:, 1] - 1), places.at(rows[:, 2], rows[:, 3])
    starts: dict[int, str] = {}
    cuts = {0, len(source)}
    front_matter = front_matter_end(source)
    for element, start, end in zip(elements, first.tolist(), last.tolist(), strict=True):
        if start < front_matter and element.tag in ("h1", "h2"):
            continue
        starts.setdefault(start, element.tag)
        cuts |= {start, end}
    return starts, sorted(cuts)


def _trimmed(segment: Segment) -> Segment:
    text = segment.text.lstrip(WHITE_SPACE)
    start = segment.end - len(text)
    text = text.rstrip(WHITE_SPACE)
    return Segment(segment.tag, start, start + len(text), text)
