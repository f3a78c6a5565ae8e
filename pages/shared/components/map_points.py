"""Points in the plane: move, zoom, hover, click, lasso. The points are one message, what lies on them another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

_HERE = Path(__file__).parent
_points = st.components.v2.component(
    "ragnar_map_points",
    html='<div class="map"><canvas tabindex="0" role="application"></canvas><div class="tools"></div>'
    '<div class="tip" hidden></div><div class="said" aria-live="polite"></div></div><div class="legend"></div>\n',
    css=(_HERE / "map_points.css").read_text("utf-8"),
    js=(_HERE / "map_points.js").read_text("utf-8"),
)
_overlay = st.components.v2.component(
    "ragnar_map_overlay",
    js='const name = "ragnar-map-overlay";\nexport default function ({ data }) {\n'
    "  window.ragnarMapOverlay = data;\n  dispatchEvent(new CustomEvent(name));\n}\n",
)


@dataclass(frozen=True)
class Overlay:
    """What lies on a map: the query's place, its hits (rows, best first), picked rows, the row in front, and texts to
    show on hover, row -> [origin, passage]."""

    star: list[float] | None = None
    hits: list[int] = field(default_factory=list)
    picked: list[int] = field(default_factory=list)
    front: int | None = None
    texts: dict[str, list[str]] = field(default_factory=dict)


def packed(header: dict[str, Any], xy: NDArray[np.float32], code: NDArray[np.uint8]) -> bytes:
    """One message for the browser: length of the header (uint32), the header as JSON, xy float32, code uint8."""
    text = json.dumps({**header, "n": len(xy)}).encode()
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + xy.astype("<f4").tobytes() + code.tobytes()


def map_points(
    message: bytes, *, key: str, pick: Callable[[list[int]], None], hover: Callable[[int], None]
) -> None:
    """Draw a map. `pick(rows)` is called for a click or lasso, `hover(row)` when a row's text is wanted."""

    def on_pick() -> None:
        rows = st.session_state[key].get("picked")
        if rows is not None:
            pick([int(row) for row in rows])

    def on_hover() -> None:
        row = st.session_state[key].get("hovered")
        if row is not None:
            hover(int(row))

    _points(key=key, data=message, on_picked_change=on_pick, on_hovered_change=on_hover)


def map_overlay(overlay: Overlay, *, key: str) -> None:
    """Lay something on the page's map; draws nothing in its own place."""
    _overlay(key=key, data=asdict(overlay), height=1)
