"""Ragnar Workbench: the page list, the chrome around it, and the open store. Start with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.shared import sidebar
from pages.shared.workspace import show_fault

BRAND = Path(__file__).parent / "pages" / "shared" / "brand"

st.set_page_config(page_title="Ragnar Workbench", page_icon=str(BRAND / "icon.png"), layout="wide")
st.logo(str(BRAND / "logo.svg"), size="large", icon_image=str(BRAND / "icon.svg"))
st.session_state["shell"] = True

page = st.navigation(
    {
        "": [st.Page("pages/start.py", title=":material/home: Start", default=True)],
        "Build": [
            st.Page("pages/documents.py", title=":material/description: Documents"),
            st.Page("pages/chunking.py", title=":material/content_cut: Chunking"),
            st.Page("pages/build.py", title=":material/construction: Build"),
        ],
        "Explore": [
            st.Page("pages/compare.py", title=":material/compare_arrows: Compare"),
            st.Page("pages/inspect.py", title=":material/search: Inspect"),
            st.Page("pages/map.py", title=":material/scatter_plot: Map"),
        ],
    },
    expanded=True,
)
sidebar.draw(page)
try:
    page.run()
except Exception as error:
    show_fault(error)
