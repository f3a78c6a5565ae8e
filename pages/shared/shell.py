"""What every page has around its own content."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

PAGES = Path(__file__).resolve().parents[1]


def through_navigation() -> None:
    """Make sure that app.py ran before this page.

    On a server that has run nothing yet, Streamlit takes the folder `pages/` for an old-style app and runs a page
    file alone when its URL is opened first. One call of `st.navigation` ends that for the whole server.
    """
    if not st.session_state.get("shell"):
        known = [st.Page(path, default=path.stem == "start") for path in sorted(PAGES.glob("*.py"))]
        st.navigation(known, position="hidden")
        st.rerun()


def header(title: str, sentence: str) -> None:
    st.title(title, anchor=False)
    st.markdown(f":gray[{sentence}]")


def plain(text: str) -> str:
    """Text that Streamlit's Markdown shows as it is: no emphasis, colours, icons, formulas or links."""
    parted = re.sub(
        r":(?=[A-Za-z_+])", ":\u2060", text
    )  # no icon and no emoji by name: those are looked for last
    escaped = "".join("\\" + c if c in "\\`*_{}[]()#+-.!|$~<>:&" else c for c in parted)
    return escaped.replace("\n", " ")


def copy_as_python(code: str) -> None:
    with st.expander("Copy as Python", icon=":material/code:"):
        st.code(code, language="python")
