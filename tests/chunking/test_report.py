from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ragnar_core.chunking import Boundaries, ChunkSettings
from ragnar_core.chunking.report import (
    CutBlock,
    EmbeddingCost,
    TokenRuler,
    chunk_report,
    differing_cuts,
)
from ragnar_core.errors import ChunkError

TABLE = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 20
CODE = "```\n" + "x = 1\n" * 20 + "```\n"


def words(texts: Sequence[str]) -> list[int]:
    """A toy model: a word is a token, and every text gets two more."""
    return [len(text.split()) + 2 for text in texts]


def report(text: str, *, ruler: TokenRuler | None = None, token_limit: int | None = None, **settings):
    return chunk_report(Boundaries.of(text), ChunkSettings(**settings), ruler=ruler, token_limit=token_limit)


def test_figures_of_sixteen_characters() -> None:
    found = report("abcdefghijklmnop", target_size=8, target_overlap=0.5, max_snap_dist=0)
    assert list(found.chunks) == [(0, 8), (4, 12), (8, 16)]
    assert found.lengths.tolist() == [8, 8, 8]
    assert found.duplication == 1.5
    assert found.positions.tolist() == [4, 8, 12]
    assert found.counts == {"character": 3}
    assert found.inside_sentence == 1.0
    assert found.tokens.tolist() == [2, 2, 2]


def test_an_empty_document_has_empty_figures() -> None:
    found = report("")
    assert (len(found.chunks), found.duplication, found.counts, found.inside_sentence) == (0, 0.0, {}, 0.0)
    assert (found.tokens_total, found.blocks) == (0, ())


def test_one_chunk_has_no_cut() -> None:
    found = report("Short.\n")
    assert (len(found.chunks), found.duplication, found.counts) == (1, 1.0, {})


def test_cuts_are_named_by_what_they_snapped_to() -> None:
    text = "# One\n\nFirst here. Second there.\n\n# Two\n\nThird one. Fourth one.\n"
    found = report(text, target_size=33, target_overlap=0, max_snap_dist=4)
    assert found.positions.tolist() == [34]
    assert text[34:].startswith("# Two")
    assert found.counts == {"heading": 1}
    assert found.inside_sentence == 0.0
    inside = report(text, target_size=20, target_overlap=0, max_snap_dist=2)
    assert inside.counts == {"paragraph": 1, "sentence": 1, "word": 1, "character": 1}
    assert inside.inside_sentence == 0.5


def test_a_cut_between_the_lines_of_a_sentence_is_inside_it() -> None:
    wrapped = "One long sentence that was\nwrapped in the middle of it.\nThe next one is\nhere as well.\n"
    found = report(wrapped, target_size=27, target_overlap=0, max_snap_dist=3)
    assert found.positions.tolist() == [27, 56]
    assert found.inside.tolist() == [True, False]


def test_a_cut_between_lines_of_code_or_items_is_not_inside_a_sentence() -> None:
    found = report(CODE, target_size=64, target_overlap=0, max_snap_dist=3)
    assert found.counts == {"line": 1}
    assert found.inside_sentence == 0.0


def test_a_table_that_no_chunk_holds_is_broken() -> None:
    text = f"Before.\n\n{TABLE}\nAfter.\n"
    found = report(text, target_size=100, target_overlap=0, max_snap_dist=0)
    assert found.blocks == (CutBlock("table", 9, 229, (100, 137, 200), whole=False),)
    assert found.broken("table") == list(found.blocks)
    assert found.broken("code") == []


def test_a_block_that_overlap_keeps_whole_is_cut_but_not_broken() -> None:
    text = "word\n" * 12 + "\n" + CODE + "\n" + "word\n" * 40
    found = report(text, target_size=260, target_overlap=0.8, max_snap_dist=0)
    (block,) = found.blocks
    assert (block.kind, block.whole) == ("code", True)
    assert text[block.start : block.end].startswith("```\nx = 1\n")
    assert found.broken("code") == []


def test_a_cut_at_the_edge_of_a_block_does_not_break_it() -> None:
    text = CODE + "word\n" * 25 + "wo\n"
    found = report(text, target_size=128, target_overlap=0, max_snap_dist=0)
    assert found.positions.tolist() == [128]
    assert found.blocks == ()


def test_tokens_count_context_and_what_the_model_adds() -> None:
    text = "# Top\n\none two three four\n\nfive six seven eight\n"
    boundaries = Boundaries.of(text)
    settings = ChunkSettings(target_size=27, target_overlap=0, max_snap_dist=3)
    ruler = TokenRuler(boundaries, words)
    found = chunk_report(boundaries, settings, ruler=ruler, token_limit=9)
    assert found.chunks.contexts == ["", "# Top"]
    # "# Top", a blank line (never less than one token), four words, a blank line, two for the model.
    # The second: a quarter of the four words, a blank line, four words, two for "# Top", two for the model.
    assert found.tokens.tolist() == [2 + 1 + 4 + 1 + 2, 1 + 1 + 4 + 2 + 2]
    assert found.too_long.tolist() == [0, 1]
    assert (found.tokens_total, found.tokens_read) == (20, 18)
    assert ruler.exact


def test_without_a_limit_no_chunk_is_too_long() -> None:
    found = report("word " * 1000)
    assert found.too_long.tolist() == []
    assert found.tokens_read == found.tokens_total


def test_tokens_as_unit_need_a_counter() -> None:
    with pytest.raises(ChunkError, match="count_tokens"):
        report("one two", unit="tokens")
    found = chunk_report(
        Boundaries.of("one two three four\n" * 10),
        ChunkSettings(target_size=8, target_overlap=0, unit="tokens"),
        count_tokens=words,
    )
    assert list(found.chunks) == [(0, 38), (38, 76), (76, 114), (114, 152), (152, 190)]


def test_differing_cuts() -> None:
    text = "abcdefghij" * 4
    a = report(text, target_size=10, target_overlap=0, max_snap_dist=0)
    b = report(text, target_size=20, target_overlap=0, max_snap_dist=0)
    difference = differing_cuts(a, b)
    assert difference.shared.tolist() == [20]
    assert difference.only_a.tolist() == [10, 30]
    assert difference.only_b.tolist() == []
    assert difference.agreement == pytest.approx(1 / 3)
    assert differing_cuts(a, a).agreement == 1.0


def test_cost() -> None:
    here = EmbeddingCost("here", 512, 2_000)
    assert (here.seconds(10_000), here.dollars(10_000)) == (5.0, 0.0)
    there = EmbeddingCost("there", dollars_per_million=0.02)
    assert there.seconds(10_000) is None
    assert there.dollars(2_000_000) == pytest.approx(0.04)


def test_figures_agree_with_the_chunks_on_a_mixed_document() -> None:
    text = "".join(
        f"## Part {i}\n\nSome words here. And more of them 😀.\n\n{TABLE}\n{CODE}\n" for i in range(9)
    )
    found = report(text, target_size=300, target_overlap=0.5, keep_whole=True, table_context=True)
    edges = {edge for chunk in found.chunks for edge in chunk} - {0, len(found.chunks.document)}
    assert sorted(edges) == found.positions.tolist()
    assert sum(found.counts.values()) == len(edges)
    for block in found.blocks:
        assert all(block.start < cut < block.end for cut in block.cuts)
        assert block.whole == any(a <= block.start and block.end <= b for a, b in found.chunks)
    assert np.all(found.kinds > 0)
