"""From a document to chunks.

Reading order: `markdown` (what cmark says) and `breaks` (what ICU says) find boundaries, `boundaries` holds
those of one document, `plan` says where cuts are wanted, `snap` moves them, `chunks` is the result, and `chunk`
puts it all behind one call. `anchored` is another way to want cuts, `units` counts in tokens; `segment`, `flat`
and `nodes` are separate tools.
"""

from __future__ import annotations

from ragnar_core.chunking.boundaries import Boundaries
from ragnar_core.chunking.chunk import markdown_chunk
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.flat import chunk_segments, chunk_text, segment_text
from ragnar_core.chunking.nodes import markdown_node_positions
from ragnar_core.chunking.segment import Segment, markdown_frame, markdown_segment
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.snap import CUT_KINDS, Cuts

__all__ = [
    "CUT_KINDS",
    "Boundaries",
    "ChunkSettings",
    "Chunks",
    "Cuts",
    "Segment",
    "chunk_segments",
    "chunk_text",
    "markdown_chunk",
    "markdown_frame",
    "markdown_node_positions",
    "markdown_segment",
    "segment_text",
]
