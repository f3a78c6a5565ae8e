"""Documents that were read and wait to be chunked: a folder of small files, so that a reload loses nothing."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragnar_core.documents.document import MarkdownDocument, ReadReport
from ragnar_core.errors import DocumentError


@dataclass(frozen=True)
class ShelfEntry:
    """One document on the shelf: its text, where it came from, how it was read, and when (ISO 8601, UTC)."""

    document: MarkdownDocument
    added: str

    @property
    def origin(self) -> str:
        return self.document.origin or ""


class Shelf:
    """Documents by origin, kept in `folder` (one JSON file each) and in memory. Safe to use from several threads.

    A document with the origin of another replaces it. Files that cannot be read back are named in `.problems`
    and left where they are.
    """

    def __init__(self, folder: str | Path) -> None:
        if not isinstance(folder, str | Path) or not str(folder).strip():
            raise DocumentError(f"A shelf needs a folder to keep its documents in, not {folder!r}.")
        self.folder = Path(folder)
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self._entries: dict[str, ShelfEntry] = {}
        self._load()

    def add(self, document: MarkdownDocument, original: bytes | None = None) -> bool:
        """Keep a document; True when it took the place of one with the same origin.

        `original` are the bytes it was read from, kept beside it so that it can be read again in another way.

        Raises DocumentError for a document without an origin.
        """
        if not document.origin:
            raise DocumentError("A document needs an origin (a name, path or URL) before it can be kept.")
        entry = ShelfEntry(document, datetime.now(UTC).isoformat(timespec="seconds"))
        self._write(entry)
        if original is None:
            self._original(document.origin).unlink(missing_ok=True)
        else:
            write_whole(self._original(document.origin), original)
        with self._lock:
            replaced = self._entries.pop(document.origin, None) is not None
            self._entries[document.origin] = entry
        return replaced

    def remove(self, origin: str) -> None:
        with self._lock:
            self._entries.pop(origin, None)
        self._file(origin).unlink(missing_ok=True)
        self._original(origin).unlink(missing_ok=True)

    def original(self, origin: str) -> bytes | None:
        """The bytes a document was read from, where they were kept."""
        try:
            return self._original(origin).read_bytes()
        except FileNotFoundError:
            return None

    def entries(self) -> list[ShelfEntry]:
        """All entries, oldest first."""
        with self._lock:
            return list(self._entries.values())

    def get(self, origin: str) -> MarkdownDocument | None:
        with self._lock:
            entry = self._entries.get(origin)
        return entry.document if entry else None

    def __len__(self) -> int:
        return len(self._entries)

    def _file(self, origin: str) -> Path:
        return self.folder / (hashlib.sha256(origin.encode()).hexdigest()[:32] + ".json")

    def _original(self, origin: str) -> Path:
        return self._file(origin).with_suffix(".original")

    def _write(self, entry: ShelfEntry) -> None:
        document = entry.document
        record = {
            "origin": document.origin,
            "text": document.text,
            "report": document.report.to_dict() if document.report else None,
            "added": entry.added,
        }
        write_whole(self._file(entry.origin), json.dumps(record, ensure_ascii=False).encode())

    def _load(self) -> None:
        if not self.folder.is_dir():
            return
        entries = []
        for path in self.folder.glob("*.json"):
            try:
                entries.append(_entry(json.loads(path.read_text("utf-8"))))
            except (OSError, ValueError, KeyError, TypeError, DocumentError) as error:
                self.problems.append(
                    f"{path.name} could not be read back ({error}); it was left where it is."
                )
        for entry in sorted(entries, key=lambda entry: (entry.added, entry.origin)):
            self._entries[entry.origin] = entry


def _entry(record: dict[str, Any]) -> ShelfEntry:
    report = ReadReport.from_dict(record["report"]) if record["report"] else None
    return ShelfEntry(
        MarkdownDocument(record["text"], origin=record["origin"], report=report), record["added"]
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; its folder is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)
