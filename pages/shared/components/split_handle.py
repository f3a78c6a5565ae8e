"""A handle between two columns: dragged, or moved with the arrow keys. The browser remembers where it was put."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_split_handle",
    html='<div class="ragnar-split" role="separator" tabindex="0" aria-orientation="vertical" '
    'aria-label="Width of the list" aria-valuemin="20" aria-valuemax="70"></div>\n',
    css=(_HERE / "split_handle.css").read_text("utf-8"),
    js=(_HERE / "split_handle.js").read_text("utf-8"),
    isolate_styles=False,
)


def split_handle(*, key: str) -> None:
    """Put a handle between the columns of the container with the key "split"."""
    _component(key=key, data={}, height=1)
