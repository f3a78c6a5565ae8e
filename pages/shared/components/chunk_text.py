"""The tuning bench: controls, the document in chunks, a strip of the whole, figures.

The text and its boundaries are sent once. While a slider moves the browser cuts by itself; when it is let go the
server's chunks come back as a few numbers.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from pages.shared.chunking_documents import TunedDocument, packed
from ragnar_core.chunking.report import ChunkReport, CutDifference, EmbeddingCost

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
    texts.map.set(data.id, data);
    texts.bus.dispatchEvent(new Event("text"));
  }
}
""",
)
_bench = st.components.v2.component(
    "ragnar_chunk_text",
    html=(_HERE / "chunk_text.html").read_text("utf-8"),
    css=(_HERE / "chunk_text.css").read_text("utf-8"),
    js="\n".join(
        (_HERE / f"chunk_text{part}.js").read_text("utf-8") for part in ("_snap", "_paint", "_panel", "")
    ),
)


@dataclass(frozen=True)
class Side:
    """One way of chunking the document, as it is drawn. `cost` is the model that would embed it."""

    report: ChunkReport
    cost: EmbeddingCost

    def to_dict(self) -> dict[str, Any]:
        report, cost = self.report, self.cost
        contexts = list(dict.fromkeys(report.chunks.contexts))
        number = {context: i for i, context in enumerate(contexts)}
        return {
            "starts": packed(report.chunks.starts),
            "ends": packed(report.chunks.ends),
            "at": packed(report.positions),
            "kinds": base64.b64encode(report.kinds.astype(np.uint8).tobytes()).decode(),
            "inside": packed(report.positions[report.inside]),
            "tokens": base64.b64encode(report.tokens.astype("<i4").tobytes()).decode(),
            "contexts": contexts,
            "context": [number[context] for context in report.chunks.contexts],
            "tooLong": report.too_long.tolist(),
            "broken": [[b.kind, b.start, b.end] for b in report.blocks if not b.whole],
            "cutButWhole": sum(block.whole for block in report.blocks),
            "figures": {
                "chunks": len(report.chunks),
                "duplication": report.duplication,
                "inside": report.inside_sentence,
                "tokens": report.tokens_total,
                "seconds": cost.seconds(report.tokens_read),
                "dollars": cost.dollars(report.tokens_total),
            },
        }


def carry_text(tuned: TunedDocument, *, key: str) -> None:
    """Send the document to the browser. Belongs outside the fragment that `chunk_bench` is in."""
    _carrier(key=key, data=tuned.for_browser, height=1)


def chunk_bench(
    tuned: TunedDocument,
    wish: dict[str, Any],
    sides: list[Side],
    *,
    key: str,
    on_wish: Callable[[], None],
    presets: dict[str, dict[str, Any]],
    counted: bool,
    difference: CutDifference | None = None,
    problem: str | None = None,
) -> None:
    """Draw the bench for one or two sides.

    `counted` says whether tokens were counted with the model's own tokenizer. `wish` are the settings that `sides`
    were made with. When a person changes them, `st.session_state[key]["wish"]` holds what they should be and
    `on_wish` is called.
    """
    _bench(
        key=key,
        on_wish_change=on_wish,
        data={
            "id": tuned.id,
            "wish": wish,
            "sides": [side.to_dict() for side in sides],
            "presets": presets,
            "counted": counted,
            "limit": sides[0].cost.token_limit if sides else None,
            "differ": [packed(difference.only_a), packed(difference.only_b)] if difference else None,
            "problem": problem,
        },
    )
