"""What was asked before: this session's queries, and searches kept in a file for everybody here."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ragnar_core import RagnarError
from ragnar_core.documents.shelf import write_whole

KEPT = 200
RECENT = 12
_lock = threading.Lock()


def remember(history: list[str], query: str) -> list[str]:
    """The history, newest first, with this query; its own beginnings, left behind by typing, are not kept."""
    if not query:
        return history
    newest = history[0] if history else ""
    if newest.startswith(query):
        return history
    rest = history[1:] if newest and query.startswith(newest) else history
    return list(dict.fromkeys([query, *rest]))[:RECENT]


class SavedQueries:
    """Named searches in one JSON file: name -> the page's address as a dict."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> dict[str, dict[str, Any]]:
        """By name, newest first. Raises RagnarError where the file is no such list."""
        if not self.path.exists():
            return {}
        try:
            found = json.loads(self.path.read_text("utf-8"))
            return {str(name): dict(params) for name, params in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            raise RagnarError(
                f"The saved queries in {self.path} cannot be read; move that file away to start anew."
            ) from None

    def save(self, name: str, params: dict[str, Any]) -> None:
        """Keep a search under a name, in place of the one that has it."""
        with _lock:
            rest = {old: kept for old, kept in self.all().items() if old != name}
            self._write([(name, params), *rest.items()])

    def remove(self, name: str) -> None:
        with _lock:
            self._write([(old, kept) for old, kept in self.all().items() if old != name])

    def _write(self, items: Iterable[tuple[str, dict[str, Any]]]) -> None:
        kept = json.dumps(dict(list(items)[:KEPT]), ensure_ascii=False, indent=1)
        write_whole(self.path, kept.encode())
