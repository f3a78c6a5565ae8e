"""One reader a kind of file, and the table that picks it."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ragnar_core.documents.encoding import Decoded, decode
from ragnar_core.documents.html import html_converter, html_to_markdown
from ragnar_core.documents.read import Reading, Source
from ragnar_core.documents.sniff import OLD_OFFICE, extension, kind_of
from ragnar_core.documents.tables import csv_to_markdown
from ragnar_core.errors import DocumentError, RagnarError

PAGE_ENDS = re.compile(r"[ \t\r\n]*\f[ \t\r\n\f]*")
NAMES = {"docx": "Word", "pptx": "PowerPoint", "xlsx": "Excel", "xls": "Excel", "msg": "Outlook"}
MINIFIED_LINE = 2_000  # characters; a JSON line longer than that is set out anew


def read_source(source: Source) -> Reading:
    """Read with the reader of the source's kind.

    Raises:
        DocumentError: the source is empty, damaged, protected, over a limit or of no readable kind.
    """
    limits = source.options.limits
    if not source.data:
        raise DocumentError(f"{source.origin} is an empty file (0 bytes).")
    if len(source.data) > limits.file_bytes:
        raise DocumentError(limits.too_large(source.origin, len(source.data)))
    kind = kind_of(source.data, source.name, source.content_type)
    reader = READERS.get(kind)
    if reader is None:
        raise DocumentError(_no_reader(source, kind))
    try:
        reading = reader(replace(source, kind=kind))
    except RagnarError:
        raise
    except Exception as error:  # the parsers of damaged files fail in ways that no list of exceptions covers
        raise damaged(source, NAMES.get(kind, kind), f"{type(error).__name__}: {error}") from error
    # A form feed is a page's end. None is left at the start: a rule there would open a front matter.
    markdown = PAGE_ENDS.sub(_rules, reading.markdown.lstrip("\r\n\f").rstrip())
    return replace(reading, markdown=markdown)


def _rules(match: re.Match[str]) -> str:
    return "\n\n" + "---\n\n" * match[0].count("\f")


def markitdown_converter(name: str, **arguments: Any) -> Any:
    """A fresh converter of markitdown's by class name. Nothing of it is imported before the first use."""
    # onnxruntime, which markitdown imports, would write a device id into the home directory.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Couldn't find ffmpeg": said where audio is read
        from markitdown import converters
    return getattr(converters, name)(**arguments)


def stream_info(source: Source, *, charset: str | None = None, suffix: str | None = None) -> Any:
    """What markitdown's converters want to know about a source."""
    from markitdown import StreamInfo

    return StreamInfo(
        extension=suffix or "." + extension(source.name),
        filename=source.name,
        charset=charset,
        url=source.url,
    )


def damaged(source: Source, what: str, error: BaseException | str) -> DocumentError:
    """The error for a file that does not open as what it says it is."""
    reason = " ".join(str(error).split())[:160] or type(error).__name__
    return DocumentError(
        f"{source.origin} is damaged or no {what} file: {reason}. Save it again, or try another copy."
    )


def _text(source: Source) -> Reading:
    decoded = _decoded(source)
    return _as_read(decoded, decoded.text, "text")


def _csv(source: Source) -> Reading:
    decoded = _decoded(source)
    return _as_read(decoded, csv_to_markdown(decoded.text, source.options.delimiter), "csv")


def _json(source: Source) -> Reading:
    decoded = _decoded(source)
    text = decoded.text
    if max(map(len, text.split("\n")), default=0) > MINIFIED_LINE:
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            text = decoded.text
    return _as_read(decoded, text, "json")


def _notebook(source: Source) -> Reading:
    decoded = _decoded(source)
    converter = markitdown_converter("IpynbConverter")
    info = stream_info(source, charset="utf-8", suffix=".ipynb")
    try:
        result = converter.convert(io.BytesIO(decoded.text.encode()), info)
    except Exception as error:
        raise damaged(source, "notebook", error) from None
    return _as_read(decoded, result.markdown, "markitdown (notebook)", title=result.title)


def _html(source: Source) -> Reading:
    from ragnar_core.documents.youtube import is_video, read_video

    decoded = decode(source.data, encoding=source.options.encoding, declared=source.charset, markup=True)
    if source.url and is_video(source.url):
        return read_video(source, decoded)
    options = source.options
    converted = html_to_markdown(
        decoded.text, extract=options.html_extract_selectors, zap=options.html_zap_selectors
    )
    reading = _as_read(decoded, converted.markdown, "markitdown (html)", title=converted.title)
    return replace(reading, notes=reading.notes + converted.notes)


