"""Reading: files, pages and sites into Markdown documents that know what was lost."""

from __future__ import annotations

from ragnar_core.documents.crawl import crawl
from ragnar_core.documents.crawl_settings import CrawlProgress, CrawlSettings
from ragnar_core.documents.crawl_state import CrawlProblem, CrawlResult, CrawlState, PageRecord
from ragnar_core.documents.document import MarkdownDocument, ReadReport, normalise
from ragnar_core.documents.fetch import FetchError, FetchSettings
from ragnar_core.documents.limits import Limits
from ragnar_core.documents.links import LinkProblem, Links, find_links
from ragnar_core.documents.read import ReadOptions, read_as_markdown, read_bytes
from ragnar_core.documents.rows import (
    Rows,
    load_documents_csv,
    load_documents_excel,
    load_documents_pdf,
    load_documents_txt,
)
from ragnar_core.documents.shelf import Shelf, ShelfEntry

__all__ = [
    "CrawlProblem",
    "CrawlProgress",
    "CrawlResult",
    "CrawlSettings",
    "CrawlState",
    "FetchError",
    "FetchSettings",
    "Limits",
    "LinkProblem",
    "Links",
    "MarkdownDocument",
    "PageRecord",
    "ReadOptions",
    "ReadReport",
    "Rows",
    "Shelf",
    "ShelfEntry",
    "crawl",
    "find_links",
    "load_documents_csv",
    "load_documents_excel",
    "load_documents_pdf",
    "load_documents_txt",
    "normalise",
    "read_as_markdown",
    "read_bytes",
]
