"""Documents on the Chunking page, each read once: its boundaries, its tokens, and what the browser cuts with."""

from __future__ import annotations

import base64
import hashlib
import threading
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from pages.shared import workspace
from ragnar_core import Boundaries, ChunkSettings, MarkdownDocument, default_available, embed_default
from ragnar_core.chunking.plan import JOINING, tiers
from ragnar_core.chunking.report import ChunkReport, TokenRuler, chunk_report
from ragnar_core.chunking.units import CountTokens


class TunedDocument:
    """A document and all that does not change with the settings. Shared by sessions; what is slow is done once."""

    def __init__(self, document: MarkdownDocument) -> None:
        self.document = document
        self.id = hashlib.blake2b(document.text.encode(), digest_size=8).hexdigest()
        self.boundaries = Boundaries.of(document)
        self._lock = threading.Lock()
        self._reports: dict[tuple[ChunkSettings, int | None], ChunkReport] = {}

    def report(self, settings: ChunkSettings, token_limit: int | None) -> ChunkReport:
        """Chunks and figures. Raises ChunkError for settings that cannot be met."""
        key = (settings, token_limit)
        with self._lock:
            if key not in self._reports:
                while len(self._reports) >= 8:
                    self._reports.pop(next(iter(self._reports)))
                self._reports[key] = chunk_report(
                    self.boundaries,
                    settings,
                    ruler=self._ruler,
                    token_limit=token_limit,
                    count_tokens=_counter_for(settings),
                )
            return self._reports[key]

    @cached_property
    def _ruler(self) -> TokenRuler:
        return TokenRuler(self.boundaries, token_counter())

    @cached_property
    def for_browser(self) -> dict[str, Any]:
        """The text and its boundaries, for `chunk_text`'s carrier. Positions are code points."""
        found, text = self.boundaries, self.document.text
        joined = _inside_clusters(found)
        lists: dict[str, int] = {}
        return {
            "id": self.id,
            "text": text,
            "length": len(text),
            "astral": packed(_astral(text)),
            "headings": packed(found.headings.start),
            "headingLevels": found.headings.level.tolist(),
            "tables": packed(found.tables.ravel()),
            "code": packed(found.code.ravel()),
            "lineEnds": packed(found.line_ends),
            "joined": packed(joined),
            "suspicious": packed([at for at in joined if _joins(text[at - 1]) or _joins(text[at])]),
            "tiers": {str(whole).lower(): _tiers_for_browser(found, whole, lists) for whole in (True, False)},
            "lists": list(lists),
        }


@dataclass(frozen=True)
class Source:
    """A document that can be looked at: from the shelf, or from the store of that name."""

    origin: str
    store: str | None

    def read(self) -> MarkdownDocument:
        if self.store is None:
            return workspace.shelf().get(self.origin) or MarkdownDocument("", origin=self.origin)
        return workspace.current_store().document(self.origin)


def sources() -> dict[str, Source]:
    """Documents by origin: those on the shelf, then those of the open store."""
    found = {entry.origin: Source(entry.origin, None) for entry in workspace.shelf().entries()}
    store, name = workspace.current_store(), workspace.current_name()
    for origin in store.documents()["origin"].dropna():
        found.setdefault(origin, Source(origin, name))
    return found


@st.cache_resource(max_entries=16, show_spinner="Reading the structure …")
def tuned(origin: str, digest: str, _document: MarkdownDocument) -> TunedDocument:
    """The document prepared, once for each text."""
    return TunedDocument(_document)


def tune(source: Source) -> TunedDocument:
    document = source.read()
    return tuned(source.origin, document.hash, document)


@st.cache_resource(show_spinner=False)
def token_counter() -> CountTokens | None:
    """The default model's tokenizer; None where the model is not there, and tokens are estimated."""
    return embed_default().count_tokens if default_available() is None else None


def packed(positions: ArrayLike) -> str:
    """Ascending positions as text: base64 of their steps, a byte a step, 255 for "255 and more to come"."""
    steps = np.diff(np.asarray(positions, np.int64), prepend=0)
    many, rest = np.divmod(steps, 255)
    out = np.full(int(many.sum()) + len(steps), 255, np.uint8)
    out[np.cumsum(many + 1) - 1] = rest
    return base64.b64encode(out.tobytes()).decode()


def _counter_for(settings: ChunkSettings) -> CountTokens | None:
    if settings.unit == "characters":
        return None
    return token_counter() or _estimate


def _estimate(texts: Any) -> list[int]:
    return [-(-len(text) // 4) for text in texts]


def _tiers_for_browser(
    boundaries: Boundaries, keep_whole: bool, lists: dict[str, int]
) -> list[tuple[str, int, int | None]]:
    """What cuts snap to, strongest first: kind, and by their numbers in `lists` the boundaries and the ranges that
    cuts must be in."""
    everywhere = np.zeros(1, np.int64), np.full(1, np.inf)

    def number(positions: ArrayLike) -> int:
        return lists.setdefault(packed(positions), len(lists))

    return [
        (
            tier.kind,
            number(tier.near(*everywhere)),
            None if tier.within is None else number(tier.within.ravel()),
        )
        for tier in tiers(boundaries, ChunkSettings(keep_whole=keep_whole))
    ]


def _astral(text: str) -> np.ndarray:
    if text.isascii():
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.frombuffer(text.encode("utf-32-le"), "<u4") > 0xFFFF)


def _inside_clusters(boundaries: Boundaries) -> list[int]:
    """Positions inside grapheme clusters."""
    text = boundaries.document.text
    if text.isascii():
        return []
    points = np.frombuffer(text.encode("utf-32-le"), "<u4")
    places = np.flatnonzero(points > 0x7F)
    starts = np.union1d(boundaries.graphemes.near(places, np.zeros(len(places))), boundaries.line_starts)
    around = np.unique(np.concatenate((places, places + 1)))
    around = around[(around > 0) & (around < len(text))]
    return around[~np.isin(around, starts)].tolist()


def _joins(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char) in JOINING
