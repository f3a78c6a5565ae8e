"""Ranked result lists side by side, with lines between the places of the same passage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_rank_compare",
    html="""
<div class="frame"><div class="strip"></div><div class="tabs"></div><div class="board"></div><p class="hint"></p></div>
""",
    css=(_HERE / "rank_compare.css").read_text("utf-8"),
    js=(_HERE / "rank_compare.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Badge:
    """Where a passage stands in a neighbouring list. `kind` is up, down, same or only."""

    kind: str
    text: str
    says: str


@dataclass(frozen=True)
class Hit:
    """One result card. `marks` are UTF-16 ranges of `snippet`; `share` fills the score's bar, 0 to 1."""

    id: int
    rank: str
    origin: str
    score: str
    share: float | None
    context: str
    snippet: str
    marks: list[list[int]]
    badges: list[Badge] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class Board:
    """What one column shows. `tone` is vss, bm25, hybrid, union, a or b; `empty` says why there is nothing.

    `lost` is a passage that somebody asked for, below the list, with the reason why it is not in it.
    """

    title: str
    metric: str
    tone: str
    note: str
    hits: list[Hit]
    lost: Hit | None
    empty: str


@dataclass(frozen=True)
class Figure:
    label: str
    value: str
    says: str


@dataclass(frozen=True)
class Part:
    """A titled piece of an explanation: lines, and a table whose last column has bars and a total."""

    title: str
    lines: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    bars: list[float] = field(default_factory=list)
    total: list[str] = field(default_factory=list)
    sentences: bool = False


@dataclass(frozen=True)
class Opened:
    """The open card: the whole passage with its marks (UTF-16), and the explanation.

    `sentences` are [from, to, similarity], nearest first; None until somebody asks for them.
    """

    card: str
    text: str
    marks: list[list[int]]
    facts: str
    parts: list[Part]
    sentences: list[list[float]] | None


def asked(key: str, query: str, what: str = "open") -> str | None:
    """The card ("column:chunk") that is open, or whose `what` is asked for, under this query."""
    wish = (st.session_state.get(key) or {}).get(what)
    return wish["card"] if wish and wish["query"] == query else None


def rank_compare(
    boards: list[Board],
    *,
    query: str,
    key: str,
    links: list[list[list[int]]],
    figures: list[Figure] = (),  # type: ignore[assignment]
    split: tuple[int, int, int] | None = None,
    opened: Opened | None = None,
    focus: str = "",
) -> dict[str, Any] | None:
    """Draw the lists; returns what the person asked for in this run, `{"inspect": chunk_id}`, or None.

    `links` has, for each two neighbouring columns, pairs of chunk ids; `split` is (only left, both, only
    right). `focus` is the key of the text box that "/" goes to.
    """
    data = {
        "query": query,
        "columns": [asdict(board) for board in boards],
        "links": links,
        "figures": [asdict(figure) for figure in figures],
        "split": split,
        "opened": asdict(opened) if opened else None,
        "focus": focus,
    }
    nothing = dict.fromkeys(("action", "open", "sentences"), lambda: None)
    callbacks = {f"on_{name}_change": does for name, does in nothing.items()}
    return _component(key=key, data=data, **callbacks).action
