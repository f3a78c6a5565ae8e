"""Sizes and counts at which reading stops."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """How much one document may cost.

    Attributes:
        file_bytes: size of a file or a download.
        unpacked_bytes: unpacked size of all that is in an archive (with the archives in it) or Office file.
        entry_bytes: unpacked size of one entry.
        ratio: unpacked over packed size from which an entry of more than a megabyte counts as a bomb.
        entries: number of entries, over all levels.
        depth: archives in archives.
        pages: pages of a PDF.
    """

    file_bytes: int = 200 * MEGABYTE
    unpacked_bytes: int = 400 * MEGABYTE
    entry_bytes: int = 100 * MEGABYTE
    ratio: int = 200
    entries: int = 5_000
    depth: int = 3
    pages: int = 10_000

    def too_large(self, name: str, size: int) -> str:
        """The sentence for a file over `file_bytes`."""
        most = megabytes(self.file_bytes)
        return f"{name} has {megabytes(size)}; files of more than {most} are not read (limits.file_bytes)."


def megabytes(size: int) -> str:
    """A size for a person: "3.4 MB"."""
    return f"{size / MEGABYTE:,.1f} MB" if size < 10 * MEGABYTE else f"{size / MEGABYTE:,.0f} MB"
