"""One page of the web as a document."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.documents.fetch import Fetcher, FetchSettings, Page
from ragnar_core.documents.read import ReadOptions, read_fetched


def read_url(url: str, *, origin: str, options: ReadOptions) -> MarkdownDocument:
    """Fetch an address and read what comes.

    Raises:
        CrawlError: no usable answer.
        DocumentError: the answer cannot be read.
    """
    settings = FetchSettings(allow_private=options.allow_private, max_bytes=options.limits.file_bytes)
    with Fetcher(settings, cancel=options.cancel) as fetcher:
        page = fetcher.get(url)
    return read_page(page, origin=origin, options=options)


def read_page(page: Page, *, origin: str, options: ReadOptions) -> MarkdownDocument:
    """The document in an answer; its header names the type and perhaps the charset and a file name."""
    return read_fetched(
        page.body or b"",
        file_name(page),
        origin,
        options,
        content_type=page.content_type or None,
        charset=page.charset,
        url=page.url,
    )


def file_name(page: Page) -> str:
    """The name that the answer gives the file, else the last part of its address."""
    from email.message import Message

    disposition = page.headers.get("content-disposition")
    if disposition:
        message = Message()
        message["content-disposition"] = disposition
        name = message.get_filename()
        if name:
            return str(name)
    return unquote(urlsplit(page.url).path.rsplit("/", 1)[-1]) or "index"
