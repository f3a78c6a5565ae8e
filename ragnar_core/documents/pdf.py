"""PDF, page by page: what each gave, and which gave nothing."""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ragnar_core.documents.limits import megabytes
from ragnar_core.documents.pdf_tables import RuledTable, in_reading_order, ruled_tables
from ragnar_core.documents.read import Reading, Source
from ragnar_core.documents.readers import markitdown_converter
from ragnar_core.errors import DocumentError

PAGE_END = "\f"  # becomes a rule between pages
EDGE_LINES = 2  # how many lines at the top and bottom of a page may be a running header or footer
CATALOG = re.compile(rb"(\d+)\s+0\s+obj\s*<<(?:(?!endobj).){0,500}?/Type\s*/Catalog", re.S)
PACKED_STREAM = re.compile(rb"/Fl(?:ateDecode)?\b(?:(?!endobj|stream).){0,400}?\bstream\r?\n", re.S)
IMAGE = re.compile(rb"/Subtype\s*/Image")
STREAM_CHUNK = 65_536
HYPHEN = re.compile(r"([^\W\d_])[-\u00ad]\n[ \t]*([a-zà-öø-ÿα-ωа-я])")


def read_pdf(source: Source) -> Reading:
    """The text of a PDF; pages are parted by a rule (`---`).

    Raises:
        DocumentError: protected by a password, damaged beyond repair, too many pages, or cancelled.
    """
    options = source.options
    notes: list[str] = []
    check_streams(source)
    pages = _pages(source, notes)
    empty = tuple(number for number, text in enumerate(pages, 1) if not text.strip())
    if options.ocr is not None and empty:
        pages, empty = _with_ocr(source, pages, empty, notes)
    if options.pdf_drop_headers:
        pages = without_running_lines(pages)
    markdown = PAGE_END.join(page.strip() for page in pages)
    if not markdown.strip(PAGE_END):
        markdown = ""
    if options.pdf_join_hyphens:
        markdown = HYPHEN.sub(r"\1\2", markdown)
    return Reading(
        markdown, "markitdown (pdf)", pages=len(pages), pages_without_text=empty, notes=tuple(notes)
    )


def check_streams(source: Source) -> None:
    """Refuse a PDF whose packed parts unpack to too much: the parser would unpack them without a bound.

    Pictures are left out, they are not unpacked when text is read.

    Raises:
        DocumentError: one part is over `limits.entry_bytes`, all of them over `limits.unpacked_bytes`, or a part
            is packed twice over.
    """
    limits = source.options.limits
    data = source.data
    total = 0
    for found in PACKED_STREAM.finditer(data):
        if IMAGE.search(found[0]):
            continue
        if found[0].count(b"FlateDecode") > 1:
            raise DocumentError(
                f"{source.origin} is not read: a part of it is packed twice over, as bombs are."
            )
        end = data.find(b"endstream", found.end())
        size = _unpacked_size(data, found.end(), len(data) if end < 0 else end, limits.entry_bytes)
        total += size
        if size > limits.entry_bytes or total > limits.unpacked_bytes:
            name = "entry_bytes" if size > limits.entry_bytes else "unpacked_bytes"
            most = megabytes(getattr(limits, name))
            raise DocumentError(
                f"{source.origin} is not read: it unpacks to more than {most} (limits.{name})."
            )


def _unpacked_size(data: bytes, start: int, end: int, most: int) -> int:
    engine, size = zlib.decompressobj(), 0
    try:
        for position in range(start, end, STREAM_CHUNK):
            piece = data[position : min(end, position + STREAM_CHUNK)]
            while piece:
                size += len(engine.decompress(piece, 16 * STREAM_CHUNK))
                piece = engine.unconsumed_tail
                if size > most:
                    return size
            if engine.eof:
                break
    except zlib.error:
        pass  # damage is the parser's to tell
    return size


def pdf_pages(source: Source) -> list[str]:
    """The text of each page."""
    return [page.strip() for page in _pages(source, [])]


def without_running_lines(pages: list[str]) -> list[str]:
    """The pages without the lines that stand, page numbers aside, at the edge of at least half of them."""
    if len(pages) < 3:
        return pages
    split = [page.strip("\n").split("\n") for page in pages]
    seen: Counter[str] = Counter()
    for lines in split:
        seen.update({_shape(line) for line in lines[:EDGE_LINES] + lines[-EDGE_LINES:] if line.strip()})
    running = {shape for shape, count in seen.items() if count * 2 >= len(pages) and count > 2}
    kept = []
    for lines in split:
        last = len(lines) - EDGE_LINES
        kept.append(
            "\n".join(
                line
                for i, line in enumerate(lines)
                if not ((i < EDGE_LINES or i >= last) and _shape(line) in running)
            )
        )
    return kept


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line.strip())


