"""Node positions and headings, counted in code points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ragnar_core.chunking import Boundaries, ChunkSettings, markdown_chunk, markdown_node_positions

Row = dict[str, Any]


def test_reference_positions(golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]) -> None:
    outcome = Counter[str]()
    for name, row in _rows(golden, "positions", reference_documents):
        nodes = markdown_node_positions(reference_documents[row["doc"]]["normalized"], row["types"])
        found = list(zip(nodes["type"], nodes["start"] + 1, nodes["end"], strict=True))
        assert found == list(zip(row["type"], row["start"], row["end"], strict=True)), row["doc"]
        outcome[name] += 1
    assert outcome == {"positions": 121, "positions_cpfix": 15}


def test_reference_headings(golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]) -> None:
    outcome = Counter[str]()
    for _, row in _rows(golden, "headings", reference_documents):
        text = reference_documents[row["doc"]]["normalized"]
        headings = Boundaries.of(text).headings
        ours = {
            start + 1: (end, level, line)
            for start, end, level, line in zip(
                headings.start.tolist(),
                headings.end.tolist(),
                headings.level.tolist(),
                headings.text,
                strict=True,
            )
        }
        ragnars = {
            start: (end, level, line)
            for start, end, level, line in zip(
                row["start"], row["end"], row["level"], row["text"], strict=True
            )
        }
        for start, (end, level, line) in ragnars.items():
            if start not in ours:
                assert text.startswith("---\n"), row["doc"]
                outcome["front matter"] += 1
            elif level == 0:
                underline = line.rstrip("\n").rsplit("\n", 1)[-1].strip()
                assert ours[start][:2] == (end, 1 if set(underline) == {"="} else 2)
                outcome["underlined"] += 1
            elif level is None:
                assert ours[start] == (end, 0, line)
                outcome["without text"] += 1
            else:
                assert ours[start] == (end, level, line)
                outcome["equal"] += 1
        assert set(ours) <= set(ragnars)
    print(f"\nheadings: {dict(outcome)}")
    assert outcome == {"equal": 425, "front matter": 3, "underlined": 6, "without text": 3}


def test_a_raw_text_is_normalised_first(
    golden: Callable[[str], list[Row]], reference_documents: dict[str, Row]
) -> None:
    raw = [row for row in golden("positions") if row["input"] == "raw"]
    assert len(raw) == 21
    for row in raw:
        document = reference_documents[row["doc"]]
        nodes = markdown_node_positions(document["text"], row["types"])
        assert nodes.equals(markdown_node_positions(document["normalized"], row["types"]))


def test_paragraphs_split_off_before_a_table_have_no_position() -> None:
    nodes = markdown_node_positions("text\na|b\n-|-\n1|2\n", ["paragraph", "table_row"])
    assert nodes.values.tolist() == [["table_row", 13, 16]]


def test_threads_do_not_disturb_each_other(reference_documents: dict[str, Row]) -> None:
    texts = [row["normalized"] for row in reference_documents.values() if row["n_chars"] < 5_000] * 3

    def look(text: str) -> list[Any]:
        nodes = markdown_node_positions(text)
        chunks = markdown_chunk(text, target_size=100, segment_by_heading_levels=[1])
        return [nodes.values.tolist(), chunks.ranges.tolist(), list(chunks.contexts)]

    alone = [look(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(look, texts)) == alone


def test_threads_may_share_boundaries() -> None:
    text = "One sentence here. Another one there.\n" * 500
    settings = [ChunkSettings(size, 0.5) for size in range(40, 240, 5)]
    alone = [Boundaries.of(text).chunk(one).ranges.tolist() for one in settings]
    shared = Boundaries.of(text)
    with ThreadPoolExecutor(6) as pool:
        found = pool.map(lambda one: shared.chunk(one).ranges.tolist(), settings)
        assert list(found) == alone


def _rows(golden: Callable[[str], list[Row]], name: str, documents: dict[str, Row]) -> list[tuple[str, Row]]:
    """The rows that count code points: the plain ones, and for documents with long graphemes the corrected ones."""
    plain = [
        (name, row)
        for row in golden(name)
        if row["input"] == "normalized" and not documents[row["doc"]]["has_multi_codepoint_graphemes"]
    ]
    return plain + [(f"{name}_cpfix", row) for row in golden(f"{name}_cpfix") if row["input"] == "normalized"]
