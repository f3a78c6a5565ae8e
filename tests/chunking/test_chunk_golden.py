"""Every chunking of the R package is reproduced, or differs for a reason that is computed row by row.

A reason is computed by giving the chunker what ragnar gives it (its heading table, its rule for contexts) and
finding exactly ragnar's row. A row that no such change explains fails.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ragnar_core.chunking import Boundaries, Chunks, ChunkSettings, plan
from ragnar_core.chunking.headings import Headings
from ragnar_core.errors import ChunkError

EQUAL = "equal"
CODE_POINTS = "1 positions count code points"
HEADING_LEVELS = "2 underlined headings have a level, front matter has none"
PARENTS = "3 a heading leaves the context with its parent"
EMPTY = "4 an empty document has no chunks"
NOT_A_NUMBER = 99

Row = dict[str, Any]
Ranges = tuple[list[int], list[int], list[str]]


def test_rows_of_documents_where_a_grapheme_is_a_code_point(
    golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]
) -> None:
    reasons = _reasons(golden, reference_documents, suffix="")
    print(f"\nchunk.jsonl: {_sentence(reasons)}")
    assert reasons[EQUAL] == 3886
    assert sum(reasons.values()) == 4342


def test_rows_of_the_other_documents_counted_in_code_points(
    golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]
) -> None:
    reasons = _reasons(golden, reference_documents, suffix="_cpfix")
    print(f"\nchunk_cpfix.jsonl: {_sentence(reasons)}")
    assert reasons == {EQUAL: 334}


def test_argument_handling(golden: Callable[[str], list[Row]]) -> None:
    not_in_python = {"unknown_arg", "md_na", "md_null", "md_number"}
    checked = Counter[str]()
    for row in golden("chunk_args"):
        if row["id"] in not_in_python:
            continue
        arguments = _arguments(row["args"])
        if row["id"] == "context_false":
            assert set(Boundaries.of(row["input"][0]).chunk(ChunkSettings(**arguments)).contexts) == {""}
            checked["4 context=False works"] += 1
        elif "error" in row:
            setting = "target_overlap" if "target_overlap" in arguments else "target_size"
            with pytest.raises(ChunkError, match=setting):
                ChunkSettings(**arguments)
            checked["refused"] += 1
        else:
            chunks = Boundaries.of("\n".join(row["input"])).chunk(ChunkSettings(**arguments))
            assert _ranges(chunks) == (row["start"], row["end"], row["context"]), row["id"]
            assert chunks.texts == row.get("text", chunks.texts), row["id"]
            checked[EQUAL] += 1
    assert checked == {EQUAL: 12, "refused": 7, "4 context=False works": 1}


def _arguments(row: Row) -> Row:
    arguments = dict(row)
    arguments.pop("text", None)
    if "pre_segment_heading_levels" in arguments:
        arguments["segment_by_heading_levels"] = arguments.pop("pre_segment_heading_levels")
    if arguments.get("target_size") == "Inf":
        arguments["target_size"] = math.inf
    if "max_snap_dist" in arguments and arguments["max_snap_dist"] is None:
        arguments["max_snap_dist"] = math.inf  # R's NULL and NA; leaving the argument out is Python's None
    return arguments


def _reasons(golden: Callable[[str], list[Row]], documents: dict[str, Row], *, suffix: str) -> Counter[str]:
    contexts = {row["doc"]: row["contexts"] for row in golden(f"contexts{suffix}")}
    ours = {doc: Boundaries.of(row["normalized"]) for doc, row in documents.items() if doc in contexts}
    ragnars = {
        row["doc"]: _with_ragnars_headings(ours[row["doc"]], row, headings)
        for row, headings in _heading_rows(golden, suffix)
        if row["doc"] in ours
    }
    reasons = Counter[str]()
    for row in golden(f"chunk{suffix}"):
        doc = row["doc"]
        if "error" in row:
            assert documents[doc]["has_multi_codepoint_graphemes"], row
            reasons[CODE_POINTS] += 1
            continue
        settings = _settings(row["params"])
        wanted = row["start"], row["end"], [contexts[doc][i] for i in row["context_id"]]
        chunks = ours[doc].chunk(settings)
        if _ranges(chunks) == wanted:
            reasons[EQUAL] += 1
        elif not documents[doc]["normalized"]:
            assert len(chunks) == 0
            assert wanted == ([1], [0], [""])
            reasons[EMPTY] += 1
        elif _as_ragnar(ours[doc], settings) == wanted:
            reasons[PARENTS] += 1
        elif _as_ragnar(ragnars[doc], settings) == wanted:
            graphemes = documents[doc]["has_multi_codepoint_graphemes"] and not suffix
            reasons[CODE_POINTS if graphemes else HEADING_LEVELS] += 1
        else:
            pytest.fail(f"{doc} {row['params']} differs for no known reason")
    return reasons


def _settings(params: Row) -> ChunkSettings:
    distance = math.inf if params["max_snap_dist"] == "Inf" else params["max_snap_dist"]
    return ChunkSettings(
        target_size=params["target_size"],
        target_overlap=params["target_overlap"],
        max_snap_dist=distance,
        segment_by_heading_levels=tuple(params["segment_by_heading_levels"]),
    )


def _ranges(chunks: Chunks) -> Ranges:
    """1-based and inclusive, as R counts."""
    return (chunks.starts + 1).tolist(), chunks.ends.tolist(), list(chunks.contexts)


def _as_ragnar(boundaries: Boundaries, settings: ChunkSettings) -> Ranges:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "LONGEST_USUAL_CLUSTER", math.nan)  # ragnar cuts through grapheme clusters
        starts, ends, _ = _ranges(boundaries.chunk(settings))
    return starts, ends, _ragnars_contexts(boundaries.headings, [start - 1 for start in starts])


def _heading_rows(golden: Callable[[str], list[Row]], suffix: str) -> list[tuple[Row, Row]]:
    headings = {row["doc"]: row for row in golden(f"headings{suffix}") if row["input"] == "normalized"}
    return [
        (row, headings[row["doc"]])
        for row in golden(f"positions{suffix}")
        if row["types"] and row["input"] == "normalized"
    ]


def _with_ragnars_headings(boundaries: Boundaries, positions: Row, headings: Row) -> Boundaries:
    """The boundaries with the headings and paragraphs at the places and of the levels that R reported."""
    known = [i for i, start in enumerate(headings["start"]) if start is not None]
    rows = [
        (headings["start"][i] - 1, headings["end"][i] or -1, headings["level"][i], headings["text"][i] or "")
        for i in known
    ]
    paragraphs = [
        start - 1
        for kind, start in zip(positions["type"], positions["start"], strict=True)
        if kind != "heading" and start is not None
    ]
    return dataclasses.replace(
        boundaries,
        headings=Headings(
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.int64),
            np.array([NOT_A_NUMBER if row[2] is None else row[2] for row in rows], np.int64),
            [row[3] for row in rows],
        ),
        paragraphs=np.array(paragraphs, np.int64),
    )


def _ragnars_contexts(headings: Headings, positions: list[int]) -> list[str]:
    """The last heading of each level before the position, up to the level of the nearest heading."""
    table = list(zip(headings.start.tolist(), headings.level.tolist(), headings.text, strict=True))
    found = []
    for position in positions:
        last: dict[int, str] = {}
        deepest = NOT_A_NUMBER
        for start, level, text in table:
            if start < position:
                last[level], deepest = text, level
            elif start == position and level != NOT_A_NUMBER:
                deepest = level - 1
        found.append("\n".join(last[level] for level in range(1, 7) if level <= deepest and last.get(level)))
    return found


def _sentence(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
