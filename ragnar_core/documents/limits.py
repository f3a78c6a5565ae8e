"""Sizes and counts at which reading stops."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real

from ragnar_core.errors import DocumentError, RagnarError

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

    Raises:
        DocumentError: one is no whole number of 0 or more.
    """

    file_bytes: int = 200 * MEGABYTE
    unpacked_bytes: int = 400 * MEGABYTE
    entry_bytes: int = 100 * MEGABYTE
    ratio: int = 200
    entries: int = 5_000
    depth: int = 3
    pages: int = 10_000

    def __post_init__(self) -> None:
        for one in fields(self):
            check_number(one.name, getattr(self, one.name), 0, whole=True, error=DocumentError)

    def too_large(self, name: str, size: int) -> str:
        """The sentence for a file over `file_bytes`."""
        most = megabytes(self.file_bytes)
        return f"{name} has {megabytes(size)}; files of more than {most} are not read (limits.file_bytes)."


def check_number(
    name: str, value: object, least: int, *, whole: bool = False, error: type[RagnarError]
) -> None:
    """Raises `error` for a setting that is no number of `least` or more."""
    kind = Integral if whole else Real
    try:
        number = float(value) if isinstance(value, kind) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.nan
    if not number >= least:
        raise error(
            f"{name} must be a {'whole number' if whole else 'number'} of {least} or more, not {value!r}."
        )


def megabytes(size: int) -> str:
    """A size for a person: "3.4 MB"."""
    return f"{size / MEGABYTE:,.1f} MB" if size < 10 * MEGABYTE else f"{size / MEGABYTE:,.0f} MB"
