"""From a query to result columns: what the Start and Compare pages draw."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.shared import workspace
from pages.shared.compare_empty import why_empty
from pages.shared.compare_why import opened_card
from pages.shared.components.rank_compare import Badge, Board, Figure, Hit, asked, rank_compare
from pages.shared.text import snippet
from ragnar_core import EmbedError, Store
from ragnar_core.chunking.headings import context_line
from ragnar_core.retrieval import Absence, Comparison, SearchSettings, compare_results, why_not
from ragnar_core.retrieval import search as run
from ragnar_core.retrieval.export import chunks_of

TITLES = {"vss": "VSS", "bm25": "BM25", "hybrid": "Hybrid", "union": "VSS or BM25"}
METRICS = {
    "cosine_distance": "cosine distance, 0 to 2, lower is nearer",
    "euclidean_distance": "euclidean distance, from 0, lower is nearer",
    "negative_inner_product": "negative inner product, lower is nearer",
    "bm25": "BM25 score, from 0, higher is better",
    "rrf": "fused ranks, up to {top:.4f}, higher is better",
    "weighted_scores": "fused scores, 0 to 1, higher is better",
    "convex": "cosine and BM25 together, 0 to 1, higher is better",
    "union": "distance (lower is nearer) · BM25 (higher is better)",
}


@dataclass(frozen=True)
class Column:
    """One search and what it found.

    `rows` are those of the table as dicts; `passages` the chunk ids of each row, the best chunk first.
    """

    title: str
    tone: str
    store: Store
    store_name: str
    query: str
    settings: SearchSettings
    table: pd.DataFrame
    rows: list[dict[str, Any]]
    passages: list[list[int]]
    note: str
    empty: str
    seconds: float


def search(
    store: Store, query: str, *, methods: Sequence[str] = ("vss", "bm25"), top_k: int = 10
) -> list[Column]:
    """One column a method, most relevant passage first."""
    return [column(store, query, SearchSettings(mode=method, top_k=top_k)) for method in methods]


def column(
    store: Store,
    query: str,
    settings: SearchSettings,
    *,
    name: str = "",
    title: str = "",
    tone: str = "",
    note: str = "",
) -> Column:
    """Search once. A model that is missing or fails is told in the column; other errors are raised."""
    start = time.perf_counter()
    try:
        table, empty = run(store, query, settings), ""
    except EmbedError as error:
        table, empty = pd.DataFrame({"chunk_id": [], "text": []}), str(error)
    seconds = time.perf_counter() - start
    rows = rows_of(table)
    return Column(
        title=title or TITLES[settings.mode],
        tone=tone or settings.mode,
        store=store,
        store_name=name,
        query=query,
        settings=settings,
        table=table,
        rows=rows,
        passages=[chunks_of(row, settings) for row in rows],
        note=note,
        empty=empty or ("" if len(table) else why_empty(store, query, settings)),
        seconds=seconds,
    )


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts of plain values (`to_dict("records")` takes ten times as long for short tables)."""
    names = [str(name) for name in table.columns]
    values = [table[name].tolist() for name in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def found(store: Store, query: str, method: str, top_k: int) -> pd.DataFrame:
    return run(store, query, SearchSettings(mode=method, top_k=top_k))


def show(
    columns: list[Column],
    *,
    query: str,
    key: str,
    store: str,
    figures: bool = False,
    lost: Sequence[Absence | None] = (),
    focus: str = "",
) -> None:
    """Draw the columns; a wish to see a passage in Inspect is followed."""
    neighbours = [compared(a, b) for a, b in pairwise(columns)]
    badges = _badges(columns, neighbours)
    lost = list(lost) or [None] * len(columns)
    boards = [_board(one, marks, out) for one, marks, out in zip(columns, badges, lost, strict=True)]
    card = asked(key, query)
    between = compared(columns[0], columns[-1]) if figures and len(columns) > 1 else None
    action = rank_compare(
        boards,
        query=query,
        key=key,
        links=[_links(columns[c], columns[c + 1], one) for c, one in enumerate(neighbours)],
        figures=_figures(columns, between) if between else [],
        split=(between.left - between.overlap, between.overlap, between.right - between.overlap)
        if between
        else None,
        opened=opened_card(columns, card, with_sentences=asked(key, query, "sentences") == card)
        if card
        else None,
        focus=focus,
    )
    if action and "inspect" in action:
        name = columns[action["column"]].store_name or store
        st.session_state["inspect_chunk"] = int(action["inspect"])
        workspace.go("pages/inspect.py", store=name)


def compared(left: Column, right: Column) -> Comparison:
    same = left.store.location == right.store.location
    return compare_results(left.table, right.table, match="chunk" if same else "range")


def missing(one: Column, *, origin: str | None = None, chunk_id: int | None = None) -> Absence:
    """Why a document, or a chunk, is not in a column."""
    return why_not(one.store, one.query, one.settings, origin=origin, chunk_id=chunk_id, results=one.table)


def is_here(absence: Absence) -> bool:
    return absence.reason in ("in results", "merged")


def metric(settings: SearchSettings) -> str:
    """The scale of a column's scores and its direction."""
    if settings.mode == "hybrid":
        top = sum(settings.fusion_weights) / (settings.rrf_k + 1)
        return METRICS[settings.fusion].format(top=top)
    return METRICS[settings.method if settings.mode == "vss" else settings.mode]


def matches(store: Store, text: str, terms: set[str]) -> list[tuple[int, int]]:
    """Ranges of `text` whose indexed term is one of `terms`, in order, without overlaps."""
    spans = sorted((start, end) for term, start, end in store.analyzer.spans(text) if term in terms)
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _board(one: Column, badges: list[list[Badge]], lost: Absence | None) -> Board:
    terms = set(one.store.analyzer.tokens(one.query))
    best = [_value(row, one.settings) for row in one.rows]
    hits = [
        _hit(one, row, ids[0], str(rank), terms, score=_written(row, one.settings), badges=marks, share=share)
        for rank, (row, ids, marks, share) in enumerate(
            zip(one.rows, one.passages, badges, _shares(best, one.settings), strict=True), 1
        )
    ]
    out = None
    if lost is not None and not is_here(lost):
        row = rows_of(one.store.fetch([lost.chunk_id]))[0]
        rank = _rank_in(lost, one.settings.mode)
        out = _hit(
            one,
            row,
            lost.chunk_id,
            f"{rank:,}" if rank else "–",
            terms,
            score=_lost_score(lost, one.settings),
            reason=f"Not here: {lost.detail}.",
        )
    return Board(one.title, metric(one.settings), one.tone, one.note, hits, out, one.empty)


def _hit(
    one: Column,
    row: dict[str, Any],
    chunk_id: int,
    rank: str,
    terms: set[str],
    *,
    score: str,
    share: float | None = None,
    badges: Sequence[Badge] = (),
    reason: str = "",
) -> Hit:
    shown, marks = snippet(row["text"], matches(one.store, row["text"], terms))
    origin = row.get("origin") or "no origin"
    return Hit(
        chunk_id, rank, origin, score, share, context_line(row["context"]), shown, marks, list(badges), reason
    )


def _lower(settings: SearchSettings) -> bool:
    return settings.mode in ("vss", "union")


def _best(value: object, lower: bool) -> float:
    values = [float(one) for one in (value if isinstance(value, list) else [value]) if not pd.isna(one)]
    return (min(values) if lower else max(values)) if values else float("nan")


def _value(row: dict[str, Any], settings: SearchSettings) -> float:
    name = {"hybrid": "score", "union": settings.method}.get(settings.mode, "metric_value")
    return _best(row[name], _lower(settings))


def _written(row: dict[str, Any], settings: SearchSettings) -> str:
    value = _value(row, settings)
    if settings.mode == "union":
        both = (_best(row[settings.method], True), "{:.3f}"), (_best(row["bm25"], False), "{:.2f}")
        return " · ".join("–" if np.isnan(one) else form.format(one) for one, form in both)
    return f"{value:.4f}" if settings.mode == "hybrid" else f"{value:.3f}"


def _shares(values: list[float], settings: SearchSettings) -> list[float | None]:
    """Each score as a share of the best one; of a distance, how near beside the nearest."""
    if not values or settings.mode == "union":
        return [None] * len(values)
    if settings.mode == "vss" and settings.method != "negative_inner_product":
        nearest = min(values)
        return [1.0 if one <= nearest else max(0.0, nearest / one) for one in values]
    scale = [-one for one in values] if settings.mode == "vss" else values
    return [max(0.0, one / max(scale)) if max(scale) > 0 else 0.0 for one in scale]


def _lost_score(lost: Absence, settings: SearchSettings) -> str:
    vss, bm25, fusion = lost.explanation.vss, lost.explanation.bm25, lost.explanation.fusion
    if settings.mode == "hybrid":
        return f"{fusion.score:.4f}" if fusion and fusion.rank else "–"
    if settings.mode == "bm25":
        return f"{bm25.score:.3f}" if bm25.score else "–"
    return f"{vss.distance:.3f}" if vss else "–"


def _rank_in(lost: Absence, mode: str) -> int | None:
    ranks = {"vss": lost.vss_rank, "bm25": lost.bm25_rank, "hybrid": lost.fused_rank}
    return ranks.get(mode)


def _links(left: Column, right: Column, between: Comparison) -> list[list[int]]:
    pairs = [
        (move.left_rank, move.right_rank) for move in between.moves if move.left_rank and move.right_rank
    ]
    return [[left.passages[a - 1][0], right.passages[b - 1][0]] for a, b in pairs]


def _badges(columns: list[Column], neighbours: list[Comparison]) -> list[list[list[Badge]]]:
    """For each column, for each row: one badge a neighbouring list."""
    badges: list[list[list[Badge]]] = [[[] for _ in one.passages] for one in columns]
    for c, between in enumerate(neighbours):
        left, right = columns[c], columns[c + 1]
        several = len(columns) > 2
        ranks = [(move.left_rank, move.right_rank) for move in between.moves]
        for own, other in sorted(ranks, key=lambda pair: pair[0] or 0):
            if own:
                badges[c][own - 1].append(_badge(own, other, right.title, several))
        for other, own in ranks:
            if own:
                badges[c + 1][own - 1].append(_badge(own, other, left.title, several))
    return badges


def _badge(own: int, other: int | None, title: str, several: bool) -> Badge:
    lead = f"{title} " if several else ""
    if other is None:
        return Badge("only", f"not in {title}" if several else "only here", f"not in {title}")
    if own == other:
        return Badge("same", f"{lead}=" if several else "same rank", f"also rank {other} in {title}")
    kind, arrow = ("up", "▲") if own < other else ("down", "▼")
    return Badge(kind, f"{lead}{arrow} {abs(own - other)}", f"rank {other} in {title}")


def _figures(columns: list[Column], between: Comparison) -> list[Figure]:
    left, right = columns[0].title, columns[-1].title
    union = between.left + between.right - between.overlap

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    return [
        Figure(
            "In both",
            f"{between.overlap} of {union}",
            f"Passages that {left} and {right} both found, of all that either did.",
        ),
        Figure(
            "Rank overlap",
            number(between.rank_biased_overlap),
            "Rank-biased overlap (p = 0.9): 0 is nothing shared, 1 the same lists; first ranks weigh most.",
        ),
        Figure(
            "Kendall τ",
            number(between.kendall),
            "Rank correlation of the passages in both: 1 the same order, −1 the reverse; needs two.",
        ),
        Figure(
            "Searched in",
            f"{sum(one.seconds for one in columns) * 1000:.0f} ms",
            "Time on the server for all lists.",
        ),
    ]
