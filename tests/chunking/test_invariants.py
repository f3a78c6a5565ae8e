"""What holds for any text and any settings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragnar_core.chunking import Boundaries, ChunkSettings
from ragnar_core.chunking.breaks import grapheme_starts

MARKDOWN = [
    *(
        "# ",
        "## ",
        "###### ",
        "\n",
        "\n\n",
        "- ",
        "> ",
        "1. ",
        "| a | b |\n|---|---|\n",
        "| 1 | 2 |\n",
        "===\n",
    ),
    *("```\n", "~~~\n", "    ", "---\n", "a: b\n", "`", "[x](y)", "<b>", "word ", "Mr. ", "End. ", " ", "\t"),
    *(
        "e\u0301",
        "\u0301",
        "👨‍👩‍👧",
        "🇩🇪",
        "각",
        "เ",
        "ี่",
        "日本語。",
        "\u200d",
        "\ufeff",
        "\0",
        "\u0600",
        "x" * 30,
    ),
]
TEXTS = st.lists(
    st.sampled_from(MARKDOWN) | st.text(st.characters(codec="utf-8"), max_size=5), max_size=50
).map("".join)
SETTINGS = st.builds(
    ChunkSettings,
    target_size=st.integers(1, 150) | st.none(),
    target_overlap=st.sampled_from([0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]),
    max_snap_dist=st.sampled_from([None, 0, 1, 5, 40, float("inf")]),
    segment_by_heading_levels=st.sampled_from([(), (1,), (1, 2), (1, 2, 3, 4, 5, 6)]),
    table_context=st.booleans(),
    keep_whole=st.booleans(),
    strategy=st.sampled_from(["ragnar", "anchored"]),
    unit=st.sampled_from(["characters", "tokens"]),
)


def count(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) + len(text) // 5 for text in texts]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, SETTINGS)
def test_chunks_cover_the_document_in_order(text: str, chosen: ChunkSettings) -> None:
    boundaries = Boundaries.of(text)
    text = boundaries.document.text
    chunks = boundaries.chunk(chosen, count_tokens=count)
    ranges = list(chunks)
    assert bool(ranges) == bool(text)
    if not text:
        return
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(text)
    assert all(start < end for start, end in ranges)
    for (start, end), (next_start, next_end) in pairwise(ranges):
        assert start < next_start <= end < next_end
    assert [text[start:end] for start, end in ranges] == chunks.table["text"].tolist()
    assert set(chunks.ranges.ravel().tolist()) <= set(
        boundaries.cuts(chosen, count_tokens=count).position.tolist()
    )


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, SETTINGS)
def test_no_chunk_crosses_a_segment(text: str, chosen: ChunkSettings) -> None:
    boundaries = Boundaries.of(text)
    headings = boundaries.headings
    borders = headings.start[np.isin(headings.level, chosen.segment_by_heading_levels)].tolist()
    for start, end in boundaries.chunk(chosen, count_tokens=count):
        assert not any(start < border < end for border in borders)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, SETTINGS.filter(lambda chosen: chosen.unit == "characters"))
def test_no_cut_is_inside_a_grapheme_cluster_that_fits_into_a_chunk(text: str, chosen: ChunkSettings) -> None:
    if chosen.strategy == "ragnar" and not chosen.keep_whole and chosen.snap_distance < 32:
        return
    boundaries = Boundaries.of(text)
    text = boundaries.document.text
    clusters = [*grapheme_starts(text).tolist(), len(text)]
    longest = chosen.target_size or len(text)
    inside = {
        position
        for start, end in pairwise(clusters)
        if end - start <= longest
        for position in range(start + 1, end)
    }
    assert not inside & set(boundaries.chunk(chosen).ranges.ravel().tolist())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, SETTINGS, SETTINGS)
def test_what_was_asked_before_does_not_matter(
    text: str, first: ChunkSettings, second: ChunkSettings
) -> None:
    used = Boundaries.of(text)
    used.chunk(first, count_tokens=count)
    again = used.chunk(second, count_tokens=count)
    fresh = Boundaries.of(text).chunk(second, count_tokens=count)
    assert again.table.equals(fresh.table)
