"""The sidebar below the page list: which store is open, what it holds, and what is at work."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.shared import workspace
from pages.shared.jobs import manager
from pages.shared.shell import plain
from ragnar_core import RagnarError


def draw(page: Any) -> None:
    """`page`, as `st.navigation` gave it, is the one that this run shows."""
    st.session_state["page"], st.session_state["page_hash"] = page, _page_of_run()
    names = workspace.store_names()
    if (chosen := st.session_state.pop("open_next", None)) in names:
        st.session_state["store"] = chosen
    asked = st.query_params.get("store")
    with st.sidebar:
        st.selectbox("Store", names, key="store", bind="query-params", persist_state="session")
        if asked and asked not in names:
            st.warning(f"There is no store “{plain(asked)}” here.", icon=":material/warning:")
        _figures(workspace.current_name())
        _jobs()


def _figures(name: str) -> None:
    try:
        counts = workspace.stores().get(name).counts()
    except RagnarError as error:
        st.caption(plain(str(error)))
        return
    st.caption(f"{counts.documents:,} documents · {counts.chunks:,} chunks · {counts.dim} dimensions")


def _jobs() -> None:
    if manager().active():
        _working()


@st.fragment(run_every=1.0)
def _working() -> None:
    if _page_of_run() != st.session_state["page_hash"]:
        # The browser asked for this before it knew of a switch to another page, and now takes the old page for the one
        # that is shown: it would drop all that the new one has drawn.
        st.switch_page(st.session_state["page"])
    active = manager().active()
    if not active:
        st.rerun()
    for job in active:
        st.caption(f":material/progress_activity: {plain(job.title)} · {job.fraction:.0%}")


def _page_of_run() -> str:
    context = get_script_run_ctx()
    return context.page_script_hash if context else ""
