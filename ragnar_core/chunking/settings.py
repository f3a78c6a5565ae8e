"""The settings of the chunker: one value that travels from the page to the store's metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Self

from ragnar_core.errors import ChunkError

STRATEGIES = ("ragnar", "anchored")
UNITS = ("characters", "tokens")


@dataclass(frozen=True)
class ChunkSettings:
    """How a document is cut into chunks.

    The defaults are ragnar's and give ragnar's cuts; `ChunkSettings.workbench()` are the app's.

    Attributes:
        target_size: wanted length of a chunk in `unit`; None or infinity for one chunk a segment.
        target_overlap: part of the size that a chunk shares with the next, at least 0, less than 1.
        max_snap_dist: how far a cut may move to a boundary, in `unit`; None for a third of the stride,
            `target_size * (1 - target_overlap) / 3`. 0 or less moves no cut.
        segment_by_heading_levels: headings of these levels (1 to 6) start a segment, which no chunk crosses.
        context: whether the headings in force are given with each chunk.
        table_context: whether the header of a table is given with chunks that start inside the table.
        keep_whole: whether cuts in tables and code prefer the edges of the block, then rows, cells and lines,
            to sentences, and no cut is inside a grapheme cluster. ragnar does neither.
        strategy: "ragnar", or "anchored" for cuts that an edit elsewhere in the text does not move.
        unit: "characters" (code points), or "tokens" as counted by the `count_tokens` given to the chunker.

    Raises:
        ChunkError: a setting is out of range; the message says which and what is allowed.
    """

    target_size: int | float | None = 1600
    target_overlap: float = 0.5
    max_snap_dist: float | None = None
    segment_by_heading_levels: tuple[int, ...] = ()
    context: bool = True
    table_context: bool = False
    keep_whole: bool = False
    strategy: str = "ragnar"
    unit: str = "characters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_size", _whole_size(self.target_size))
        object.__setattr__(self, "target_overlap", _overlap(self.target_overlap, self.target_size))
        object.__setattr__(self, "max_snap_dist", _distance(self.max_snap_dist))
        object.__setattr__(self, "segment_by_heading_levels", _levels(self.segment_by_heading_levels))
        for name, allowed in (("strategy", STRATEGIES), ("unit", UNITS)):
            if getattr(self, name) not in allowed:
                raise ChunkError(f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}.")

    @classmethod
    def workbench(cls, **changes: Any) -> Self:
        """What the app starts with: ragnar's sizes, with rows, code lines and graphemes kept whole."""
        return replace(cls(table_context=True, keep_whole=True), **changes)

    @property
    def snap_distance(self) -> float:
        """The snap distance in force, in `unit`; infinite when the size is."""
        if self.max_snap_dist is not None:
            return self.max_snap_dist
        return math.inf if self.target_size is None else self.target_size * (1 - self.target_overlap) / 3

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (an infinite distance is written as "Inf")."""
        values = asdict(self)
        values["segment_by_heading_levels"] = list(self.segment_by_heading_levels)
        if self.max_snap_dist is not None and math.isinf(self.max_snap_dist):
            values["max_snap_dist"] = "Inf"
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The settings that `to_dict` described. Names it does not know are left out."""
        known = {f.name: values[f.name] for f in fields(cls) if f.name in values}
        if known.get("max_snap_dist") == "Inf":
            known["max_snap_dist"] = math.inf
        return cls(**known)

    def as_python(self) -> str:
        """The call that does the same, naming only what differs from the defaults.

        >>> ChunkSettings(target_size=800, segment_by_heading_levels=(1, 2)).as_python()
        'markdown_chunk(document, target_size=800, segment_by_heading_levels=(1, 2))'
        """
        arguments = ["document"]
        for f in fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                shown = 'float("inf")' if value == math.inf else repr(value)
                arguments.append(f"{f.name}={shown}")
        if self.unit == "tokens":
            arguments.append("count_tokens=embedder.count_tokens")
        return f"markdown_chunk({', '.join(arguments)})"


def _whole_size(size: Any) -> int | None:
    if size is None or size == math.inf:
        return None
    if not _is_number(size) or size < 1 or size != size // 1:
        raise ChunkError(
            f"target_size must be a whole number of at least 1, or None for no limit, not {size!r}."
        )
    return int(size)


def _overlap(overlap: Any, size: int | float | None) -> float:
    if not _is_number(overlap) or not 0 <= overlap <= 1:
        hint = f" It is a fraction of target_size={size}, not a length." if _is_number(overlap) else ""
        raise ChunkError(f"target_overlap must be at least 0 and less than 1, not {overlap!r}.{hint}")
    if overlap == 1:
        raise ChunkError(
            f"target_overlap=1 with target_size={size} leaves no stride: each chunk would start where the "
            "last one did. Choose an overlap below 1, such as 0.5."
        )
    return float(overlap)


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(float(value))
    except OverflowError:
        return False


def _distance(distance: Any) -> float | None:
    if distance is None:
        return None
    if not _is_number(distance):
        raise ChunkError(
            "max_snap_dist must be a number of characters (0 for no snapping, infinity for any distance), "
            f"or None for a third of the stride, not {distance!r}."
        )
    return float(distance)


def _levels(levels: Any) -> tuple[int, ...]:
    if isinstance(levels, Integral):
        levels = (levels,)
    try:
        listed = tuple(levels or ())
    except (TypeError, ValueError):
        listed = (None,)
    if any(isinstance(level, bool) or not isinstance(level, Integral) for level in listed):
        raise ChunkError(
            f"segment_by_heading_levels must be heading levels from 1 to 6, such as (1, 2), not {levels!r}."
        )
    return tuple(sorted({int(level) for level in listed}))
