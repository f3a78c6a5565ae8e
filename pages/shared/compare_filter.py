"""The filter: one text, which a form that knows the store's columns and values can write."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import streamlit as st

from pages.shared.compare_stamp import stamp
from pages.shared.shell import plain
from ragnar_core import FilterError, Store
from ragnar_core.retrieval import ColumnChoice, Filter, count_matching, filter_choices

OPERATORS = {
    "text": ("is one of", "is none of", "contains"),
    "integer": ("is at least", "is at most", "is"),
    "number": ("is at least", "is at most", "is"),
    "date": ("is at least", "is at most", "is"),
    "timestamp": ("is at least", "is at most"),
    "boolean": ("is",),
    "list": ("contains",),
}
CODES = {
    "is one of": "$in",
    "is none of": "$nin",
    "contains": "$contains",
    "is at least": "$gte",
    "is at most": "$lte",
    "is": "$eq",
}


def draw(store: Store, side: str = "") -> None:
    """The text, what it means and how many chunks pass; its conditions to take away; a form to add one."""
    key = f"{side}filter"
    st.text_input(
        "Filter",
        key=key,
        bind="query-params",
        persist_state="session",
        live="400ms",
        placeholder='category == "news" and year >= 2020',
        help=_HELP,
    )
    parsed = _meaning(store, st.session_state.get(key, ""))
    if parsed is not None and not parsed.is_empty:
        _conditions(parsed, key, side)
    _form(store, key, side)


_HELP = (
    "Name a column of the store, `origin`, `context` or `text`. Use `==`, `!=`, `<`, `<=`, `>`, `>=`, "
    '`in ["a", "b"]`, `not in`, `contains`, `is null`; join with `and`, `or`, `not` and brackets.'
)


def _meaning(store: Store, text: str) -> Filter | None:
    try:
        parsed = Filter.parse(text.strip() or None)
        if parsed.is_empty:
            st.caption("Everything passes.")
        else:
            passing = _passing(stamp(store), parsed.text(), store)
            st.caption(f"{passing:,} of {store.counts().chunks:,} chunks pass: {plain(parsed.sentence())}")
    except FilterError as error:
        st.caption(f":red[:material/error: {plain(str(error))}]")
        return None
    return parsed


@st.cache_data(show_spinner=False, max_entries=64)
def _passing(version: str, text: str, _store: Store) -> int:
    return count_matching(_store, text)


def _conditions(parsed: Filter, key: str, side: str) -> None:
    tree = parsed.to_dict()
    parts = tree["$and"] if list(tree) == ["$and"] else [tree]
    with st.container(horizontal=True, gap="xsmall"):
        for at, part in enumerate(parts):
            rest = parts[:at] + parts[at + 1 :]
            st.button(
                plain(_short(Filter.parse(part).sentence())),
                key=f"{side}drop_{at}",
                icon=":material/close:",
                on_click=_write,
                args=(key, rest),
                help="Take this condition away",
            )
        if len(parts) > 1:
            st.button("Clear", key=f"{side}drop_all", on_click=_write, args=(key, []), type="tertiary")


def _short(text: str, width: int = 60) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _write(key: str, parts: list[dict[str, Any]]) -> None:
    st.session_state[key] = Filter.parse({"$and": parts}).text() if parts else ""


@st.cache_data(show_spinner=False, max_entries=16)
def _choices(version: str, _store: Store) -> list[ColumnChoice]:
    return filter_choices(_store)


def _form(store: Store, key: str, side: str) -> None:
    choices = {choice.name: choice for choice in _choices(stamp(store), store)}
    grid = st.grid(3, min_column_width=130)
    with grid.cell():
        name = st.selectbox("Column", list(choices), key=f"{side}f_column")
    if name is None:
        return
    choice = choices[name]
    with grid.cell():
        operator = st.selectbox("Condition", OPERATORS[choice.kind], key=f"{side}f_operator_{choice.kind}")
    with grid.cell():
        value = _value(choice, operator, f"{side}f_value_{name}_{operator}")
    nothing = value is None or value == [] or value == ""
    st.button(
        "Add to the filter",
        key=f"{side}f_add",
        icon=":material/add:",
        disabled=nothing,
        on_click=_add,
        args=(key, name, CODES[operator], value),
    )


def _value(choice: ColumnChoice, operator: str, key: str) -> Any:
    counts = dict(choice.values)
    if operator in ("is one of", "is none of"):
        more = None if choice.complete else "The 50 most frequent values; type any other."
        return st.multiselect(
            "Values",
            list(counts),
            key=key,
            help=more,
            format_func=lambda one: f"{one} ({counts[one]:,})" if one in counts else str(one),
            accept_new_options=not choice.complete,
            placeholder="Choose values" if choice.complete else "Choose or type values",
        )
    if choice.kind == "list":
        return st.selectbox(
            "Value", list(counts), index=None, key=key, format_func=lambda one: f"{one} ({counts[one]:,})"
        )
    if operator == "contains":
        return st.text_input("Text", key=key)
    if choice.kind == "boolean":
        return st.selectbox(
            "Value", [True, False], key=key, format_func=lambda one: "true" if one else "false"
        )
    label = f"Value ({choice.minimum} to {choice.maximum})"
    if choice.kind == "integer":
        return st.number_input(label, value=None, step=1, key=key)
    if choice.kind == "number":
        return st.number_input(label, value=None, key=key, format="%g")
    if choice.kind == "date":
        low = choice.minimum if isinstance(choice.minimum, date) else None
        return st.date_input(label, value=low, min_value=date(1, 1, 1), max_value=date(9999, 12, 31), key=key)
    return st.text_input(label, key=key, placeholder="2024-01-31T12:00")


def _add(key: str, name: str, code: str, value: Any) -> None:
    if isinstance(value, date | datetime):
        value = value.isoformat()
    try:
        old = Filter.parse(st.session_state.get(key, "").strip() or None)
    except FilterError:
        old = Filter.parse(None)
    tree = old.to_dict()
    parts = [] if old.is_empty else tree["$and"] if list(tree) == ["$and"] else [tree]
    _write(key, [*parts, {name: {code: value}}])
