"""Compare: one query, VSS beside BM25, and where each passage stands in the other list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.shared import compare_filter, compare_panels, compare_settings, results, workspace
from pages.shared.compare_settings import MODES, SIDES, differs, note, settings_for
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import RagnarError, Store

through_navigation()
header("Compare", "One question, two ways of searching. Lines join the same passage in both lists.")
compare_settings.mend_address()
store = workspace.current_store()
compare_panels.warm(str(store.location), store)
METHODS, SIDES_VIEW = "Methods", "A / B"


@st.fragment
def board() -> None:
    if compare_panels.wants_other_store():
        st.rerun()
    query = st.text_input(
        "Query",
        key="q",
        type="search",
        live="250ms",
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
        placeholder="Ask a question or type words ( / )",
    )
    query = (query or "").strip()
    columns: list[results.Column] = []
    two = _controls(query, columns)
    with workspace.page_errors():
        columns += _ab(query) if two else _methods(query)
    lists = st.container()
    if not query:
        with lists:
            compare_panels.invitation(workspace.current_name() == workspace.SAMPLE)
            results.show([], query="", key="board", store=workspace.current_name(), focus="q")
        return
    compare_panels.remember(query)
    with st.container(border=True, gap="xsmall"):
        origin, chunk = compare_panels.missing_passage(store)
        absences = compare_panels.absences(store, columns, origin, chunk)
    with lists, workspace.page_errors():
        results.show(
            columns,
            query=query,
            key="board",
            store=workspace.current_name(),
            figures=True,
            lost=absences,
            focus="q",
        )
    copy_as_python(compare_panels.as_python(columns, query))


def _controls(query: str, columns: list[results.Column]) -> bool:
    """The row under the query; returns whether two sides are compared."""
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    with row, st.container(horizontal=True, vertical_alignment="center", gap="medium", width="content"):
        view = st.segmented_control(
            "Compare",
            [METHODS, SIDES_VIEW],
            default=METHODS,
            required=True,
            key="view",
            bind="query-params",
            persist_state="session",
            label_visibility="collapsed",
            help="Two methods, or two stores or settings of your choice.",
        )
        two = view == SIDES_VIEW
        if not two:
            st.toggle(
                "Hybrid",
                key="hybrid",
                bind="query-params",
                persist_state="session",
                help="A third list between the two: both fused.",
            )
    with row, st.container(horizontal=True, gap="xsmall", width="content"):
        if not two:
            _popovers(store, "")
        compare_panels.queries(query)
        compare_panels.export(query, columns)
    if two:
        _sides()
    return two


def _popovers(of: Store, side: str) -> None:
    count = len(compare_settings.changed(side))
    with st.popover(
        f"Settings · {count}" if count else "Settings",
        icon=":material/tune:",
        key=f"{side}settings",
    ):
        compare_settings.draw(side, can_merge=of.version >= 2)
    with st.popover(
        "Filter · on" if differs("filter", side) else "Filter",
        icon=":material/filter_alt:",
        key=f"{side}filters",
    ):
        compare_filter.draw(of, side)


def _sides() -> None:
    grid = st.grid(2, min_column_width=280, border=True, gap="medium")
    for side, letter in zip(SIDES, "AB", strict=True):
        with grid.cell():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _what(side, letter)
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                with workspace.page_errors():
                    of = _store_of(side)
                _popovers(of, side)
                if side:
                    st.button(
                        "Same as A",
                        on_click=compare_settings.copy_side,
                        args=SIDES,
                        icon=":material/content_copy:",
                        help="Give B the settings and the filter of A.",
                    )


def _what(side: str, letter: str) -> None:
    """Which store and which method."""
    st.markdown(f"**{letter}**", width="content")
    here = workspace.current_name()
    names = ["", *(name for name in workspace.store_names() if name != here)] if side else [here]
    st.selectbox(
        "Store of " + letter,
        names,
        key=f"{side}store" if side else "a_store",
        width="stretch",
        bind="query-params" if side else None,
        persist_state="session" if side else None,
        disabled=not side,
        label_visibility="collapsed",
        format_func=lambda one: one or here,
    )
    st.selectbox(
        "Method of " + letter,
        list(MODES),
        key=f"{side}mode",
        index=1 if side else 2,
        width=150,
        format_func=MODES.__getitem__,
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )


def _store_of(side: str) -> Store:
    name = st.session_state.get("b_store") if side else ""
    return workspace.stores().get(name) if name else store


def _methods(query: str) -> list[results.Column]:
    modes = ("vss", "hybrid", "bm25") if st.session_state.get("hybrid") else ("vss", "bm25")
    name = workspace.current_name()

    def search(mode: str) -> results.Column | None:
        settings = settings_for(mode)
        return results.column(store, query, settings, name=name, note=note(settings)) if query else None

    return _found({results.TITLES[mode]: partial(search, mode) for mode in modes})


def _ab(query: str) -> list[results.Column]:
    def search(side: str, title: str) -> results.Column | None:
        settings = settings_for(st.session_state[f"{side}mode"], side)
        name = (st.session_state.get("b_store") if side else "") or workspace.current_name()
        said = " · ".join(filter(None, (name, note(settings))))
        tone = title[0].lower()
        of = _store_of(side)
        return (
            results.column(of, query, settings, name=name, title=title, tone=tone, note=said)
            if query
            else None
        )

    titles = {
        f"{letter} · {results.TITLES[st.session_state[f'{side}mode']]}": side
        for side, letter in zip(SIDES, "AB", strict=True)
    }
    return _found({title: partial(search, side, title) for title, side in titles.items()})


def _found(searches: dict[str, Callable[[], results.Column | None]]) -> list[results.Column]:
    """The lists by their titles. One that cannot be is told and leaves the others; without any the page stops here."""
    columns: list[results.Column | None] = []
    problems: dict[str, list[str]] = {}
    for title, search in searches.items():
        try:
            columns.append(search())
        except RagnarError as error:
            problems.setdefault(str(error), []).append(title)
    for problem, titles in problems.items():
        st.error(plain(f"{', '.join(titles)}: {problem}"), icon=":material/error:")
    if not columns:
        st.stop()
    return [one for one in columns if one is not None]


board()