def _feed(source: Source) -> Reading:
    converter = markitdown_converter("RssConverter")
    decoded = decode(source.data, encoding=source.options.encoding, declared=source.charset, markup=True)
    body = re.sub(r"^\s*<\?xml[^>]*\?>", "", decoded.text)
    stream = io.BytesIO(body.encode())
    info = stream_info(source, charset="utf-8", suffix=".xml")
    try:
        if converter.accepts(stream, info):
            stream.seek(0)
            return _as_read(decoded, converter.convert(stream, info).markdown, "markitdown (feed)")
    except Exception as error:
        reading = _as_read(decoded, decoded.text, "text")
        return replace(
            reading,
            notes=(*reading.notes, f"The feed could not be read as one ({error}); its source is kept."),
        )
    return _as_read(decoded, decoded.text, "text")


def _xml(source: Source) -> Reading:
    decoded = decode(source.data, encoding=source.options.encoding, declared=source.charset, markup=True)
    return _as_read(decoded, decoded.text, "xml")


def _epub(source: Source) -> Reading:
    from ragnar_core.documents.archives import check_bounds, refuse_locked_book

    check_bounds(source, "EPUB")
    refuse_locked_book(source)
    converter = markitdown_converter("EpubConverter")
    converter._html_converter = _own_html_converter(source)
    try:
        result = converter.convert(io.BytesIO(source.data), stream_info(source, suffix=".epub"))
    except Exception as error:
        raise damaged(source, "EPUB", error) from None
    return Reading(result.markdown, "markitdown (epub)", title=result.title)


def _image(source: Source) -> Reading:
    return _media(
        source,
        "ImageConverter",
        "a picture",
        "install exiftool for its metadata, or pass llm_client and llm_model",
    )


def _audio(source: Source) -> Reading:
    return _media(
        source,
        "AudioConverter",
        "a recording",
        "install markitdown[audio-transcription], or exiftool for its metadata",
    )


def _media(source: Source, name: str, what: str, remedy: str) -> Reading:
    converter = markitdown_converter(name)
    try:
        options = dict(source.options.converter_options)
        result = converter.convert(io.BytesIO(source.data), stream_info(source), **options)
        markdown = result.markdown.strip()
    except Exception as error:
        raise DocumentError(
            f"{source.origin} is {what} and could not be put into words: {error}. To read it, {remedy}."
        ) from None
    if not markdown:
        raise DocumentError(
            f"{source.origin} is {what}; nothing here can put it into words. To read it, {remedy}."
        )
    return Reading(markdown, "markitdown (media)")


def _protected(source: Source) -> Reading:
    from ragnar_core.documents.office import decrypt_office

    return read_source(replace(source, data=decrypt_office(source)))


def _lazily(module: str, function: str) -> Callable[[Source], Reading]:
    def read(source: Source) -> Reading:
        from importlib import import_module

        reading: Reading = getattr(import_module(f"ragnar_core.documents.{module}"), function)(source)
        return reading

    return read


def _own_html_converter(source: Source) -> Any:
    return html_converter(source.options.html_extract_selectors, source.options.html_zap_selectors)


def _decoded(source: Source) -> Decoded:
    return decode(source.data, encoding=source.options.encoding, declared=source.charset)


def _as_read(decoded: Decoded, markdown: str, converter: str, *, title: str | None = None) -> Reading:
    return Reading(
        markdown,
        converter,
        title=title,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        notes=decoded.notes,
    )


def _no_reader(source: Source, kind: str) -> str:
    if kind in OLD_OFFICE:
        return (
            f"{source.origin} is a {OLD_OFFICE[kind]} file, which cannot be read; save it as .{kind}x first."
        )
    if kind == "opendocument":
        return (
            f"{source.origin} is an OpenDocument file, which cannot be read; save it as .docx or .xlsx first."
        )
    start = source.data[:8].hex(" ")
    return f"{source.origin} is a binary file of no kind that can be read (it starts with {start})."


READERS: dict[str, Callable[[Source], Reading]] = {
    "text": _text,
    "csv": _csv,
    "json": _json,
    "notebook": _notebook,
    "html": _html,
    "feed": _feed,
    "xml": _xml,
    "epub": _epub,
    "image": _image,
    "audio": _audio,
    "protected": _protected,
    "pdf": _lazily("pdf", "read_pdf"),
    "docx": _lazily("office", "read_docx"),
    "pptx": _lazily("office", "read_pptx"),
    "xlsx": _lazily("sheets", "read_xlsx"),
    "xls": _lazily("sheets", "read_xls"),
    "zip": _lazily("archives", "read_zip"),
    "msg": _lazily("mail", "read_msg"),
    "mail": _lazily("mail", "read_mail"),
}
