"""One passage, as rendered Markdown or as raw text, with the query's words marked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "ragnar_passage_view",
    html='<div class="passage"></div>\n',
    css=(_HERE / "passage_view.css").read_text("utf-8"),
    js=(_HERE / "passage_view.js").read_text("utf-8"),
)


def passage_view(
    *, html: str | None = None, text: str | None = None, words: Iterable[str] = (), key: str | None = None
) -> None:
    """Draw `html` (from `rendered.inert_html`; the browser keeps only plain elements of it) or `text` as it is.

    `words` are marked wherever they stand as whole words.
    """
    _component(key=key, data={"html": html, "text": text, "words": sorted(set(words), key=len, reverse=True)})
