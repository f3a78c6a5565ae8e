"""Ranked result lists side by side, with lines between the places of the same passage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_rank_compare",
    html='<div class="board"></div>\n',
    css=(_HERE / "rank_compare.css").read_text("utf-8"),
    js=(_HERE / "rank_compare.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Hit:
    """One result card. `marks` and `text_marks` are UTF-16 ranges; `why` are titled lines and tables."""

    id: int
    origin: str
    score: str
    context: str
    snippet: str
    marks: list[list[int]]
    text: str
    text_marks: list[list[int]]
    facts: str
    why: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Column:
    """One ranked list. `tone` is vss, bm25, hybrid, a or b; `empty` says why there is nothing."""

    title: str
    metric: str
    tone: str
    hits: list[Hit]
    empty: str = "No results."


def rank_compare(columns: list[Column], *, query: str, key: str) -> dict[str, Any] | None:
    """Draw the lists; returns what the person asked for in this run, `{"inspect": chunk_id}`, or None."""
    data = {"query": query, "columns": [_column(column) for column in columns]}
    return _component(key=key, data=data, on_action_change=lambda: None).action


def _column(column: Column) -> dict[str, Any]:
    record = asdict(column)
    for hit in record["hits"]:
        hit["textMarks"] = hit.pop("text_marks")
    return record
