"""Archives: what may be unpacked, and a ZIP's files read one after the other. Nothing is written to disk."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ragnar_core.documents.limits import MEGABYTE, Limits, megabytes
from ragnar_core.documents.read import Reading, Source, with_title
from ragnar_core.errors import DocumentError

UNPACKING_ERRORS = (
    zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error,
)  # fmt: skip
LOCKED_CHAPTER = re.compile(rb"""CipherReference[^>]*URI=["'][^"']*\.x?html?["']""", re.I)
NOT_READ_AT_ALL = (".DS_Store", "Thumbs.db")


@dataclass
class Budget:
    """What is left to unpack, shared by an archive and all archives in it."""

    unpacked: int
    entries: int


def check_bounds(source: Source, what: str) -> None:
    """Refuse an Office or EPUB file that unpacks to too much, before anything of it is unpacked.

    The sizes are those the file's directory states; zipfile never unpacks more than that.

    Raises:
        DocumentError: over a limit, damaged, or protected by a password.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            entries = archive.infolist()
    except UNPACKING_ERRORS as error:
        raise DocumentError(
            f"{source.origin} is damaged or no {what} file: {error}. Save it again, or try another copy."
        ) from None
    limits = source.options.limits
    total = sum(entry.file_size for entry in entries)
    if len(entries) > limits.entries:
        raise DocumentError(
            f"{source.origin} holds {len(entries):,} parts; more than {limits.entries:,} are not read "
            "(limits.entries)."
        )
    if total > limits.unpacked_bytes:
        raise DocumentError(
            f"{source.origin} unpacks to {megabytes(total)}; more than {megabytes(limits.unpacked_bytes)} "
            "is not read (limits.unpacked_bytes)."
        )
    for entry in entries:
        reason = entry_problem(entry, limits)
        if reason:
            raise DocumentError(f"{source.origin} is not read: its part {entry.filename} {reason}.")


def refuse_locked_book(source: Source) -> None:
    """Refuse an EPUB whose chapters are encrypted; fonts may be.

    Raises:
        DocumentError: it has digital rights management.
    """
    with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        if "META-INF/encryption.xml" not in archive.NameToInfo:
            return
        try:
            listed = archive.read("META-INF/encryption.xml")
        except UNPACKING_ERRORS:
            return
    if LOCKED_CHAPTER.search(listed):
        raise DocumentError(f"{source.origin} is protected against copying (DRM) and cannot be read.")


def entry_problem(entry: zipfile.ZipInfo, limits: Limits) -> str | None:
    """Why an entry must not be unpacked, as the end of a sentence; None when it may."""
    if entry.flag_bits & 1:
        return "is protected by a password"
    if entry.file_size > limits.entry_bytes:
        return (
            f"unpacks to {megabytes(entry.file_size)}, over the limit of {megabytes(limits.entry_bytes)} "
            "(limits.entry_bytes)"
        )
    if entry.file_size > MEGABYTE and entry.file_size > limits.ratio * max(1, entry.compress_size):
        return (
            f"unpacks to {entry.file_size // max(1, entry.compress_size):,} times its size, over the limit "
            f"of {limits.ratio} (limits.ratio)"
        )
    return None


def read_zip(source: Source, budget: Budget | None = None) -> Reading:
    """The files of a ZIP, each under a heading with its name; what could not be read is noted.

    Raises:
        DocumentError: the archive is damaged, or not one file in it could be read.
    """
    limits = source.options.limits
    budget = budget or Budget(limits.unpacked_bytes, limits.entries)
    parts: list[str] = []
    notes: list[str] = []
    try:
        archive = zipfile.ZipFile(io.BytesIO(source.data))
    except UNPACKING_ERRORS as error:
        raise DocumentError(f"{source.origin} is a damaged ZIP file: {error}.") from None
    with archive:
        for entry in archive.infolist():
            if entry.is_dir() or PurePosixPath(entry.filename).name in NOT_READ_AT_ALL:
                continue
            if budget.entries <= 0:
                notes.append(
                    f"Stopped after {limits.entries:,} files (limits.entries); the rest was not read."
                )
                break
            budget.entries -= 1
            try:
                parts.append(_entry_markdown(archive, entry, source, budget, notes))
            except DocumentError as error:
                notes.append(f"Not read: {error}")
    if not parts:
        reason = notes[0] if notes else "it holds no files"
        raise DocumentError(f"Nothing in {source.origin} could be read. {reason}")
    return Reading("\n\n".join(parts), "zip", notes=tuple(notes))


def _entry_markdown(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, source: Source, budget: Budget, notes: list[str]
) -> str:
    from ragnar_core.documents.readers import read_source
    from ragnar_core.documents.sniff import kind_of

    limits = source.options.limits
    name = entry.filename
    problem = entry_problem(entry, limits)
    if problem:
        raise DocumentError(f"{name} {problem}.")
    if entry.file_size > budget.unpacked:
        raise DocumentError(
            f"{name} would take the archive over {megabytes(limits.unpacked_bytes)} unpacked "
            "(limits.unpacked_bytes)."
        )
    budget.unpacked -= entry.file_size
    try:
        data = archive.read(entry)
    except UNPACKING_ERRORS as error:
        raise DocumentError(f"{name} is damaged: {error}.") from None
    inner = replace(
        source,
        data=data,
        name=PurePosixPath(name).name,
        origin=name,
        depth=source.depth + 1,
        content_type=None,
        url=None,
    )
    if data and kind_of(data, name) == "zip":
        if inner.depth >= limits.depth:
            raise DocumentError(
                f"{name} is an archive {inner.depth} levels down; no more are opened (limits.depth)."
            )
        reading = read_zip(inner, budget)
    else:
        reading = read_source(inner)
    notes.extend(f"{name}: {note}" for note in reading.notes)
    if reading.pages_without_text:
        notes.append(f"{name}: no text on {len(reading.pages_without_text)} of {reading.pages} pages.")
    return f"## File: {name}\n\n{with_title(reading.markdown, reading.title)}"
