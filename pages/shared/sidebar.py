"""The sidebar below the page list: which store is open, what it holds, and what is at work."""

from __future__ import annotations

import streamlit as st

from pages.shared import workspace
from pages.shared.jobs import manager
from pages.shared.shell import plain
from ragnar_core import RagnarError


def draw() -> None:
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
    active = manager().active()
    if not active:
        st.rerun()
    for job in active:
        st.caption(f":material/progress_activity: {plain(job.title)} · {job.fraction:.0%}")
