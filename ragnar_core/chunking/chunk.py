"""Cut a Markdown document into overlapping chunks at its natural boundaries."""

from __future__ import annotations

from collections.abc import Sequence

from ragnar_core.chunking.boundaries import Boundaries
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.units import CountTokens
from ragnar_core.documents.document import MarkdownDocument


def markdown_chunk(
    document: MarkdownDocument | str,
    *,
    target_size: int | float | None = 1600,
    target_overlap: float = 0.5,
    max_snap_dist: float | None = None,
    segment_by_heading_levels: Sequence[int] = (),
    context: bool = True,
    table_context: bool = False,
    keep_whole: bool = False,
    strategy: str = "ragnar",
    unit: str = "characters",
    count_tokens: CountTokens | None = None,
) -> Chunks:
    r"""Cut a Markdown document into overlapping chunks at its natural boundaries.

    1. Headings of the levels in `segment_by_heading_levels` divide the document into segments.
    2. In each segment a chunk of `target_size` is wanted every `target_size * (1 - target_overlap)`
       characters; the last one ends with the segment.
    3. Each wanted cut moves to the nearest heading within `max_snap_dist`; where there is none, to the
       nearest paragraph, else sentence, else line end, else place where a line may be wrapped; else it stays.
    4. Each chunk gets the headings in force where it starts as its context.

    Args:
        document: a document, or Markdown text, which is normalised first.
        target_size: wanted length of a chunk; None for one chunk a segment.
        target_overlap: part of it that neighbours share, at least 0 and less than 1.
        max_snap_dist: how far a cut may move; None for a third of the stride, `float("inf")` for any distance.
        segment_by_heading_levels: levels from 1 to 6 whose headings no chunk crosses.
        context: whether chunks get the headings above them.
        table_context: whether chunks that start inside a table get its header as well.
        keep_whole: whether cuts in tables and code prefer the block's edges, rows, cells and lines to sentences.
        strategy: "ragnar", or "anchored" for cuts that an edit elsewhere in the text does not move.
        unit: what sizes are counted in, "characters" (code points) or "tokens".
        count_tokens: with `unit="tokens"`, a function from texts to their numbers of tokens.

    Returns:
        `Chunks`, whose `table` has the columns `start`, `end` (0-based code points, end exclusive), `context`
        and `text`, with `document.text[start:end] == text`. Together they cover the document; starts and
        ends strictly increase. An empty document has none.

    Raises:
        ChunkError: a setting is out of range; the message says which and what is allowed.
        DocumentError: the text is not valid Unicode.

    The method is that of `markdown_chunk()` in the R package ragnar; `docs/differences.md` says where the
    results differ.

    >>> text = "# Tea\n\nBoil water. Wait.\n\n## Green\n\nUse 80 degrees. Two minutes.\n"
    >>> chunks = markdown_chunk(text, target_size=30, target_overlap=0)
    >>> for chunk in chunks.table.itertuples():
    ...     print(chunk.start, chunk.end, repr(chunk.context), repr(chunk.text))
    0 26 '' '# Tea\n\nBoil water. Wait.\n\n'
    26 65 '# Tea' '## Green\n\nUse 80 degrees. Two minutes.\n'
    """
    settings = ChunkSettings(
        target_size=target_size,
        target_overlap=target_overlap,
        max_snap_dist=max_snap_dist,
        segment_by_heading_levels=segment_by_heading_levels,  # type: ignore[arg-type]
        context=context,
        table_context=table_context,
        keep_whole=keep_whole,
        strategy=strategy,
        unit=unit,
    )
    return Boundaries.of(document).chunk(settings, count_tokens=count_tokens)
