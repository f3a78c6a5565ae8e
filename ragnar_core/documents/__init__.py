"""Reading: files, pages and sites into Markdown documents that know what was lost."""

from __future__ import annotations

from ragnar_core.documents.document import MarkdownDocument, ReadReport, normalise
from ragnar_core.documents.limits import Limits
from ragnar_core.documents.read import ReadOptions, read_as_markdown, read_bytes
from ragnar_core.documents.shelf import Shelf, ShelfEntry

__all__ = [
    "Limits",
    "MarkdownDocument",
    "ReadOptions",
    "ReadReport",
    "Shelf",
    "ShelfEntry",
    "normalise",
    "read_as_markdown",
    "read_bytes",
]
