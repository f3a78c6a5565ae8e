"""A document with its chunks as tints, and a strip of the whole: the text is sent once, then only ranges."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import streamlit as st

from pages.shared.text import utf16_offsets
from ragnar_core import Chunks

_HERE = Path(__file__).parent
_carrier = st.components.v2.component(
    "ragnar_text_carrier",
    html="<span hidden></span>\n",
    js="""
export default function ({ data }) {
  window.__ragnarTexts ??= { map: new Map(), bus: new EventTarget() };
  const texts = window.__ragnarTexts;
  if (texts.map.get(data.id) === undefined) {
    while (texts.map.size >= 4) texts.map.delete(texts.map.keys().next().value);
    texts.map.set(data.id, data.text);
    texts.bus.dispatchEvent(new Event("text"));
  }
}
""",
)
_view = st.components.v2.component(
    "ragnar_chunk_text",
    html="""
<div class="view">
  <canvas tabindex="0" role="img" aria-label="All chunks along the document; arrow keys move from chunk to chunk"></canvas>
  <div class="facts" aria-live="polite"></div>
  <div class="doc" tabindex="0" role="region" aria-label="Document with its chunks"></div>
</div>
""",
    css=(_HERE / "chunk_text.css").read_text("utf-8"),
    js=(_HERE / "chunk_text.js").read_text("utf-8"),
)


def chunk_text(chunks: Chunks, *, version: str, key: str) -> None:
    """Draw the chunks over their document. `version` names the settings (tests wait for it)."""
    text = chunks.document.text
    identity = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    _carrier(key=f"{key}_text", data={"id": identity, "text": text}, height=1)
    ranges = np.column_stack((chunks.table["start"], chunks.table["end"])).ravel()
    contexts = [c.replace("\n", " › ").replace("#", "").strip() for c in chunks.table["context"]]
    data = {"id": identity, "ranges": utf16_offsets(text, ranges).tolist(), "contexts": contexts, "version": version}
    _view(key=key, data=data)
