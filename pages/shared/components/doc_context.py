"""A chunk inside its document: the text around it with its neighbours, and a strip of the whole document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_doc_context",
    html='<canvas class="strip" role="img" aria-label="Where the chunk is in its document"></canvas>'
    '<div class="legend"></div><div class="page" tabindex="0" role="region" aria-label="The chunk in its document"></div>\n',
    css=(_HERE / "doc_context.css").read_text("utf-8"),
    js=(_HERE / "doc_context.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Window:
    """A stretch of a document and the chunks that touch it.

    `text` begins at character `offset` of a document of `length` characters. `chunks` are [id, start, end] in
    UTF-16 units of `text` (they may begin before it or end behind it). `spans` are [id, start, end] of all chunks of the
    document in its characters.
    """

    text: str
    offset: int
    length: int
    chunks: list[list[int]]
    spans: list[list[int]]


def doc_context(window: Window, *, chosen: int, key: str, choose: Callable[[int], None]) -> None:
    """Draw the window with the chunk id `chosen` in front; `choose(id)` is called when another chunk is picked."""

    def on_choice() -> None:
        picked = st.session_state[key].get("chosen")
        if picked is not None:
            choose(int(picked))

    _component(key=key, data={**asdict(window), "chosen": chosen}, on_chosen_change=on_choice)
