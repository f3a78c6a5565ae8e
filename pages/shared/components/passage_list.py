"""A list of passages to choose from with pointer or keyboard."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_passage_list",
    html='<div class="list" role="listbox" tabindex="0" aria-label="Passages"></div>\n',
    css=(_HERE / "passage_list.css").read_text("utf-8"),
    js=(_HERE / "passage_list.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Row:
    """One passage. `marks` are UTF-16 ranges of `text`."""

    id: int
    origin: str
    score: str
    text: str
    marks: list[list[int]]


def passage_list(rows: list[Row], *, wanted: int | None, key: str, empty: str) -> int | None:
    """Draw the list and return the chosen chunk id: `wanted`, else the last choice while it is listed, else the first."""
    ids = [row.id for row in rows]
    if wanted in ids:
        st.session_state[f"{key}_last"] = wanted
    last = st.session_state.get(f"{key}_last")
    picked = st.session_state.get(key, {}).get("chosen")
    if wanted not in ids and picked in ids and picked != st.session_state.get(f"{key}_picked"):
        last = picked
    st.session_state[f"{key}_picked"] = picked
    chosen = last if last in ids else (ids[0] if ids else None)
    st.session_state[f"{key}_last"] = chosen
    data = {
        "rows": [asdict(row) for row in rows],
        "chosen": chosen,
        "empty": empty,
        "signature": str(hash((tuple(ids), tuple(row.text for row in rows), tuple(row.score for row in rows)))),
    }
    _component(key=key, data=data, on_chosen_change=lambda: None)
    return chosen
