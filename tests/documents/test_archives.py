from __future__ import annotations

import io
import resource
import subprocess
import sys
import textwrap
import zipfile
from types import ModuleType

import pytest

from ragnar_core.documents import Limits, read_bytes
from ragnar_core.errors import DocumentError

MB = 1_000_000


def zeros(megabytes: int, name: str = "zeros.txt") -> bytes:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w") as entry,
    ):
        for _ in range(megabytes):
            entry.write(bytes(MB))
    return buffer.getvalue()


def test_each_file_stands_under_its_name(make: ModuleType) -> None:
    data = make.zipped(
        {
            "docs/a.md": b"# A\n\ntext",
            "ö.txt": "Grüße".encode("cp1252"),
            "../../x.csv": b"a;b\n1;2",
            "bad.pdf": b"%PDF-1.4 broken",
            "pic.png": b"\x89PNG\r\n\x1a\n" + bytes(80),
            "empty.txt": b"",
            "docs/.DS_Store": bytes(10),
            "deep.zip": make.zipped({"in.txt": b"inner"}),
        }
    )
    document = read_bytes(data, "all.zip")
    assert document.text == (
        "## File: docs/a.md\n\n# A\n\ntext\n\n## File: ö.txt\n\nGrüße\n\n"
        "## File: ../../x.csv\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"
        "## File: deep.zip\n\n## File: in.txt\n\ninner"
    )
    notes = document.report.notes
    assert [note.split()[2] for note in notes] == ["bad.pdf", "pic.png", "empty.txt"]
    assert "no PDF reader opens it" in notes[0]
    assert document.report.converter == "zip"


def test_an_entry_too_large_does_not_fail_the_rest(make: ModuleType) -> None:
    buffer = io.BytesIO(zeros(3))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("good.txt", "good")
    document = read_bytes(buffer.getvalue(), "x.zip")
    assert document.text == "## File: good.txt\n\ngood"
    assert document.report.notes[0].startswith("Not read: zeros.txt unpacks to ")
    assert document.report.notes[0].endswith("times its size, over the limit of 200 (limits.ratio).")


def test_limits_are_named(make: ModuleType) -> None:
    def why(data: bytes, name: str = "x.zip", **limits: int) -> str:
        with pytest.raises(DocumentError) as caught:
            read_bytes(data, name, limits=Limits(**limits))
        return str(caught.value)

    ten = make.zipped({f"{n}.txt": b"words " * 100 for n in range(10)}, compression=zipfile.ZIP_STORED)
    assert "over the limit of 0.0 MB (limits.entry_bytes)" in why(ten, entry_bytes=100)
    assert "(limits.unpacked_bytes)" in why(ten, unpacked_bytes=100)
    partial = read_bytes(ten, "x.zip", limits=Limits(entries=4))
    assert partial.text.count("## File:") == 4
    assert partial.report.notes == ("Stopped after 4 files (limits.entries); the rest was not read.",)
    nested = b"end"
    for level in range(12):
        nested = make.zipped({f"{level}.zip" if level else "end.txt": nested})
    assert "is an archive 3 levels down; no more are opened (limits.depth)" in why(nested)
    locked = bytearray(make.zipped({"a.txt": b"secret"}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1
    assert "a.txt is protected by a password" in why(bytes(locked))
    assert "it holds no files" in why(make.zipped({}))


def test_many_tiny_files_stop_at_the_limit(make: ModuleType) -> None:
    data = make.zipped({f"{n}.txt": b"x" for n in range(6_000)}, compression=zipfile.ZIP_STORED)
    document = read_bytes(data, "x.zip")
    assert document.text.count("## File:") == 5_000
    assert "Stopped after 5,000 files" in document.report.notes[0]


BOMB = """
import io, resource, sys, time, zipfile
from ragnar_core.documents import read_bytes
from ragnar_core.errors import DocumentError
data = open(sys.argv[1], "rb").read()
began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_bytes(data, sys.argv[2])
except DocumentError as error:
    print(error)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(time.process_time() - began, grown / 1024)
"""


def nested_bomb() -> bytes:
    """As the well-known 42 KB file: six levels of sixteen archives, gigabytes in each of the innermost."""
    level = zeros(40)
    for _ in range(5):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(16):
                archive.writestr(f"lib {number}.zip", level)
        level = buffer.getvalue()
    return level


def office_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as entry:
            for _ in range(500):
                entry.write(b" " * MB)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "build"),
    [("42.zip", nested_bomb), ("one.zip", lambda: zeros(1_000)), ("bomb.docx", office_bomb)],
)
def test_bombs_are_refused_small(tmp_path: object, name: str, build: object) -> None:
    path = f"{tmp_path}/{name}"
    with open(path, "wb") as file:
        file.write(build())  # type: ignore[operator]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BOMB), path, name], capture_output=True, text=True, check=True
    )
    message, figures = done.stdout.strip().splitlines()
    megabytes = float(figures.split()[1])
    assert "limits." in message
    assert megabytes < 200


def test_a_lying_size_is_not_believed_beyond_what_it_says(make: ModuleType) -> None:
    honest = make.zipped({"a.txt": bytes(5 * MB)})
    lying = honest.replace((5 * MB).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DocumentError, match=r"a\.txt is damaged"):
        read_bytes(lying, "x.zip")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_book_is_read_in_its_order(make: ModuleType) -> None:
    data = make.epub(
        {"one.xhtml": "<h1>One</h1><p>first</p>", "two.xhtml": "<nav>toc</nav><h1>Two</h1>"}, title="Bk"
    )
    document = read_bytes(data, "b.epub")
    assert document.text == "# Bk\n\n**Title:** Bk\n**Authors:** An Author\n\n# One\n\nfirst\n\n# Two"
    assert (document.report.title, document.report.converter) == ("Bk", "markitdown (epub)")
    locked = io.BytesIO(data)
    with zipfile.ZipFile(locked, "a") as archive:
        archive.writestr("META-INF/encryption.xml", "<e><CipherReference URI='OPS/one.xhtml'/></e>")
    with pytest.raises(DocumentError, match=r"b\.epub is protected against copying"):
        read_bytes(locked.getvalue(), "b.epub")
    with pytest.raises(DocumentError, match=r"b\.epub is damaged"):
        read_bytes(make.zipped({"META-INF/container.xml": b"<x/>", "a.opf": b"y"}), "b.epub")
