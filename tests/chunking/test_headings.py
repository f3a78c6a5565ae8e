"""Headings and the context they give."""

from __future__ import annotations

import numpy as np
import pytest

from ragnar_core.chunking import Boundaries, markdown_chunk
from ragnar_core.chunking.headings import context_line, front_matter_end


def context_at(text: str, word: str) -> str:
    boundaries = Boundaries.of(text)
    position = boundaries.document.text.index(word)
    return boundaries.sections.contexts(np.array([position]))[0]


def test_context_is_the_chain_of_headings_above() -> None:
    text = "# A\n\n## B\n\nin b\n\n### C\n\nin c\n\n## D\n\nin d\n\n# E\n\nin e\n"
    assert context_at(text, "in b") == "# A\n## B"
    assert context_at(text, "in c") == "# A\n## B\n### C"
    assert context_at(text, "in d") == "# A\n## D"
    assert context_at(text, "in e") == "# E"


def test_a_heading_is_not_above_itself() -> None:
    text = "# A\n\n## B\n\n## C\n"
    assert context_at(text, "# A") == ""
    assert context_at(text, "## B") == "# A"
    assert context_at(text, "## C") == "# A"
    assert context_at(text, "C\n") == "# A\n## C"


def test_a_heading_leaves_with_its_parent() -> None:
    text = "# A\n\n### x\n\n# B\n\n## c\n\n#### d\n\nhere\n"
    assert context_at(text, "here") == "# B\n## c\n#### d"


def test_underlined_headings_have_a_level_and_one_line() -> None:
    text = "Big\ntitle\n=====\n\n> Quoted\n> part\n> ---\n\nhere\n"
    boundaries = Boundaries.of(text)
    assert boundaries.headings.level.tolist() == [1, 2]
    assert boundaries.headings.text == ["# Big title", "## Quoted part"]
    assert context_at(text, "here") == "# Big title\n## Quoted part"
    chunks = markdown_chunk(
        "One\n===\n\na\n\nTwo\n---\n\nb\n", target_size=None, segment_by_heading_levels=[2]
    )
    assert chunks.texts == ["One\n===\n\na\n\n", "Two\n---\n\nb\n"]


def test_headings_without_text_open_no_section() -> None:
    boundaries = Boundaries.of("# A\n\n##\n\nx\n")
    assert boundaries.headings.level.tolist() == [1, 0]
    assert context_at("# A\n\n##\n\nhere\n", "here") == "# A"


def test_hashes_in_code_are_no_headings() -> None:
    text = (
        "# A\n\n~~~sh\n# c1\n~~~\n\n````md\n```\n# c2\n```\n````\n\n    # c3\n\n- item\n  ```\n  # c4\n  ```\n\n"
        "```\n# c5 (never closed)"
    )
    assert Boundaries.of(text).headings.text == ["# A"]
    assert set(markdown_chunk(text, target_size=30).contexts) == {"", "# A"}


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_do_not_matter(end: str) -> None:
    text = end.join(["# A", "", "text", "", "---", "", "## B", "", "x"])
    assert Boundaries.of(text).headings.text == ["# A", "## B"]


def test_front_matter_has_no_headings_but_stays_text() -> None:
    text = "---\ntitle: T\n# a comment\ntags: [a]\n---\n\n# Real\n\nhere\n"
    assert Boundaries.of(text).headings.text == ["# Real"]
    assert context_at(text, "here") == "# Real"
    assert markdown_chunk(text).texts == [text]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("---\na: b\n---\n", 12),
        ("---\na: b\n...\nx", 12),
        ("---\n# c\n'quoted key': 1\n---\n", 27),
        ("---\n\na: b\n---\n", 0),  # a rule, then text
        ("---\nSome words\n---\n", 0),  # a rule, then an underlined heading
        ("---\na: b\n", 0),  # never closed
        ("x\n---\na: b\n---\n", 0),
    ],
)
def test_what_front_matter_is(text: str, end: int) -> None:
    assert front_matter_end(text) == end


def test_a_very_long_heading_is_shortened_in_contexts() -> None:
    text = "# " + "y" * 50_000 + "\n\nhere\n"
    assert len(context_at(text, "here")) == 20_000


@pytest.mark.parametrize(
    ("context", "line"),
    [
        (None, ""),
        ("", ""),
        ("# Guide\n## Prices", "Guide › Prices"),
        ("# Guide\n\n###### Deep #1", "Guide › Deep #1"),
        ("# Guide\n| Name | Price |\n|:---|---:|", "Guide › table of Name, Price"),
        ("| a \\| b |  | c |\n| --- | --- | --- |", "table of a | b, c"),
        ("# 5 \\* 3 \\# x", "5 * 3 # x"),
        ("# C:\\dir", "C:\\dir"),
    ],
)
def test_a_context_on_one_line(context: str | None, line: str) -> None:
    assert context_line(context) == line
