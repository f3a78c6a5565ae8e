"""What kind of file is this? The content decides where it can; else the name and the content type do."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePosixPath

from ragnar_core.documents.encoding import looks_binary

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*")
AUDIO = (b"ID3", b"\xff\xfb", b"OggS", b"fLaC")
PDF_HEADER_BYTES = 1024  # readers accept a header anywhere in the first kilobyte
HTML_OPENING = re.compile(
    rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
    re.I | re.S,
)
FEED_OPENING = re.compile(rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<[!?][^>]*>\s*)*<(?:rss|feed|rdf:RDF)[\s>]", re.I)
MAIL_OPENING = re.compile(rb"^(?:[A-Za-z][A-Za-z0-9-]*:[^\n]*\r?\n(?:[ \t][^\n]*\r?\n)*){3,}")

BY_EXTENSION = {
    "html": "html", "htm": "html", "xhtml": "html", "mhtml": "mail", "mht": "mail", "shtml": "html",
    "pdf": "pdf", "docx": "docx", "docm": "docx", "pptx": "pptx", "pptm": "pptx",
    "xlsx": "xlsx", "xlsm": "xlsx", "xls": "xls", "epub": "epub", "zip": "zip", "msg": "msg", "eml": "mail",
    "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "text", "ndjson": "text", "ipynb": "notebook",
    "xml": "xml", "rss": "feed", "atom": "feed",
    "jpg": "image", "jpeg": "image", "png": "image", "gif": "image", "bmp": "image", "tif": "image",
    "tiff": "image", "webp": "image", "wav": "audio", "mp3": "audio", "m4a": "audio", "mp4": "audio",
}  # fmt: skip
BY_TYPE = (
    ("text/html", "html"), ("application/xhtml", "html"), ("application/pdf", "pdf"), ("text/csv", "csv"),
    ("text/tab-separated-values", "csv"), ("application/json", "json"), ("application/rss", "feed"),
    ("application/atom", "feed"), ("text/xml", "xml"), ("application/xml", "xml"), ("message/rfc822", "mail"),
    ("application/x-ipynb", "notebook"), ("image/", "image"), ("audio/", "audio"),
)  # fmt: skip
BINARY_KINDS = frozenset(("pdf", "docx", "pptx", "xlsx", "xls", "epub", "zip", "msg", "image", "audio"))
OLD_OFFICE = {"doc": "Word 97", "ppt": "PowerPoint 97", "xls": "Excel 97"}


def kind_of(data: bytes, name: str = "", content_type: str | None = None) -> str:
    """The kind that decides how `data` is read: "html", "pdf", "docx", "csv", "text", ..., or "binary".

    Binary formats are known by their content alone: a web page saved as `.pdf` is a web page, and a workbook
    saved as `.csv` a workbook. Among texts the name counts, then the content type, then the opening lines.
    A broken file of a known binary format keeps the kind that its first bytes name.
    """
    claimed = BY_EXTENSION.get(extension(name))
    if b"%PDF-" in data[:PDF_HEADER_BYTES]:
        return "pdf"
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _zip_kind(data, claimed)
    if data.startswith(OLE):
        return _ole_kind(data, claimed)
    if data.startswith(IMAGES) or (data.startswith(b"RIFF") and data[8:12] == b"WEBP"):
        return "image" if looks_binary(data) else _text_kind(data, claimed, content_type, name)
    if looks_binary(data):
        is_wave = data.startswith(b"RIFF") and data[8:12] == b"WAVE"
        return "audio" if data.startswith(AUDIO) or is_wave or data[4:8] == b"ftyp" else "binary"
    return _text_kind(data, claimed, content_type, name)


def extension(name: str) -> str:
    """The lower-case extension of a file name or URL, without the dot and without a query."""
    path = name.split("?", 1)[0].split("#", 1)[0] if "://" in name else name
    return PurePosixPath(path.replace("\\", "/")).suffix.lower().lstrip(".")


def is_password_protected_office(data: bytes) -> bool:
    """An Office file with a password is an OLE container that holds an encrypted package."""
    return data.startswith(OLE) and "EncryptedPackage".encode("utf-16-le") in data


def _zip_kind(data: bytes, claimed: str | None) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            kind = _kind_of_names(names)
            if kind == "zip" and "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                stated = archive.read("mimetype")
                return "epub" if b"epub" in stated else "opendocument" if b"opendocument" in stated else "zip"
            return kind
    except Exception:  # zipfile meets damage with a dozen kinds of errors; the reader will say what it finds
        return claimed if claimed in ("docx", "pptx", "xlsx", "epub") else "zip"


def _kind_of_names(names: set[str]) -> str:
    for part, kind in (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx")):
        if any(name.startswith(part) for name in names) and "[Content_Types].xml" in names:
            return kind
    return "epub" if "META-INF/container.xml" in names and any(n.endswith(".opf") for n in names) else "zip"


def _ole_kind(data: bytes, claimed: str | None) -> str:
    for stream, kind in (
        ("EncryptedPackage", "protected"),
        ("__properties_version1.0", "msg"),
        ("Workbook", "xls"),
        ("WordDocument", "doc"),
        ("PowerPoint Document", "ppt"),
    ):
        if stream.encode("utf-16-le") in data:
            return kind
    if "Book".encode("utf-16-le") in data:
        return "xls"
    return claimed if claimed in ("msg", "xls") else "binary"


def _text_kind(data: bytes, claimed: str | None, content_type: str | None, name: str) -> str:
    head = data[:4096]
    if claimed in BINARY_KINDS:
        claimed = None
    stated = next((kind for start, kind in BY_TYPE if (content_type or "").lower().startswith(start)), None)
    if stated in BINARY_KINDS:
        stated = None
    if HTML_OPENING.match(head):
        return "html"
    if FEED_OPENING.match(head) and (claimed or stated or "xml") in ("xml", "feed", "html"):
        return "feed"
    if claimed == "html" or claimed == "notebook" or claimed == "csv" or claimed == "json":
        return claimed
    has_headers = extension(name) in ("", "mbox") and MAIL_OPENING.match(head) and b"\nFrom:" in b"\n" + head
    if claimed == "mail" or has_headers:
        return "mail"
    if head.lstrip().startswith(b"<?xml"):
        return "xml"
    return claimed or stated or "text"
