"""From a document to chunks: find its boundaries once, then cut."""

from __future__ import annotations

from ragnar_core.chunking.boundaries import Boundaries
from ragnar_core.chunking.chunk import markdown_chunk
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.settings import ChunkSettings

__all__ = ["Boundaries", "ChunkSettings", "Chunks", "markdown_chunk"]
