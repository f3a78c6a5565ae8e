"""Word and PowerPoint, through markitdown's converters with our HTML underneath."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from importlib import import_module
from typing import Any

from ragnar_core.documents.archives import check_bounds
from ragnar_core.documents.html import RAW_END, RAW_START, html_converter
from ragnar_core.documents.read import Reading, Source
from ragnar_core.documents.readers import damaged, markitdown_converter, stream_info
from ragnar_core.errors import DocumentError

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
# Word's title stands above its headings; a subtitle is a line under it, not a part of the text of its own.
STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh > em"
TEXT_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")


def read_docx(source: Source) -> Reading:
    """A Word document. Title, headings, lists, tables and links are kept; equations become LaTeX."""
    check_bounds(source, "Word")
    try:
        data, unclear = _with_latex(source.data)
    except Exception as error:
        raise damaged(source, "Word", error) from None
    given = source.options.converter_options
    # What the person maps comes first: of two rules for a style the first one holds.
    styles = "\n".join(filter(None, (given.get("style_map"), STYLES)))
    options = replace(source.options, converter_options={**given, "style_map": styles})
    reading = _convert(replace(source, data=data, options=options), "DocxConverter", "Word", "docx")
    if not unclear:
        return reading
    return replace(reading, notes=(*reading.notes, f"Of {unclear} equations only the letters could be kept."))


def read_pptx(source: Source) -> Reading:
    """A presentation: titles, text, tables, charts and notes, slide by slide."""
    check_bounds(source, "PowerPoint")
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
        msoffcrypto = import_module("msoffcrypto")
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
    return Reading(
        result.markdown,
        f"markitdown ({suffix})",
        title=result.title,
        pages=result.markdown.count("<!-- Slide number: ") or None,
        notes=_diagram_note(source.data),
    )


def _diagram_note(data: bytes) -> tuple[str, ...]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        diagrams = sum("/diagrams/data" in name for name in archive.namelist())
    return (f"The text of {diagrams} diagrams (SmartArt) was not read.",) if diagrams else ()


def _with_latex(data: bytes) -> tuple[bytes, int]:
    """The file with each equation as a run of text, and how many were beyond translation.

    markitdown leaves out all equations of a document when one of them has a form it does not expect.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in TEXT_PARTS if name in archive.NameToInfo}
        if not any(b"oMath" in part for part in parts.values()):
            return data, 0
        unclear = 0
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as changed:
            for name in archive.namelist():
                part = parts.get(name)
                if part is not None and b"oMath" in part:
                    part, count = _equations_as_text(part)
                    unclear += count
                changed.writestr(name, archive.read(name) if part is None else part)
    return buffer.getvalue(), unclear


def _equations_as_text(part: bytes) -> tuple[bytes, int]:
    from lxml import etree

    root = etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))
    unclear = 0
    for block in list(root.iter(MATH + "oMathPara")) + list(root.iter(MATH + "oMath")):
        parent = block.getparent()
        if parent is None or any(e.tag == MATH + "oMathPara" for e in block.iterancestors()):
            continue
        mark = "$$" if block.tag == MATH + "oMathPara" else "$"
        equations = block.findall(MATH + "oMath") if mark == "$$" else [block]
        run = etree.Element(WORD + "r")
        for equation in equations:
            latex, clear = _latex(equation)
            unclear += not clear
            text = etree.SubElement(run, WORD + "t")
            text.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
            text.text = f"{RAW_START}{mark}{latex}{mark}{RAW_END}"
        run.tail = block.tail
        if parent.tag == WORD + "body":
            paragraph = etree.Element(WORD + "p")
            paragraph.append(run)
            run = paragraph
        parent.replace(block, run)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True), unclear


def _latex(equation: Any) -> tuple[str, bool]:
    from xml.etree import ElementTree

    from lxml import etree
    from markitdown.converter_utils.docx.math import omml

    translate: Any = omml.oMath2Latex

    for fraction in equation.iter(MATH + "f"):
        if fraction.find(MATH + "fPr") is None:  # optional in the format, but not to the translator
            fraction.insert(0, etree.Element(MATH + "fPr"))
    try:
        return str(translate(ElementTree.fromstring(etree.tostring(equation, with_tail=False))).latex), True
    except Exception:
        return "".join(equation.itertext()).strip(), False
