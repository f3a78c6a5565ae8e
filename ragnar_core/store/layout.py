"""Where the kinds of stores keep what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Where a store keeps what, as SQL. `kind` is "ragnar" or "raghilda"; raghilda's stores are read only.

    `table` is that of chunks; `start` and `end` are columns as stored.
    """

    kind: str
    version: int
    table: str
    doc_id: str
    start: str
    end: str
    chunk_sequence: str
    doc_sequence: str | None