def _pages(source: Source, notes: list[str]) -> list[str]:
    markitdown_converter("PdfConverter")  # imports what follows, with its warnings off
    from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect

    try:
        return list(_plumbed_pages(source))
    except DocumentError:
        raise
    except Exception as error:
        causes = [error, *error.args, error.__cause__, error.__context__]
        if any(isinstance(cause, PDFPasswordIncorrect) for cause in causes):
            raise DocumentError(_protected(source)) from None
        if any(isinstance(cause, PDFEncryptionError) for cause in causes):
            raise DocumentError(
                f"{source.origin} is encrypted in a way that cannot be opened here: {error}."
            ) from None
        return _repaired_pages(source, error, notes)


def _plumbed_pages(source: Source) -> Iterator[str]:
    import pdfplumber
    from markitdown.converters import _pdf_converter as markitdown_pdf

    _quiet()
    options = source.options
    # One parse of a page serves both: words by position for tables, else pdfminer's layout for prose.
    with pdfplumber.open(io.BytesIO(source.data), password=options.password or "") as pdf:
        total = len(pdf.pages)
        if total == 0:
            raise ValueError("it has no pages")
        if total > options.limits.pages:
            raise DocumentError(
                f"{source.origin} has {total:,} pages; more than {options.limits.pages:,} are not read "
                "(limits.pages)."
            )
        for number, page in enumerate(pdf.pages, 1):
            if options.cancel is not None and options.cancel.is_set():
                raise DocumentError(f"Reading {source.origin} was cancelled at page {number} of {total}.")
            tables = ruled_tables(page)
            text = None if tables else markitdown_pdf._extract_form_content_from_words(page)
            if text is None:
                text = _prose(page.layout, tables)
            yield markitdown_pdf._merge_partial_numbering_lines(text)
            page.close()
            if options.progress is not None:
                options.progress(number, total)


def _prose(layout: Any, tables: list[RuledTable]) -> str:
    """A page's text in reading order, as pdfminer's own text output has it, with the tables where they stand."""
    from pdfminer.layout import LAParams, LTContainer, LTText, LTTextBox

    if tables:
        # Out before lines are made of characters: a line may run from a table into what stands beside it.
        layout._objs = [item for item in layout if not any(table.holds(item) for table in tables)]
    layout.analyze(LAParams())

    def render(item: Any) -> str:
        if isinstance(item, LTContainer):
            text = "".join(map(render, item))
        else:
            text = item.get_text() if isinstance(item, LTText) else ""
        return text + "\n" if isinstance(item, LTTextBox) else text

    parts = [(item, render(item)) for item in layout]
    return "".join(in_reading_order([part for part in parts if part[1]], tables))


def _repaired_pages(source: Source, error: Exception, notes: list[str]) -> list[str]:
    """PDFium rebuilds the index of a broken file, where pdfminer gives up."""
    import pypdfium2  # type: ignore[import-untyped]

    reason = " ".join(str(error).split())[:120] or type(error).__name__
    try:
        with pypdfium2.PdfDocument(_with_trailer(source.data), password=source.options.password) as pdf:
            pages = []
            for page in pdf:
                text = page.get_textpage()
                pages.append(text.get_text_bounded().replace("\r\n", "\n"))
                text.close()
                page.close()
    except pypdfium2.PdfiumError as failure:
        if "password" in str(failure).lower():
            raise DocumentError(_protected(source)) from None
        raise DocumentError(
            f"{source.origin} is damaged and no PDF reader opens it: {reason}. Try another copy."
        ) from None
    notes.append(f"The PDF is damaged ({reason}); {len(pages)} pages were recovered, others may be missing.")
    return pages


def _with_trailer(data: bytes) -> bytes:
    """The file, with a trailer that names its catalog when the end that holds both is missing."""
    catalog = CATALOG.search(data)
    if b"trailer" in data or catalog is None:
        return data
    return data + b"\nendstream endobj\ntrailer << /Root " + catalog[1] + b" 0 R >>\n%%EOF"


def _with_ocr(
    source: Source, pages: list[str], empty: tuple[int, ...], notes: list[str]
) -> tuple[list[str], tuple[int, ...]]:
    import pypdfium2

    pages = list(pages)
    recognise = source.options.ocr
    assert recognise is not None
    with pypdfium2.PdfDocument(source.data, password=source.options.password) as pdf:
        for number in empty:
            picture = io.BytesIO()
            pdf[number - 1].render(scale=200 / 72).to_pil().save(picture, "PNG")
            pages[number - 1] = recognise(picture.getvalue(), number) or ""
    notes.append(f"The text of {len(empty)} pages comes from OCR.")
    return pages, tuple(number for number in empty if not pages[number - 1].strip())


def _protected(source: Source) -> str:
    if source.options.password is None:
        return f"{source.origin} is protected by a password; pass password=, or save it without one."
    return f"{source.origin} is protected by a password, and the one given does not open it."


def _quiet() -> None:
    """pdfminer warns of each font oddity; what matters is in the report."""
    logging.getLogger("pdfminer").setLevel(logging.ERROR)
