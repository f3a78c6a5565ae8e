"""The examples in docstrings and in docs/differences.md give the results they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


@pytest.mark.parametrize(
    ("name", "examples"), [("chunk", 3), ("segment", 2), ("flat", 3), ("nodes", 1), ("settings", 1)]
)
def test_docstrings(name: str, examples: int) -> None:
    result = doctest.testmod(importlib.import_module(f"ragnar_core.chunking.{name}"))
    assert (result.failed, result.attempted) == (0, examples)


def test_differences() -> None:
    text = DIFFERENCES.read_text(encoding="utf-8")
    chunking = text[text.index("## Chunking") :].split("\n## ", 1)[0]
    # A closing fence is no output.
    test = doctest.DocTestParser().get_doctest(
        chunking.replace("```", ""), {}, "differences", str(DIFFERENCES), 0
    )
    result = doctest.DocTestRunner(verbose=False).run(test)
    assert result.failed == 0
    assert result.attempted >= 20
