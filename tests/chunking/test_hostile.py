"""Inputs that are made to hurt: they are chunked like any other, and nothing recurses or multiplies."""

from __future__ import annotations

import pytest

from ragnar_core.chunking import Boundaries, ChunkSettings, markdown_node_positions, markdown_segment

HOSTILE = {
    "one line of 10 MB": "x" * 10_000_000,
    "one line of 2 MB in sentences": "A word, and more. " * 111_111,
    "nested quotes": ">" * 100_000 + " x",
    "nested lists on a line": "- " * 100_000 + "x",
    "nested lists": "".join(" " * (2 * i) + "- x\n" for i in range(1500)),
    "backticks": "`" * 1_000_000,
    "runs of backticks": "".join("`" * (i % 60) + " " for i in range(30_000)),
    "only emoji": "👨‍👩‍👧‍👦🇩🇪" * 50_000,
    "only combining marks": "e" + "\u0301" * 200_000,
    "only white space": " \t\n" * 300_000,
    "white space before a word": "\n" * 500_000 + "x",
    "NULs": "\0" * 100_000,
    "brackets": "[" * 100_000 + "]" * 100_000,
    "stars": "*a_ " * 50_000,
    "open comments": "<!--" * 50_000,
    "empty headings": "#\n" * 100_000,
    "headings under a long one": "# " + "y" * 500_000 + "\n" + "## x\n" * 50_000,
    "lines that become a heading": "x\n" * 100_000 + "===\n",
    "a table with a long row": "|a" * 30_000 + "|\n" + "|-" * 30_000 + "|\n" + "|1" * 30_000 + "|\n",
    "many tables": "|a|b|\n|-|-|\n|1|2|\n\n" * 20_000,
    "unclosed front matter": "---\na: b\n" + "# c\n" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("strategy", ["ragnar", "anchored"])
def test_hostile_input_is_covered(name: str, strategy: str) -> None:
    boundaries = Boundaries.of(HOSTILE[name])
    length = len(boundaries.document)
    chunks = boundaries.chunk(ChunkSettings.workbench(strategy=strategy))
    assert chunks.starts[0] == 0
    assert chunks.ends[-1] == length
    assert (chunks.starts[1:] <= chunks.ends[:-1]).all()
    assert len(chunks) <= length / 400 + 2
    assert (chunks.ends - chunks.starts).max() <= 1600 * 2
    assert max(map(len, chunks.contexts)) <= 25_000


def test_tiny_strides_do_not_multiply_targets() -> None:
    chunks = Boundaries.of("word " * 4_000).chunk(ChunkSettings(1600, 0.9999999))
    assert len(chunks) <= 20_000


@pytest.mark.parametrize("name", ["nested quotes", "nested lists on a line", "brackets"])
def test_the_tree_is_walked_without_recursion(name: str) -> None:
    assert len(markdown_node_positions(HOSTILE[name], ["paragraph"])) == 1
    assert len(markdown_segment(HOSTILE[name], ["p", "blockquote", "li"])) >= 1
