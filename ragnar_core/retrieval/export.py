"""A comparison to keep or send: a CSV table, or an HTML file that needs nothing else and runs no script."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnar_core.chunking.headings import context_line
from ragnar_core.errors import RagnarError
from ragnar_core.retrieval.compare import Comparison, compare_results
from ragnar_core.retrieval.explain import Explanation, TermContribution, explain, query_matches
from ragnar_core.retrieval.search import SearchSettings

if TYPE_CHECKING:
    from ragnar_core.store import Store

CSV_COLUMNS = (
    "query",
    "list",
    "store",
    "rank",
    "score",
    "metric",
    "origin",
    "chunk_id",
    "start",
    "end",
    "context",
    "text",
    "settings",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")
TONES = ("#7c3aed", "#0f766e", "#c2410c")


@dataclass(frozen=True)
class ResultList:
    """One list of a comparison: a search and its result, as ``search`` returned it."""

    title: str
    store: Store
    store_name: str
    query: str
    settings: SearchSettings
    table: pd.DataFrame


def results_csv(lists: Sequence[ResultList]) -> str:
    """One row a passage, list after list, with a header line; lines end with CR LF (RFC 4180).

    A text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for one in lists:
        settings = json.dumps(one.settings.to_dict(), ensure_ascii=False)
        for rank, row in enumerate(one.table.to_dict("records"), 1):
            score, metric = score_of(row, one.settings)
            place = [row["chunk_id"], _whole(row.get("start")), _whole(row.get("end"))]
            ids = " ".join(map(str, place[0])) if isinstance(place[0], list) else place[0]
            writer.writerow(
                [
                    _harmless(one.query),
                    one.title,
                    one.store_name,
                    rank,
                    score,
                    metric,
                    _harmless(row.get("origin")),
                    ids,
                    *place[1:],
                    _harmless(row.get("context")),
                    _harmless(row["text"]),
                    settings,
                ]
            )
    return out.getvalue()


def score_of(row: Mapping[Any, Any], settings: SearchSettings) -> tuple[float | str, str]:
    """The number a row is ranked by and its name; of a merged passage, the best chunk's."""
    if settings.mode == "union":
        return "", "union"
    value = row["score"] if settings.mode == "hybrid" else row["metric_value"]
    values = [
        float(number) for number in (value if isinstance(value, list) else [value]) if not pd.isna(number)
    ]
    best = (min if settings.mode == "vss" else max)(values, default=float("nan"))
    return best, {"vss": settings.method, "bm25": "bm25", "hybrid": settings.fusion}[settings.mode]


def chunks_of(row: Mapping[Any, Any], settings: SearchSettings) -> list[int]:
    """The chunks that a row was merged from (or its one), the best first: the nearest or that of the highest
    score, and of the union of both searches the nearest, or by words where VSS found none of them."""
    ids = row["chunk_id"]
    if not isinstance(ids, list):
        return [int(ids)]
    if settings.mode == "union":
        lower = not pd.isna(np.array(row[settings.method], dtype=np.float64)).all()
        values = row[settings.method] if lower else row["bm25"]
    else:
        lower = settings.mode == "vss"
        values = row["score"] if settings.mode == "hybrid" else row["metric_value"]
    scale = np.array(values, dtype=np.float64) * (1 if lower else -1)
    best = int(np.argmin(np.where(np.isnan(scale), np.inf, scale)))
    return [int(ids[best]), *(int(one) for at, one in enumerate(ids) if at != best)]


def _whole(value: Any) -> int | str:
    return "" if value is None or pd.isna(value) else int(value)


def _harmless(value: Any) -> str:
    text = "" if value is None or (isinstance(value, float) and pd.isna(value)) else str(value)
    return "'" + text if text.startswith(FORMULA) else text


