"""What the Inspect page says about a chunk and its document, as label and value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from pages.shared import workspace
from pages.shared.components.doc_context import Window
from pages.shared.text import utf16_offsets
from ragnar_core import ReadReport, Store, Written

AROUND = 4000
Facts = list[tuple[str, str]]
_STYLE = """
<style>
.ragnar-facts { margin: 0 !important; padding: 0 !important; }
.ragnar-facts { display: flex; flex-wrap: wrap; gap: 8px 26px; font-size: 13.5px; line-height: 1.35; }
.ragnar-facts.rows { display: grid; grid-template-columns: minmax(110px, max-content) minmax(0, 1fr); gap: 7px 22px; }
.ragnar-facts div { min-width: 0; }
.ragnar-facts.rows div { display: contents; }
.ragnar-facts dt { font-size: 11.5px; opacity: .68; font-weight: 400; }
.ragnar-facts.rows dt { font-size: 13px; }
.ragnar-facts dd, .ragnar-facts dt { margin: 0 !important; }
.ragnar-facts dd { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
</style>
"""


@dataclass(frozen=True)
class Parts:
    """A document's text and its chunks by position: ids, starts and ends int64 (n,), characters of `text`."""

    text: str
    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    exact: bool

    def row(self, chunk_id: int) -> int:
        return int(np.flatnonzero(self.ids == chunk_id)[0])

    def shared(self, chunk_id: int) -> tuple[int, int]:
        """How many characters the chunk shares with those before it, and with those behind it."""
        at = self.row(chunk_id)
        before = int(self.ends[:at].max(initial=0)) - int(self.starts[at])
        behind = int(self.ends[at]) - int(self.starts[at + 1 :].min(initial=len(self.text) + 1))
        length = int(self.ends[at] - self.starts[at])
        return max(0, min(before, length)), max(0, min(behind, length))

    def window(self, chunk_id: int) -> Window:
        at = self.row(chunk_id)
        offset = max(0, int(self.starts[at]) - AROUND)
        stop = min(len(self.text), min(int(self.ends[at]), int(self.starts[at]) + 10 * AROUND) + AROUND)
        text = self.text[offset:stop]
        units = len(text.encode("utf-16-le")) // 2
        chunks = []
        for row in np.flatnonzero((self.starts < stop) & (self.ends > offset)):
            start, end = int(self.starts[row]) - offset, int(self.ends[row]) - offset
            inside = utf16_offsets(text, [min(max(start, 0), len(text)), min(max(end, 0), len(text))])
            chunks.append(
                [
                    int(self.ids[row]),
                    -1 if start < 0 else int(inside[0]),
                    units + 1 if end > len(text) else int(inside[1]),
                ]
            )
        spans = np.stack((self.ids, self.starts, self.ends), axis=1)
        return Window(text, offset, len(self.text), chunks, spans.tolist())


@st.cache_data(show_spinner=False, max_entries=32)
def parts(_store: Store, location: str, revision: int, doc_id: Any) -> Parts:
    """The document of a chunk. A version 1 store keeps no documents: its chunks stand one behind the other."""
    table = _store.chunks(doc_id)
    ids = table["chunk_id"].to_numpy(np.int64)
    if _store.version == 1:
        lengths = table["text"].str.len().to_numpy(np.int64)
        starts = np.concatenate(([0], np.cumsum(lengths + 2)[:-1])).astype(np.int64)
        return Parts("\n\n".join(table["text"]), ids, starts, starts + lengths, exact=False)
    starts, ends = table["start"].to_numpy(np.int64), table["end"].to_numpy(np.int64)
    order = np.lexsort((ids, ends, starts))
    return Parts(_store.document(doc_id).text, ids[order], starts[order], ends[order], exact=True)


def chunk_facts(store: Store, row: Any, whole: Parts) -> Facts:
    length = len(row.text)
    at = whole.row(int(row.chunk_id)) + 1
    facts = [("Chunk", f"{row.chunk_id}"), ("In its document", f"{at:,} of {len(whole.ids):,}")]
    if whole.exact:
        facts.append(("Characters", f"{row.start:,}–{row.end:,} of {len(whole.text):,}"))
    facts += [
        ("Length", f"{length:,} characters"),
        ("Tokens", f"about {max(1, length // 4):,}" if length else "0"),
    ]
    if whole.exact:
        before, behind = whole.shared(int(row.chunk_id))
        facts.append(("Shared before · behind", f"{before:,} · {behind:,}"))
    for name in store.extra_cols:
        value = getattr(row, name, None) if name.isidentifier() else None
        facts.append((name, "—" if _missing(value) else str(value)[:200]))
    return facts


def document_facts(store: Store, row: Any, whole: Parts) -> Facts:
    """The document's history: how it was read, cut and embedded, and when, as far as it is known."""
    facts = [
        ("Origin", row.origin or "none"),
        ("Document", f"{row.doc_id}"),
        ("Holds", f"{len(whole.text):,} characters in {len(whole.ids):,} chunks"),
    ]
    if whole.exact and len(whole.ids):
        covered = int((whole.ends - whole.starts).sum())
        facts.append(("Stored", f"{covered / max(len(whole.text), 1):.2f} times, overlaps counted"))
    written = store.history(int(row.doc_id)) if store.version == 2 else store.history(row.origin or "")
    facts += _written(written) if written else _reading(row.origin, whole)
    settings = store.chunk_settings
    if settings is not None and not written:
        facts.append(("Chunk settings", f"{settings.as_python()} (the store's last)"))
    facts.append(("Model", _model(store)))
    path = store.opened.database.path
    made = {"raghilda": "raghilda", "ragnar": f"ragnar, version {store.version}"}[store.layout.kind]
    facts.append(("Store layout", made))
    if path and Path(path).exists():
        changed = datetime.fromtimestamp(Path(path).stat().st_mtime)
        facts.append(("Store changed", f"{changed:%d %B %Y, %H:%M}"))
    return facts


def draw_facts(facts: Facts, *, rows: bool = False) -> None:
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    st.html(f'{_STYLE}<dl class="ragnar-facts{" rows" if rows else ""}">{items}</dl>')


def _written(history: list[Written]) -> Facts:
    """What the store itself knows: the last write in full, the ones before it by date."""
    last = history[-1]
    facts = [("Written", f"{last.written:%d %B %Y, %H:%M} UTC")]
    facts += [
        ("Before that", f"{one.written:%d %B %Y, %H:%M} UTC, {one.chunks:,} chunks")
        for one in history[-2:-6:-1]
    ]
    if last.settings is not None:
        facts.append(("Chunk settings", last.settings.as_python()))
    return facts + (_report(last.report) if last.report else [])


def _report(report: ReadReport) -> Facts:
    facts = [("Converter", report.converter + (f", {report.encoding}" if report.encoding else ""))]
    if report.pages:
        facts.append(("Pages", f"{report.pages:,}"))
    return facts + [("Lost in reading", problem) for problem in report.problems]


def _reading(origin: str | None, whole: Parts) -> Facts:
    entry = next((entry for entry in workspace.shelf().entries() if origin and entry.origin == origin), None)
    if entry is None:
        return []
    facts = [("Read", entry.added.replace("T", ", ").removesuffix("+00:00") + " UTC")]
    report = entry.document.report
    if report is not None:
        facts += _report(report)
    if whole.exact and entry.document.text != whole.text:
        facts.append(
            ("Since then", "The document on the Documents page has another text than the one stored here.")
        )
    return facts


def _model(store: Store) -> str:
    if not store.dim:
        return "none (the store is for BM25 only)"
    config = store.embed_config
    if config is None:
        return f"{store.r_call or 'not named in the file'} ({store.dim} dimensions)"
    return (
        f"{config.get('model') or config.get('provider')} ({config.get('provider')}, {store.dim} dimensions)"
    )


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (np.isscalar(value) and bool(pd.isna(value)))
