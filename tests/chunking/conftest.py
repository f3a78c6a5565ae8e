"""Reading the reference outputs of the R package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def golden(shared: Path) -> Callable[[str], Rows]:
    """`golden("chunk")` are the rows of golden/chunk.jsonl."""

    def read(name: str) -> Rows:
        with (shared / "golden" / f"{name}.jsonl").open(encoding="utf-8", newline="\n") as lines:
            return [json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def reference_documents(golden: Callable[[str], Rows]) -> dict[str, dict[str, Any]]:
    """The reference documents by name."""
    return {row["doc"]: row for row in golden("documents")}
