"""Words of overlapping chunks are looked at once, and counted as if each chunk stood alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragnar_core.store import Analyzer, AnalyzerOptions
from ragnar_core.store.overlaps import SharedCodes
from ragnar_core.store.postings import TermCoder

MIXED = (
    (
        "# Ships & harbours\n\nThe lantern's read_as_markdown node.js C++ came in at dusk; Straße, naïve\tÀ la carte.\n"
        "日本語の文章です。日本語の文章です。 Русский язык ภาษาไทยไม่มีช่องว่าง 👩‍🚀 C# C#x 1.5 3,000\n\n"
    )
    * 6
    + "x" * 500
    + " tail 中"
    + "文" * 450
)


def counts(coder: TermCoder, chunks) -> list[dict[str, int]]:
    words = {number: word for word, number in coder.ids.items()}
    return [
        {words[int(t)]: int(n) for t, n in zip(chunks.term_ids[a:b], chunks.tfs[a:b], strict=True)}
        for a, b in zip(chunks.indptr[:-1], chunks.indptr[1:], strict=True)
    ]


def test_a_word_that_a_range_cuts_counts_as_what_is_left_of_it():
    coder = TermCoder(Analyzer(AnalyzerOptions(language=None)), {})
    #       0         1
    #       0123456789012345678
    text = "lantern boat lantern"
    found = coder.encode_ranges(text, np.array([0, 3, 8]), np.array([11, 16, 20]), ["", "# Dusk", ""])
    assert counts(coder, found) == [
        {"lantern": 1, "boa": 1},
        {"dusk": 1, "tern": 1, "boat": 1, "lan": 1},
        {"boat": 1, "lantern": 1},
    ]
    assert found.lengths.tolist() == [2, 4, 2]


@pytest.mark.parametrize(
    "options",
    [
        AnalyzerOptions(),
        AnalyzerOptions.duckdb(),
        AnalyzerOptions(token_pattern=r"\w+ \w+"),
        AnalyzerOptions(cjk="unigram", language="german", identifiers=False),
    ],
)
def test_any_ranges_give_the_postings_of_their_texts(options):
    rng = random.Random(3)
    for _ in range(15):
        starts = np.array([rng.randrange(len(MIXED)) for _ in range(12)])
        ends = np.minimum(
            starts + np.array([rng.choice((0, 1, 5, 60, 400, 2000)) for _ in starts]), len(MIXED)
        )
        contexts = [rng.choice(("", "# Ships", "# Ships\n## Straße")) for _ in starts]
        texts = [
            f"{context}\n{MIXED[a:b]}" if context else MIXED[a:b]
            for context, a, b in zip(contexts, starts, ends, strict=True)
        ]
        one, other = TermCoder(Analyzer(options), {}), TermCoder(Analyzer(options), {})
        shared, alone = one.encode_ranges(MIXED, starts, ends, contexts), other.encode(texts)
        assert counts(one, shared) == counts(other, alone)
        assert shared.lengths.tolist() == alone.lengths.tolist()


def test_what_ranges_share_is_looked_at_once():
    text = "one two three four five six seven eight"
    seen: list[str] = []
    starts, ends = np.array([0, 8, 19]), np.array([18, 27, 39])

    def codes_of(piece: str) -> list[int]:
        seen.append(piece)
        return [len(word) for word in piece.split()]

    shared = SharedCodes(codes_of, text, starts, ends)
    found = [shared.between(start, end) for start, end in zip(starts, ends, strict=True)]
    assert found == [[3, 3, 5, 4], [5, 4, 4, 3], [4, 3, 5, 5]]
    assert seen == ["one two ", "three four", " ", "five six", " seven eight"]


def test_the_same_chunks_always_give_the_same_numbers():
    words = [f"w{number}" for number in range(40)]
    text = " ".join(reversed(words))
    coder = TermCoder(Analyzer(AnalyzerOptions(language=None)), {})
    coder.encode_ranges(text, np.zeros(40, np.int64), np.full(40, len(text)), words)
    assert list(coder.ids) == words
