"""A list of passages to choose from with pointer or keyboard, a page at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_passage_list",
    html='<div class="bar"></div><div class="list" role="listbox" tabindex="0" aria-label="Passages"></div>\n',
    css=(_HERE / "passage_list.css").read_text("utf-8"),
    js=(_HERE / "passage_list.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Row:
    """One passage. `marks` are UTF-16 ranges of `text`; rows of one `group` stand under one heading."""

    id: int
    origin: str
    score: str
    text: str
    marks: list[list[int]] = field(default_factory=list)
    group: str = ""
    note: str = ""


def passage_list(
    rows: list[Row],
    *,
    chosen: int | None,
    key: str,
    empty: str,
    choose: Callable[[int], None],
    summary: str = "",
    earlier: bool = False,
    later: bool = False,
    turn: Callable[[int], None] | None = None,
    search_key: str = "",
    rank: int = 1,
    compact: bool = False,
    label: str = "Passages",
    address: dict[str, str] | None = None,
) -> None:
    """Draw the list with the chunk id `chosen` marked.

    `choose(id)` is called before the next run when the person picks another passage, `turn(-1 or 1)` when they leaf
    (`earlier`, `later`: whether there is somewhere to leaf to). With `search_key`, the key of the search box, the list
    listens to the whole page: `/` goes to the box, Escape empties it, arrows, j and k move. `rank` numbers the first
    row; 0 shows no numbers. `address` are parameters that the browser writes into the page's URL, or takes out where
    empty: `st.query_params`, written in a run, would undo what a widget bound to the URL has put there since.
    """

    def on_choice() -> None:
        picked = st.session_state[key].get("chosen")
        if picked is not None:
            st.session_state[f"{key}_seq"] = picked["seq"]
            choose(int(picked["id"]))

    def on_turn() -> None:
        step = st.session_state[key].get("turned")
        if step is not None and turn is not None:
            turn(int(step))

    data = {
        "rows": [asdict(row) for row in rows],
        "chosen": chosen,
        "seq": st.session_state.get(f"{key}_seq", 0),
        "empty": empty,
        "summary": summary,
        "earlier": earlier,
        "later": later,
        "search": search_key,
        "rank": rank,
        "compact": compact,
        "label": label,
        "address": address or {},
    }
    _component(key=key, data=data, on_chosen_change=on_choice, on_turned_change=on_turn)
