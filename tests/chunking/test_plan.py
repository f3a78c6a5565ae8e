"""Where cuts fall: kinds, tables, code, graphemes, tokens and anchored cuts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragnar_core.chunking import CUT_KINDS, Boundaries, ChunkSettings, markdown_chunk
from ragnar_core.chunking.snap import even_targets
from ragnar_core.errors import ChunkError

TABLE = "## Stock\n\n| id | qty |\n| --- | --- |\n" + "| 7 | 5,120 |\n" * 60
HEADER = "| id | qty |\n| --- | --- |"


def targets(length: int, size: float, overlap: float) -> list[tuple[float, float]]:
    starts, ends = even_targets(np.zeros(1), np.full(1, float(length)), size, overlap)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def test_targets_are_a_stride_apart_and_the_last_ends_with_the_text() -> None:
    assert targets(100, 40, 0.5) == [(0, 40), (20, 60), (40, 80), (60, 100), (60, 100)]
    assert targets(95, 40, 0) == [(0, 40), (40, 80), (55, 95)]
    assert targets(30, 40, 0.5) == [(0, 30)]
    assert targets(30, np.inf, 0.5) == [(0, 30)]


def test_odd_strides_round_1_based_positions_half_to_even() -> None:
    assert [start + 1 for start, _ in targets(30, 5, 0.5)][:6] == [1, 4, 6, 8, 11, 14]


def test_strides_below_one_start_a_chunk_at_every_character() -> None:
    assert [start for start, _ in targets(6, 2, 0.99)][:5] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "size", "distance", "kind", "position"),
    [
        ("aaaa bbbb\n\n# Head\n\ncc", 10, 5, "heading", 11),
        ("aaaa bbbb\n\nPara here and on", 10, 5, "paragraph", 11),
        ("One here. Two here. Three.", 12, 5, "sentence", 10),
        ("a line of words\nand another line", 13, 4, "line", 16),
        ("a line of words and more words", 13, 4, "word", 16),
        ("x" * 30, 13, 4, "character", 13),
    ],
)
def test_each_kind_of_cut(text: str, size: int, distance: float, kind: str, position: int) -> None:
    cuts = Boundaries.of(text).cuts(ChunkSettings(size, 0, distance))
    first = int(np.flatnonzero(cuts.wanted == size)[0])
    assert (cuts.kinds[first], int(cuts.position[first])) == (kind, position)
    assert cuts.counts["edge"] == 2
    assert set(cuts.kinds) <= set(CUT_KINDS)


def test_of_two_boundaries_equally_far_the_later_wins() -> None:
    chunks = markdown_chunk("Aaaa. Bb. Cccc.", target_size=8, target_overlap=0, max_snap_dist=3)
    assert list(chunks) == [(0, 10), (6, 15)]


def test_no_chunk_crosses_a_segment() -> None:
    chunks = markdown_chunk("# A\n\none\n\n# B\n\ntwo\n", segment_by_heading_levels=[1])
    assert chunks.texts == ["# A\n\none\n\n", "# B\n\ntwo\n"]


def test_tables_are_cut_between_rows_and_carry_their_header() -> None:
    chunks = Boundaries.of(TABLE).chunk(ChunkSettings.workbench(target_size=300))
    assert all(text.startswith("| 7 | 5,120 |\n") for text in chunks.texts[1:])
    assert all(text.endswith("| 7 | 5,120 |\n") for text in chunks.texts)
    assert chunks.contexts[0] == ""
    assert set(chunks.contexts[1:]) == {f"## Stock\n{HEADER}"}
    assert set(Boundaries.of(TABLE).cuts(ChunkSettings.workbench(target_size=300)).kinds) == {"edge", "row"}


def test_rows_are_preferred_to_sentences_only_when_asked() -> None:
    text = "| note |\n| --- |\n" + "| One thing. Another thing here. |\n" * 6
    strict = Boundaries.of(text).cuts(ChunkSettings(80, 0, 20))
    whole = Boundaries.of(text).cuts(ChunkSettings(80, 0, 20, keep_whole=True))
    assert "sentence" in strict.kinds
    assert set(whole.kinds) == {"edge", "row"}


def test_a_row_longer_than_a_chunk_is_cut_at_cells_and_never_inside_a_number() -> None:
    row = "| " + " | ".join(["5,120 5,120 5,120"] * 40) + " |\n"
    text = f"intro\n\n{HEADER}\n{row}"
    boundaries = Boundaries.of(text)
    cuts = boundaries.cuts(ChunkSettings.workbench(target_size=200, target_overlap=0))
    assert cuts.counts["cell"] >= 2
    inner = [position for position in cuts.position.tolist() if 0 < position < len(text)]
    assert all("," not in text[position - 1 : position + 1] for position in inner)


def test_a_table_that_interrupts_a_paragraph_has_the_right_header() -> None:
    text = "some | text before\n" + TABLE.split("\n\n")[1]
    chunks = Boundaries.of(text).chunk(ChunkSettings.workbench(target_size=200))
    assert set(chunks.contexts[1:]) == {HEADER}


def test_a_table_in_a_quote_gives_its_header_without_the_marks() -> None:
    text = "> | a | b |\n> |---|---|\n" + "> | 1 | 2 |\n" * 20
    chunks = Boundaries.of(text).chunk(ChunkSettings.workbench(target_size=60))
    assert set(chunks.contexts[1:]) == {"| a | b |\n|---|---|"}


def test_a_table_whose_edge_is_in_reach_is_not_cut() -> None:
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 4
    before, after = "Words of prose. " * 5 + "\n\n", "\n" + "More words. " * 8 + "\n"
    cut = {True: 0, False: 0}
    for shift in range(60):
        boundaries = Boundaries.of("x" * shift + "\n\n" + before + table + after)
        for whole in cut:
            texts = boundaries.chunk(ChunkSettings(110, 0, keep_whole=whole)).texts
            cut[whole] += not any(table in text for text in texts)
    assert cut[True] == 0
    assert cut[False] > 0


def test_code_is_cut_at_line_ends() -> None:
    code = "```python\n" + 'print("One. Two. Three.")\n' * 20 + "```\n"
    chunks = Boundaries.of(code).chunk(ChunkSettings(100, 0, 20, keep_whole=True))
    assert all(text.endswith("\n") for text in chunks.texts)
    strict = Boundaries.of(code).chunk(ChunkSettings(100, 0, 20))
    assert not all(text.endswith("\n") for text in strict.texts)


@pytest.mark.parametrize("cluster", ["e\u0301", "👨‍👩‍👧‍👦", "각", "🇩🇪"])
def test_clusters_stay_whole_where_cuts_may_move(cluster: str) -> None:
    for settings in (ChunkSettings(200, 0), ChunkSettings(30, 0, 0, keep_whole=True)):
        chunks = Boundaries.of(cluster * 500).chunk(settings)
        assert all(text == cluster * (len(text) // len(cluster)) for text in chunks.texts)


def test_a_cluster_longer_than_a_chunk_is_cut() -> None:
    chunks = Boundaries.of("e" + "\u0301" * 500).chunk(ChunkSettings(200, 0, keep_whole=True))
    assert [end - start for start, end in chunks] == [200, 200, 200]


def count_words(texts: Sequence[str]) -> list[int]:
    return [2 + len(text.split()) for text in texts]  # 2 for what a model adds to every text


def test_sizes_in_tokens() -> None:
    text = "one two three four five six seven eight nine ten. " * 100
    chunks = markdown_chunk(
        text, target_size=60, target_overlap=0.5, unit="tokens", count_tokens=count_words, max_snap_dist=0
    )
    words = [len(piece.split()) for piece in chunks.texts]
    assert len(chunks) == 33
    assert all(abs(count - 60) <= 2 for count in words)


def test_dense_text_gets_shorter_chunks_than_prose() -> None:
    count = lambda texts: [len(text) if "0x" in text else len(text) // 4 for text in texts]  # noqa: E731
    text = "Words of prose go on. \n" * 100 + "\n" + "0x9f,0x9f,0x9f,0x9f,0x9f\n" * 100
    chunks = markdown_chunk(text, target_size=100, target_overlap=0, unit="tokens", count_tokens=count)
    lengths = chunks.ends - chunks.starts
    assert lengths[0] > 3 * lengths[-2]


def test_tokens_need_somebody_who_counts_them() -> None:
    with pytest.raises(ChunkError, match="count_tokens, a function from texts"):
        markdown_chunk("x", unit="tokens")


def test_tokens_are_counted_once_for_a_document() -> None:
    calls = []

    def count(texts: Sequence[str]) -> list[int]:
        calls.append(len(texts))
        return count_words(texts)

    boundaries = Boundaries.of("a b c.\n\nd e f.\n")
    for size in (2, 3, 4):
        boundaries.chunk(ChunkSettings(size, unit="tokens"), count_tokens=count)
    assert len(calls) == 1


def test_anchored_chunks_are_about_as_long_as_asked() -> None:
    chunks = Boundaries.of(_long_text()).chunk(ChunkSettings(800, 0.5, strategy="anchored"))
    lengths = chunks.ends - chunks.starts
    assert 600 < lengths.mean() < 900
    assert lengths.min() > 300
    assert lengths.max() < 1200
    overlaps = chunks.ends[:-1] - chunks.starts[1:]
    assert 350 < overlaps.mean() < 450


def test_an_insertion_at_the_top_moves_anchored_cuts_only_there() -> None:
    text = _long_text()
    assert len(text) > 200_000
    changed = {}
    for strategy in ("ragnar", "anchored"):
        settings = ChunkSettings(1600, 0.5, strategy=strategy)
        before = set(Boundaries.of(text).chunk(settings).texts)
        after = Boundaries.of("One new sentence.\n\n" + text).chunk(settings).texts
        changed[strategy] = sum(text not in before for text in after)
        print(f"\n{strategy}: {changed[strategy]} of {len(after)} chunks change")
    assert changed["anchored"] <= 2
    assert changed["ragnar"] > 10 * changed["anchored"]


def test_anchored_chunks_respect_segments_and_repeated_text() -> None:
    text = "Same one. " * 50 + "Other. " + "Same one. " * 50
    chunks = markdown_chunk(text, target_size=60, target_overlap=0, strategy="anchored")
    assert "".join(chunks.texts) == chunks.document.text
    assert max(chunks.ends - chunks.starts) <= 100
    segments = markdown_chunk("# A\n\nx\n\n# B\n\ny\n", segment_by_heading_levels=[1], strategy="anchored")
    assert segments.texts == ["# A\n\nx\n\n", "# B\n\ny\n"]


def _long_text() -> str:
    random = np.random.default_rng(7)
    words = np.array(["the", "tea", "water", "leaf", "cup", "boil", "wait", "pour", "green", "warm", "pot"])
    parts = []
    for section in range(60):
        parts.append(f"## Section {section}")
        for _ in range(random.integers(4, 14)):
            sentences = [" ".join(random.choice(words, random.integers(5, 16))) for _ in range(8)]
            parts.append(" ".join(f"{sentence.capitalize()}." for sentence in sentences))
    return "\n\n".join(parts) + "\n"
