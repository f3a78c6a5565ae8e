"""Anything a person has, as Markdown: the way in, and the choice of a reader by what the file holds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from ragnar_core.documents.document import MarkdownDocument, ReadReport, normalise
from ragnar_core.documents.limits import Limits
from ragnar_core.errors import DocumentError


@dataclass(frozen=True)
class ReadOptions:
    """How to read; every reader gets them as one value.

    Attributes:
        html_extract_selectors: CSS; the first match of each is kept, selectors without a match do nothing.
        html_zap_selectors: CSS; all matches are removed.
        encoding: overrides what the file says and what we would guess.
        password: opens protected PDF (and, with `msoffcrypto-tool` installed, Office) files.
        delimiter: of CSV; None finds it out.
        pdf_drop_headers: leave out lines that recur at the top or bottom of most pages.
        pdf_join_hyphens: rejoin words that a line end hyphenates.
        ocr: called with the PNG bytes and the 1-based number of a page without text; returns its text.
        youtube_transcript_formatter: called with a DataFrame (text, start, duration in seconds;
            `.attrs["youtube_metadata"]`); returns the transcript as Markdown.
        allow_private: URLs may lead to private and loopback addresses (True), or to those named.
        limits: sizes and counts at which reading stops.
        progress: called with (pages done, pages in all).
        cancel: set from another thread, stops the reading with a DocumentError.
        converter_options: handed on to markitdown (`llm_client`, `llm_model`, `style_map`, `exiftool_path`).

    Raises:
        DocumentError: selectors are no texts, or limits no `Limits`.
    """

    html_extract_selectors: tuple[str, ...] = ("main",)
    html_zap_selectors: tuple[str, ...] = ("nav",)
    encoding: str | None = None
    password: str | None = None
    delimiter: str | None = None
    pdf_drop_headers: bool = False
    pdf_join_hyphens: bool = False
    ocr: Callable[[bytes, int], str] | None = None
    youtube_transcript_formatter: Callable[[Any], str] | None = None
    allow_private: bool | tuple[str, ...] = False
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[int, int], None] | None = None
    cancel: threading.Event | None = None
    converter_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("html_extract_selectors", "html_zap_selectors"):
            object.__setattr__(self, name, _selectors(getattr(self, name)))
        if not isinstance(self.limits, Limits):
            raise DocumentError(f"limits must be Limits, not {type(self.limits).__name__}.")


def read_as_markdown(
    x: str | Path,
    *,
    origin: str | None = None,
    html_extract_selectors: str | Iterable[str] | None = ("main",),
    html_zap_selectors: str | Iterable[str] | None = ("nav",),
    **options: Any,
) -> MarkdownDocument:
    """Read a file or an http(s) URL as Markdown.

    Args:
        x: path, `file:` URL or http(s) URL.
        origin: what the document remembers as its source; `x` when not given.
        html_extract_selectors: see `ReadOptions`; None or () keeps the whole page.
        html_zap_selectors: see `ReadOptions`; None or () removes nothing.
        **options: the other fields of `ReadOptions`; further names go to markitdown.

    Returns:
        The document with its `.report`. A file without any text (a scan) gives an empty document whose
        report says so.

    Raises:
        DocumentError: the file is missing, empty, damaged, protected, over a limit or of no readable kind.
        CrawlError: the URL cannot be fetched, or leads to an address that is not allowed.
    """
    check_path(x, "A path or URL is needed to read from")
    how = read_options(html_extract_selectors, html_zap_selectors, **options)
    location = str(x)
    if location.startswith(("http://", "https://")):
        from ragnar_core.documents.web import read_url

        return read_url(location, origin=origin or location, options=how)
    path = _path(x)
    return read_fetched(file_bytes(path, how.limits), path.name, origin or location, how)


def read_bytes(
    data: bytes,
    name: str,
    *,
    origin: str | None = None,
    content_type: str | None = None,
    charset: str | None = None,
    html_extract_selectors: str | Iterable[str] | None = ("main",),
    html_zap_selectors: str | Iterable[str] | None = ("nav",),
    **options: Any,
) -> MarkdownDocument:
    """Read bytes that came from an upload or a response; `name` is the file's name (its extension is a hint).

    `content_type` and `charset` are what an HTTP response stated. Otherwise as `read_as_markdown`. Raises
    DocumentError, also for what is not bytes.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DocumentError(f"read_bytes needs the bytes of a file, not {type(data).__name__}.")
    if not isinstance(name, str):
        raise DocumentError(f"read_bytes needs the name of the file as a text, not {name!r}.")
    how = read_options(html_extract_selectors, html_zap_selectors, **options)
    return read_fetched(bytes(data), name, origin or name, how, content_type=content_type, charset=charset)


