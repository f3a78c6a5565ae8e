"""Small files of each kind, made for the tests."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def pdf(
    pages: Sequence[Sequence[str] | None],
    *,
    draw: Callable[[Any, int], None] | None = None,
    user_password: str | None = None,
    owner_password: str | None = None,
) -> bytes:
    """A PDF; each page has lines of text, or with None a filled rectangle only."""
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    encrypt = None
    if user_password is not None or owner_password is not None:
        encrypt = StandardEncryption(user_password or "", owner_password or user_password)
    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=encrypt, invariant=True)
    for number, lines in enumerate(pages):
        if lines is None:
            canvas.rect(50, 50, 300, 300, fill=1)
        else:
            for row, line in enumerate(lines):
                canvas.drawString(72, 760 - 14 * row, line)
        if draw is not None:
            draw(canvas, number)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def docx(build: Callable[[Any], None]) -> bytes:
    """A Word document that `build` fills."""
    from docx import Document

    document = Document()
    build(document)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def pptx(slides: Sequence[tuple[str, str]], build: Callable[[Any], None] | None = None) -> bytes:
    """A presentation with (title, text) slides."""
    from pptx import Presentation

    presentation = Presentation()
    for title, text in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    if build is not None:
        build(presentation)
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def xlsx(build: Callable[[Any], None]) -> bytes:
    """A workbook that `build` fills."""
    from openpyxl import Workbook

    book = Workbook()
    build(book)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def zipped(files: Mapping[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP of files by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def epub(chapters: Mapping[str, str], *, title: str = "A Book") -> bytes:
    """An EPUB with XHTML chapters in order."""
    items = "".join(f'<item id="c{i}" href="{name}"/>' for i, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title><dc:creator>An Author</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    files = {"mimetype": b"application/epub+zip", "META-INF/container.xml": container.encode()}
    files["OPS/book.opf"] = opf.encode()
    for name, body in chapters.items():
        files[f"OPS/{name}"] = f"<html><head><title>x</title></head><body>{body}</body></html>".encode()
    return zipped(files)


def msg(streams: Mapping[str, bytes]) -> bytes:
    """An OLE container with the given streams ("storage/stream" for nested ones), as Outlook writes mail."""
    sector, mini_cutoff = 512, 4096
    tree: dict[str, Any] = {}
    for path, data in streams.items():
        *folders, name = path.split("/")
        level = tree
        for folder in folders:
            level = level.setdefault(folder, {})
        level[name] = data
    entries: list[dict[str, Any]] = [{"name": "Root Entry", "kind": 5, "data": b"", "child": -1, "right": -1}]

    def place(level: Mapping[str, Any], parent: int) -> None:
        previous = -1
        # A chain of right siblings is a valid (if unbalanced) tree when the names are in order.
        for name in sorted(level, key=lambda n: (len(n), n.upper())):
            value = level[name]
            index = len(entries)
            is_stream = isinstance(value, bytes)
            entries.append(
                {
                    "name": name,
                    "kind": 2 if is_stream else 1,
                    "data": value if is_stream else b"",
                    "child": -1,
                    "right": -1,
                }
            )
            if previous < 0:
                entries[parent]["child"] = index
            else:
                entries[previous]["right"] = index
            previous = index
            if not is_stream:
                place(value, index)

    place(tree, 0)
    body = bytearray()
    fat: list[int] = []

    def store(data: bytes) -> int:
        if not data:
            return -2
        first, count = len(fat), -(-len(data) // sector)
        fat.extend([*range(first + 1, first + count), -2])
        body.extend(data.ljust(count * sector, b"\0"))
        return first

    mini, mini_fat = bytearray(), []
    for entry in entries[1:]:
        data = entry["data"]
        if entry["kind"] != 2 or not data:
            continue
        entry["size"] = len(data)
        if len(data) >= mini_cutoff:
            entry["start"] = store(data)
            continue
        count = -(-len(data) // 64)
        entry["start"] = len(mini_fat)
        mini_fat.extend([*range(len(mini_fat) + 1, len(mini_fat) + count), -2])
        mini.extend(data.ljust(64 * count, b"\0"))
    entries[0]["start"], entries[0]["size"] = store(bytes(mini)), len(mini)
    mini_fat_bytes = b"".join(struct.pack("<i", value) for value in mini_fat)
    mini_fat_start = store(mini_fat_bytes.ljust(-(-len(mini_fat_bytes) // sector) * sector, b"\xff"))
    mini_fat_sectors = -(-len(mini_fat_bytes) // sector)
    directory = bytearray()
    for entry in entries:
        name = (entry["name"] + "\0").encode("utf-16-le")
        directory += name.ljust(64, b"\0") + struct.pack("<HBB", len(name), entry["kind"], 1)
        directory += struct.pack("<iii", -1, entry["right"], entry["child"]) + bytes(16 + 4 + 16)
        directory += struct.pack("<iII", entry.get("start", -2), entry.get("size", 0), 0)
    directory_start = store(bytes(directory))
    fat_start = len(fat)
    fat_sectors = 1
    while (len(fat) + fat_sectors) * 4 > fat_sectors * sector:
        fat_sectors += 1
    fat.extend([-3] * fat_sectors)
    table = b"".join(struct.pack("<i", value) for value in fat).ljust(fat_sectors * sector, b"\xff")
    header = (
        bytes.fromhex("d0cf11e0a1b11ae1")
        + bytes(16)
        + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
        + bytes(6)
    )
    header += struct.pack(
        "<IIiIIiIiI", 0, fat_sectors, directory_start, 0, mini_cutoff, mini_fat_start, mini_fat_sectors, -2, 0
    )
    header += b"".join(struct.pack("<i", fat_start + i) for i in range(fat_sectors)).ljust(436, b"\xff")
    return header + bytes(body) + table


def mail(
    subject: str, text: str, *, sender: str = "ann@example.com", attachments: Sequence[str] = ()
) -> bytes:
    """An Outlook message."""
    streams = {
        "__properties_version1.0": bytes(32),
        "__recip_version1.0_#00000000/__properties_version1.0": bytes(8),
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1F001F": sender.encode("utf-16-le"),
        "__substg1.0_0E04001F": "Bob".encode("utf-16-le"),
        "__substg1.0_1000001F": text.encode("utf-16-le"),
    }
    for index, name in enumerate(attachments):
        streams[f"__attach_version1.0_#{index:08d}/__substg1.0_3707001F"] = name.encode("utf-16-le")
    return msg(streams)
