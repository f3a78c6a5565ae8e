"""The open card: a whole passage, and where its score and its rank come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from pages.shared.compare_stamp import stamp
from pages.shared.components.rank_compare import Opened, Part
from pages.shared.text import utf16_spans
from ragnar_core import RagnarError, Store
from ragnar_core.retrieval import (
    Bm25Explanation,
    FusionExplanation,
    VssExplanation,
    explain,
    nearest_sentences,
    query_matches,
    why_not,
)

if TYPE_CHECKING:
    from pages.shared.results import Column

METHODS = {
    "cosine_distance": "Cosine distance",
    "euclidean_distance": "Euclidean distance",
    "negative_inner_product": "Negative inner product",
}
NEAREST = 5
VSS_TITLE = "VSS: how near the meaning is"


def opened_card(columns: list[Column], card: str, *, with_sentences: bool) -> Opened | None:
    """The card "column:chunk", or None where it is no longer there. What fails is said in its place."""
    place, _, number = card.partition(":")
    if not (place.isdigit() and number.isdigit()) or int(place) >= len(columns):
        return None
    one, chunk_id = columns[int(place)], int(number)
    at = next((i for i, ids in enumerate(one.passages) if ids[0] == chunk_id), None)
    try:
        row = one.rows[at] if at is not None else one.store.fetch([chunk_id]).to_dict("records")[0]
    except (RagnarError, IndexError):
        gone = "It is no longer in the store; search again."
        return Opened(card, "", [], "", [Part("This passage cannot be explained", [gone])], None)
    try:
        parts = _parts(columns, int(place), chunk_id)
    except RagnarError as error:
        parts = [Part("This passage cannot be explained", [str(error)])]
    sentences = None
    if with_sentences:
        try:
            sentences = _nearest(stamp(one.store), one.query, row["text"], one.store)
        except RagnarError as error:
            parts.append(Part("Nearest sentences", [str(error)]))
    marks = [(start, end) for start, end, _ in query_matches(one.store, one.query, row["text"])]
    ids = one.passages[at] if at is not None else [chunk_id]
    return Opened(
        card, row["text"], utf16_spans(row["text"], _apart(marks)), _facts(row, ids), parts, sentences
    )


def _facts(row: dict[str, Any], ids: list[int]) -> str:
    named = f"chunk {ids[0]}" if len(ids) == 1 else f"chunks {', '.join(map(str, sorted(ids)))}, merged"
    if pd.isna(row["start"]) or pd.isna(row["end"]):
        return f"{named} · {len(row['text']):,} characters long"
    start, end = int(row["start"]), int(row["end"])
    return f"{named} · characters {start:,}–{end:,} · {end - start:,} long"


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _parts(columns: list[Column], place: int, chunk_id: int) -> list[Part]:
    one = columns[place]
    found = explain(one.store, one.query, chunk_id, one.settings)
    vss = [_vss(found.vss)] if found.vss else [Part(VSS_TITLE, [found.no_vss])] if found.no_vss else []
    words, mode = _bm25(found.bm25), one.settings.mode
    fusion = [_fusion(found.fusion)] if found.fusion and mode == "hybrid" else []
    parts = {"vss": [*vss, words], "bm25": [words, *vss]}.get(mode, [*fusion, *vss, words])
    elsewhere = _elsewhere(columns, place, chunk_id)
    return [*parts, Part("In the other lists", elsewhere)] if elsewhere else parts


def _vss(found: VssExplanation) -> Part:
    rank = (
        f"rank {found.rank:,} of {found.ranked:,} chunks"
        if found.rank
        else "not ranked under the filter and thresholds"
    )
    lines = [f"{METHODS[found.method]} {found.distance:.4f}, {rank}."]
    if found.method == "cosine_distance":
        lines = [f"Cosine distance {found.distance:.4f} = 1 − similarity {found.similarity:.4f}; {rank}."]
    return Part(VSS_TITLE, lines, sentences=True)


def _bm25(found: Bm25Explanation) -> Part:
    title = "BM25: which words count"
    if not found.terms:
        return Part(title, ["The query has only marks or stop words, which are not indexed."])
    most = max(term.contribution for term in found.terms)
    rows = [
        [
            _named(term.term, term.words),
            f"{term.frequency}",
            f"{term.document_frequency:,}",
            f"{term.idf:.4f}",
            f"{term.saturation:.4f}",
            f"{term.contribution:.4f}",
        ]
        for term in found.terms
    ]
    bars = [term.contribution / most if most else 0.0 for term in found.terms]
    average, factor = found.average_length, found.terms[0].length_factor
    lines = [
        f"Rank {found.rank:,} of {found.matches:,} chunks that match."
        if found.rank
        else "Not in the ranking.",
        f"{found.length:,} terms long, average {average:.0f}: length factor {factor:.3f} "
        f"(k = {found.k:g}, b = {found.b:g}).",
        f"Here: how often in this chunk. Chunks: how many of {found.chunks:,} hold the term.",
    ]
    if found.ignored:
        lines.append(f"Not counted (stop words): {', '.join(found.ignored)}.")
    return Part(
        title,
        lines,
        columns=["Term", "Here", "Chunks", "idf", "× weight", "= adds"],
        rows=rows,
        bars=bars,
        total=["Score", "", "", "", "", f"{found.score:.4f}"],
    )


def _named(term: str, words: tuple[str, ...]) -> str:
    written = " / ".join(words)
    return term if written.lower() == term else f"{written} → {term}"


def _fusion(found: FusionExplanation) -> Part:
    lines = [found.arithmetic()]
    if found.rank is None:
        lines = [f"Neither search has it among its first {found.candidates} candidates."]
    if found.fusion == "rrf":
        lines.append("Each list adds weight / (rrf k + rank): only places count, not scores.")
    elif found.fusion == "convex" and found.rank:
        lines.append(
            "Each part is a share of the best one, times its weight: of 1 + cosine, and of the BM25 score."
        )
    return Part("Hybrid: how the two lists add up", lines)


def _elsewhere(columns: list[Column], place: int, chunk_id: int) -> list[str]:
    own = columns[place]
    lines = []
    for at, other in enumerate(columns):
        if at == place or other.store.location != own.store.location:
            continue
        if not other.passages:
            lines.append(f"{other.title}: {other.empty}")
            continue
        try:
            absence = why_not(
                other.store, other.query, other.settings, chunk_id=chunk_id, results=other.table
            )
            said = absence.detail.removeprefix(f"{other.title} ")
        except RagnarError as error:
            said = str(error)
        lines.append(f"{other.title}: {said.rstrip('.')}.")
    return lines


@st.cache_data(show_spinner=False, max_entries=200)
def _nearest(version: str, query: str, text: str, _store: Store) -> list[list[float]]:
    found = nearest_sentences(_store, query, text, limit=NEAREST)
    at = utf16_spans(text, [(one.start, one.end) for one in found])
    return [[start, end, round(one.similarity, 4)] for (start, end), one in zip(at, found, strict=True)]