def read_options(
    html_extract_selectors: str | Iterable[str] | None = ("main",),
    html_zap_selectors: str | Iterable[str] | None = ("nav",),
    **options: Any,
) -> ReadOptions:
    """The arguments of `read_as_markdown` as one value."""
    own = {name: options.pop(name) for name in list(options) if name in ReadOptions.__dataclass_fields__}
    further = {**own.pop("converter_options", {}), **options}
    return ReadOptions(
        html_extract_selectors=html_extract_selectors,  # type: ignore[arg-type]
        html_zap_selectors=html_zap_selectors,  # type: ignore[arg-type]
        converter_options=further,
        **own,
    )


@dataclass(frozen=True)
class Source:
    """What a reader is given: the bytes and all that is known about them."""

    data: bytes
    name: str
    origin: str
    options: ReadOptions
    kind: str = ""
    content_type: str | None = None
    charset: str | None = None
    url: str | None = None
    depth: int = 0


@dataclass(frozen=True)
class Reading:
    """What a reader gives back."""

    markdown: str
    converter: str
    title: str | None = None
    encoding: str | None = None
    encoding_confidence: float | None = None
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def read_fetched(
    data: bytes,
    name: str,
    origin: str,
    options: ReadOptions,
    *,
    content_type: str | None = None,
    charset: str | None = None,
    url: str | None = None,
) -> MarkdownDocument:
    """Read bytes with options in one value; `url` is where they came from, if they did."""
    from ragnar_core.documents.readers import read_source

    reading = read_source(Source(data, name, origin, options, "", content_type, charset, url))
    text = with_title(reading.markdown, reading.title)
    return as_document(reading, text, origin, len(data))


def as_document(reading: Reading, text: str, origin: str, size: int | None) -> MarkdownDocument:
    """The document of a reading, with its report filled in."""
    text = normalise(text, origin=origin)
    report = ReadReport(
        converter=reading.converter,
        encoding=reading.encoding,
        encoding_confidence=reading.encoding_confidence,
        bytes=size,
        pages=reading.pages,
        pages_without_text=reading.pages_without_text,
        characters=len(text),
        suspicious_glyphs=suspicious_glyphs(text),
        notes=reading.notes,
        title=reading.title,
    )
    return MarkdownDocument(text, origin, report)


def with_title(markdown: str, title: str | None) -> str:
    """The Markdown with the title as its first heading, unless it opens with that heading already."""
    if not title:
        return markdown
    title = " ".join(title.split())
    first = next((line for line in markdown.split("\n") if line.strip()), "")
    if first.startswith("# ") and _plain(first[2:]) == _plain(title):
        return markdown
    from ragnar_core.documents.html import escape_inline

    return f"# {escape_inline(title)}\n\n{markdown}" if markdown else f"# {escape_inline(title)}"


def suspicious_glyphs(text: str) -> int:
    """Characters that hint at a failed decoding: U+FFFD, private use, and a font's undecoded "(cid:7)"."""
    if text.isascii():
        return text.count("(cid:")
    import re

    return len(re.findall(r"[\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd]|\(cid:\d+\)", text))


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _selectors(value: str | Iterable[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(one, str) for one in listed):
        raise DocumentError(f"Selectors must be CSS as texts, such as ('main',), not {value!r}.")
    return listed


def check_path(x: object, needed: str = "The path of a file is needed") -> None:
    """Raises DocumentError for what is no path, or a blank one."""
    if not isinstance(x, str | Path) or not str(x).strip():
        raise DocumentError(f"{needed}, not {x!r}.")


def _path(x: str | Path) -> Path:
    text = str(x)
    if text.startswith("file:"):
        return Path(url2pathname(unquote(urlsplit(text).path)))
    if "://" in text[:12]:
        raise DocumentError(f"{text}: only paths, file: and http(s) addresses can be read.")
    return Path(text).expanduser()


def file_bytes(path: Path, limits: Limits) -> bytes:
    """The content of a file.

    Raises:
        DocumentError: it is not there, a folder, over the limit, or may not be read.
    """
    try:
        if path.is_dir():
            raise DocumentError(f"{path} is a folder; give the files in it, one at a time.")
        size = path.stat().st_size
        if size > limits.file_bytes:
            raise DocumentError(limits.too_large(str(path), size))
        return path.read_bytes()
    except FileNotFoundError:
        raise DocumentError(f"There is no file {path}; check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DocumentError(f"{path} cannot be read: {reason}.") from None