def results_html(lists: Sequence[ResultList], *, made: datetime | None = None) -> str:
    """A page of its own: the lists side by side, the moves between them as a picture, each score explained.

    Every text of a document is escaped; the page forbids itself scripts and requests by its
    Content-Security-Policy.

    Args:
        made: the time to print; now when None.
    """
    query = lists[0].query if lists else ""
    between = [
        compare_results(a.table, b.table, match="chunk" if a.store.location == b.store.location else "range")
        for a, b in pairwise(lists)
    ]
    head = f"{(made or datetime.now()):%Y-%m-%d %H:%M}"
    columns = "".join(_column(one, at, len(lists)) for at, one in enumerate(lists))
    picture = _moves(lists, between) if between else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(query)} · comparison</title>\n<style>{_STYLE}</style></head><body>\n"
        f"<header><h1>{escape(query)}</h1><p>Comparison made with Ragnar Workbench, {head}.</p></header>\n"
        f"{picture}<main>{columns}</main>\n</body></html>\n"
    )


def _column(one: ResultList, at: int, of: int) -> str:
    rows = one.table.to_dict("records")
    cards = "".join(_card(one, row, rank) for rank, row in enumerate(rows, 1)) or "<p>Nothing was found.</p>"
    asked = escape(one.settings.as_python(one.query))
    return (
        f'<section style="--tone:{_tone(at, of)}"><h2>{escape(one.title)}</h2>'
        f"<p class=quiet>Store {escape(one.store_name)} · {len(rows)} passages</p>"
        f"<details><summary>Settings</summary><code>{asked}</code></details><ol>{cards}</ol></section>"
    )


def _tone(at: int, of: int) -> str:
    return TONES[at] if of > 2 else TONES[at * 2]


def _card(one: ResultList, row: Mapping[Any, Any], rank: int) -> str:
    score, metric = score_of(row, one.settings)
    shown = f"{score:.4f}" if isinstance(score, float) else ""
    place = f"chunk {_ids(row)}"
    if not pd.isna(row.get("start")):
        place += f" · characters {int(row['start']):,}–{int(row['end']):,}"
    return (
        f"<li><div class=line><b>{rank}</b> "
        f"<span class=origin>{escape(str(row.get('origin') or 'no origin'))}</span>"
        f'<span class=score title="{escape(metric)}">{shown}</span></div>'
        f"<div class=quiet>{escape(context_line(row.get('context')))}</div>"
        f"<pre>{_marked(one, row['text'])}</pre>"
        f"<details><summary>Why</summary><p class=quiet>{place}</p>{_why(one, row)}</details></li>"
    )


def _ids(row: Mapping[Any, Any]) -> str:
    ids = row["chunk_id"]
    return ", ".join(map(str, ids)) if isinstance(ids, list) else str(ids)


