"""Cut a Markdown document into overlapping chunks at its natural boundaries."""

from __future__ import annotations

from collections.abc import Sequence

from ragnar_core.chunking.boundaries import Boundaries
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.settings import ChunkSettings
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
) -> Chunks:
    """Cut a Markdown document into overlapping chunks at its natural boundaries."""
    settings = ChunkSettings(
        target_size=target_size,
        target_overlap=target_overlap,
        max_snap_dist=max_snap_dist,
        segment_by_heading_levels=tuple(segment_by_heading_levels),
        context=context,
        table_context=table_context,
        keep_whole=keep_whole,
        strategy=strategy,
        unit=unit,
    )
    return Boundaries.of(document).chunk(settings)
