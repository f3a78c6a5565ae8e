"""The settings that the Chunking page tunes: one or two ways of chunking, kept in the session and in the URL."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.shared import workspace
from ragnar_core import ChunkSettings, RagnarError

PRESETS: dict[str, ChunkSettings] = {
    "Balanced": ChunkSettings.workbench(),
    "FAQ": ChunkSettings.workbench(target_size=600, target_overlap=0.0, segment_by_heading_levels=(1, 2, 3)),
    "Long manual": ChunkSettings.workbench(target_overlap=0.25, segment_by_heading_levels=(1,)),
    "Code docs": ChunkSettings.workbench(target_size=1200, target_overlap=0.25, max_snap_dist=400),
    "Often edited": ChunkSettings.workbench(target_size=1200, target_overlap=0.25, strategy="anchored"),
    "300 tokens": ChunkSettings.workbench(target_size=300, target_overlap=0.25, unit="tokens"),
    "As ragnar": ChunkSettings(),
}

MOST_CHUNKS = 50_000
"""Chunks of one document that the page draws."""

_KEY = "chunking_sides"
_SEEN = "chunking_url"


@dataclass(frozen=True)
class Sides:
    """What is tuned: settings A, perhaps settings B beside them, and which of the two the controls change.

    `seq` counts the changes made in the browser, so that it can tell an old answer from a new one.
    """

    a: ChunkSettings
    b: ChunkSettings | None = None
    edit: str = "a"
    seq: int = 0

    @property
    def edited(self) -> ChunkSettings:
        return self.b if self.edit == "b" and self.b is not None else self.a

    def to_dict(self) -> dict[str, Any]:
        b = self.b.to_dict() if self.b else None
        return {"a": self.a.to_dict(), "b": b, "edit": self.edit, "seq": self.seq}

    @classmethod
    def from_dict(cls, wish: Mapping[str, Any]) -> Sides:
        """The sides a browser asked for. Raises ChunkError where a setting is out of range."""
        b = ChunkSettings.from_dict(_plain(wish["b"])) if wish.get("b") else None
        edit = "b" if wish.get("edit") == "b" and b else "a"
        return cls(ChunkSettings.from_dict(_plain(wish["a"])), b, edit, int(wish.get("seq", 0)))


def current_sides() -> Sides:
    """The sides of this session: what a changed URL says, else what was tuned last, else what Build uses."""
    asked = {name: value for name, value in st.query_params.items() if name in _ALL_NAMES}
    if asked and asked != st.session_state.get(_SEEN):
        st.session_state[_SEEN] = asked
        seq = st.session_state[_KEY].seq + 1 if _KEY in st.session_state else 0
        st.session_state[_KEY] = replace(sides_from_url(asked), seq=seq)
    if _KEY not in st.session_state:
        st.session_state[_KEY] = Sides(workspace.chunk_settings() or ChunkSettings.workbench())
    return st.session_state[_KEY]


def keep_sides(sides: Sides) -> None:
    """Remember the sides, and say them in the URL."""
    st.session_state[_KEY] = sides
    shown = sides_as_url(sides)
    for name in _ALL_NAMES & set(st.query_params) - set(shown):
        del st.query_params[name]
    if any(st.query_params.get(name) != value for name, value in shown.items()):
        st.query_params.update(shown)
    st.session_state[_SEEN] = shown


def fitted(sides: Sides, characters: int) -> tuple[Sides, str | None]:
    """The sides with sizes large enough for a document of that length, and a sentence if one had to grow."""
    a, b = _fitted(sides.a, characters), _fitted(sides.b, characters) if sides.b else None
    if (a, b) == (sides.a, sides.b):
        return sides, None
    grown = a if a != sides.a else b
    said = (
        f"This document would fall into more than {MOST_CHUNKS:,} chunks, too many to draw: "
        f"the size was raised to {grown.target_size:,} {grown.unit}."
    )
    return replace(sides, a=a, b=b), said


def _fitted(settings: ChunkSettings, characters: int) -> ChunkSettings:
    if settings.target_size is None:
        return settings
    units = characters / (4 if settings.unit == "tokens" else 1)
    least = math.ceil(units / MOST_CHUNKS / (1 - settings.target_overlap))
    return replace(settings, target_size=least) if settings.target_size < least else settings


def sides_as_url(sides: Sides) -> dict[str, str]:
    """Query parameters: size and overlap always, the rest where it differs from the start; B's with `b_`."""
    shown = _settings_as_url(sides.a)
    if sides.b:
        shown |= {f"b_{name}": value for name, value in _settings_as_url(sides.b).items()}
    return shown


def sides_from_url(asked: Mapping[str, str]) -> Sides:
    """The sides that query parameters describe. What cannot be understood is left as it would be without."""
    a = {name: value for name, value in asked.items() if name in _PARAMETERS}
    b = {name[2:]: value for name, value in asked.items() if name.startswith("b_")}
    return Sides(_settings_from_url(a), _settings_from_url(b) if b else None)


def _settings_as_url(settings: ChunkSettings) -> dict[str, str]:
    start, shown = ChunkSettings.workbench(), {}
    for name, (field, write, _) in _PARAMETERS.items():
        value = getattr(settings, field)
        if name in ("size", "overlap") or value != getattr(start, field):
            shown[name] = write(value)
    return shown


def _settings_from_url(asked: Mapping[str, str]) -> ChunkSettings:
    settings = ChunkSettings.workbench()
    for name, text in asked.items():
        field, _, read = _PARAMETERS[name]
        try:
            settings = replace(settings, **{field: read(text)})
        except (ValueError, RagnarError):
            continue
    return settings


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**values, "segment_by_heading_levels": tuple(values.get("segment_by_heading_levels") or ())}


def _number(value: float) -> str:
    return f"{value:g}"


def _flag(text: str) -> bool:
    return text not in ("0", "false", "no")


_Parameter = tuple[str, Callable[[Any], str], Callable[[str], Any]]
_PARAMETERS: dict[str, _Parameter] = {
    "size": (
        "target_size",
        lambda size: "all" if size is None else str(size),
        lambda text: None if text == "all" else int(text),
    ),
    "overlap": ("target_overlap", lambda part: _number(round(100 * part, 4)), lambda text: float(text) / 100),
    "snap": (
        "max_snap_dist",
        lambda distance: "auto" if distance is None else _number(distance),
        lambda text: None if text == "auto" else float(text),
    ),
    "levels": (
        "segment_by_heading_levels",
        lambda levels: "-".join(map(str, levels)),
        lambda text: tuple(int(level) for level in text.split("-") if level),
    ),
    "strategy": ("strategy", str, str),
    "unit": ("unit", str, str),
    "context": ("context", lambda on: str(int(on)), _flag),
    "table_header": ("table_context", lambda on: str(int(on)), _flag),
    "whole": ("keep_whole", lambda on: str(int(on)), _flag),
}
_ALL_NAMES = {*_PARAMETERS, *(f"b_{name}" for name in _PARAMETERS)}
