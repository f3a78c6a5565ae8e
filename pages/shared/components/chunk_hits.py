"""Best passages of one document for a query, side by side for two ways of chunking; a click shows one in the text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_chunk_hits",
    html='<div class="hits"></div>\n',
    css=(_HERE / "chunk_hits.css").read_text("utf-8"),
    js=(_HERE / "chunk_hits.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Passage:
    """One result. `at` is where its first match (or it) starts, in code points; `marks` are UTF-16 ranges of `text`."""

    chunk: int
    at: int
    score: str
    facts: str
    text: str
    marks: list[list[int]]


@dataclass(frozen=True)
class Results:
    """What one method finds with one way of chunking. `side` is "a" or "b"; `empty` says why there is nothing."""

    side: str
    method: str
    note: str
    passages: list[Passage]
    empty: str = ""


def chunk_hits(results: list[Results], *, document_id: str, columns: int, key: str) -> None:
    """Draw the results in so many columns, in reading order."""
    _component(
        key=key, data={"id": document_id, "columns": columns, "results": [asdict(one) for one in results]}
    )
