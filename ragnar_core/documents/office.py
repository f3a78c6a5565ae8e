"""Word and PowerPoint, through markitdown's converters with our HTML underneath."""

from __future__ import annotations

import io

from ragnar_core.documents.archives import check_bounds
from ragnar_core.documents.html import html_converter
from ragnar_core.documents.read import Reading, Source
from ragnar_core.documents.readers import damaged, markitdown_converter, stream_info
from ragnar_core.errors import DocumentError


def read_docx(source: Source) -> Reading:
    """A Word document. Headings, lists, tables, links and equations are kept."""
    return _convert(source, "DocxConverter", "Word", "docx")


def read_pptx(source: Source) -> Reading:
    """A presentation: titles, text, tables, charts and notes, slide by slide."""
    return _convert(source, "PptxConverter", "PowerPoint", "pptx")


def decrypt_office(source: Source) -> bytes:
    """The plain file inside a password-protected Office file.

    Raises:
        DocumentError: no password was given, it is wrong, or `msoffcrypto-tool` is not installed.
    """
    protected = f"{source.origin} is protected by a password"
    if source.options.password is None:
        raise DocumentError(f"{protected}; pass password=, or save it without one.")
    try:
        import msoffcrypto  # type: ignore[import-not-found]
    except ImportError:
        raise DocumentError(
            f"{protected}; install msoffcrypto-tool to open it, or save it without one."
        ) from None
    plain = io.BytesIO()
    try:
        office = msoffcrypto.OfficeFile(io.BytesIO(source.data))
        office.load_key(password=source.options.password)
        office.decrypt(plain)
    except Exception as error:
        raise DocumentError(f"{protected}, and the one given does not open it ({error}).") from None
    return plain.getvalue()


def _convert(source: Source, name: str, what: str, suffix: str) -> Reading:
    check_bounds(source, what)
    converter = markitdown_converter(name)
    options = source.options
    # An attribute of this one converter: other threads have their own.
    converter._html_converter = html_converter(options.html_extract_selectors, options.html_zap_selectors)
    try:
        result = converter.convert(
            io.BytesIO(source.data), stream_info(source, suffix=f".{suffix}"), **options.converter_options
        )
    except DocumentError:
        raise
    except Exception as error:
        raise damaged(source, what, error) from None
    return Reading(result.markdown, f"markitdown ({suffix})", title=result.title)