def _marked(one: ResultList, text: str) -> str:
    out, at = [], 0
    for start, end, _ in query_matches(one.store, one.query, text):
        if start >= at:
            out += [escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>"]
            at = end
    return "".join([*out, escape(text[at:])])


def _why(one: ResultList, row: Mapping[Any, Any]) -> str:
    best, *rest = chunks_of(row, one.settings)
    try:
        found = explain(one.store, one.query, best, one.settings)
    except RagnarError as error:
        return f"<p>{escape(str(error))}</p>"
    others = ", ".join(map(str, sorted(rest)))
    which = (
        f"<p>The numbers are of chunk {best}, the best here; merged with it: {others}.</p>" if rest else ""
    )
    return which + _numbers(found, one.settings)


def _numbers(found: Explanation, settings: SearchSettings) -> str:
    out = []
    if found.fusion and settings.mode == "hybrid":
        out.append(f"<p>Fusion: {escape(found.fusion.arithmetic())}</p>")
    if found.vss:
        rank = f", rank {found.vss.rank:,} of {found.vss.ranked:,}" if found.vss.rank else ""
        named = f"{found.vss.method.replace('_', ' ')} {found.vss.distance:.4f}"
        out.append(f"<p>VSS: {named}, similarity {found.vss.similarity:.4f}{rank}</p>")
    elif found.no_vss:
        out.append(f"<p>VSS: not explained. {escape(found.no_vss)}</p>")
    words = found.bm25
    rank = f", rank {words.rank:,} of {words.matches:,}" if words.rank else ""
    rows = [
        [term.term, term.frequency, term.document_frequency, *map(_four, _factors(term))]
        for term in words.terms
    ]
    head = "".join(f"<th>{name}</th>" for name in ("Term", "Here", "Chunks", "idf", "× weight", "= adds"))
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    total = f"<tr class=total><td colspan=5>Score</td><td>{words.score:.4f}</td></tr>"
    out.append(f"<p>BM25: {words.score:.4f}{rank}</p><table><tr>{head}</tr>{body}{total}</table>")
    return "".join(out)


def _factors(term: TermContribution) -> tuple[float, float, float]:
    return term.idf, term.saturation, term.contribution


def _four(value: float) -> str:
    return f"{value:.4f}"


def _moves(lists: Sequence[ResultList], between: Sequence[Comparison]) -> str:
    """Ranks as dots, one column a list; a line for each passage that two neighbouring lists share."""
    step, across, left = 22, 260, 60
    deepest = max((len(one.table) for one in lists), default=0)
    width, height = left * 2 + across * (len(lists) - 1), 34 + step * max(deepest, 1)
    parts = []
    for c, one in enumerate(between):
        x1, x2 = left + across * c, left + across * (c + 1)
        bend = across // 2
        for move in one.moves:
            if move.left_rank and move.right_rank:
                y1, y2 = (30 + step * (rank - 1) for rank in (move.left_rank, move.right_rank))
                parts.append(f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"/>')
    for c, column in enumerate(lists):
        x, tone = left + across * c, _tone(c, len(lists))
        parts.append(f'<text x="{x}" y="12" class="name">{escape(column.title)}</text>')
        for rank in range(1, len(column.table) + 1):
            y = 30 + step * (rank - 1)
            parts.append(
                f'<circle cx="{x}" cy="{y}" r="9" fill="{tone}"/><text x="{x}" y="{y + 4}">{rank}</text>'
            )
    figures = " · ".join(
        f"{escape(lists[c].title)} and {escape(lists[c + 1].title)}: {one.overlap} in both, rank overlap "
        f"{_two(one.rank_biased_overlap)}, Kendall τ {_two(one.kendall)}"
        for c, one in enumerate(between)
    )
    picture = f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Rank moves">'
    return f"<figure>{picture}{''.join(parts)}</svg><figcaption>{figures}</figcaption></figure>\n"


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: color-mix(in srgb, CanvasText 66%, Canvas); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1400px; padding: 24px; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0; }
header p, .quiet, figcaption { color: var(--quiet); font-size: 13px; margin: 2px 0; overflow-wrap: anywhere; }
figure { margin: 20px 0; overflow-x: auto; }
figcaption { margin-top: 6px; }
svg path { fill: none; stroke: currentColor; opacity: .4; stroke-width: 1.5; }
svg text { font-size: 11px; fill: #fff; font-weight: 600; text-anchor: middle; }
svg .name { fill: currentColor; font-size: 12px; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 20px; }
main { align-items: start; }
section { min-width: 0; border-top: 3px solid var(--tone); padding-top: 8px; }
ol { list-style: none; padding: 0; margin: 12px 0; display: grid; gap: 10px; }
li { border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; min-width: 0; }
.line { display: flex; gap: 8px; align-items: baseline; }
.origin { flex: 1; min-width: 0; font-weight: 600; overflow-wrap: anywhere; unicode-bidi: isolate; }
.score, table { font-variant-numeric: tabular-nums; }
pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: 6px 0; }
pre { max-height: 260px; overflow: auto; unicode-bidi: isolate; }
mark { background: #facc1566; color: inherit; }
summary { cursor: pointer; font-size: 13px; }
p { margin: 4px 0; font-size: 13px; }
code { font-size: 12px; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 12.5px; width: 100%; }
th, td { text-align: right; padding: 2px 0 2px 8px; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; overflow-wrap: anywhere; }
.total { font-weight: 650; }
"""
