"""One family of errors. A message says what was wrong, with which document or setting, and what to do next."""

from __future__ import annotations


class RagnarError(Exception):
    """Everything that goes wrong for a reason a person can act on."""


class DocumentError(RagnarError):
    """A document could not be read."""


class CrawlError(RagnarError):
    """A page could not be fetched, or a crawl could not start."""


class ChunkError(RagnarError, ValueError):
    """Chunk settings are out of range, or a text cannot be chunked."""


class EmbedError(RagnarError):
    """A model is missing, a provider refused, or vectors came back wrong."""


class StoreError(RagnarError):
    """A store cannot be opened, read or written as asked."""


class FilterError(RagnarError, ValueError):
    """A filter does not parse, or names a column or an operator that is not there."""


class RetrievalError(RagnarError, ValueError):
    """A search was asked for with a setting out of range."""
