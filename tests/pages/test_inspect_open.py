"""Opening the app on a store from a shell, and on chunks from Python."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragnar_core import MarkdownDocument, Store, StoreError, markdown_chunk
from ragnar_core import inspect as opening
from ragnar_core.inspect import chunks_view, inspect_store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Path, str]]:
    """The folders and names that a server would be started on."""
    calls: list[tuple[Path, str]] = []

    def remember(folder: Path, name: str, port: int | None, browser: bool):
        calls.append((folder, name))
        return "view"

    monkeypatch.setattr(opening, "_serve", remember)
    monkeypatch.setattr(opening.tempfile, "tempdir", str(tmp_path))
    return calls


def test_the_command_opens_a_store_and_ends_with_it(tmp_path: Path) -> None:
    with Store.create(tmp_path / "my store.duckdb", name="zoo") as store:
        store.insert(pd.DataFrame({"text": ["a walrus"], "origin": ["a.md"]}))
    with inspect_store(tmp_path / "my store.duckdb", browser=False) as view:
        assert view.url.endswith("/inspect?store=my-store")
        with urllib.request.urlopen(view.url) as answer:
            assert answer.status == 200
        assert repr(view) == f"View('{view.url}', running)"
    assert repr(view) == f"View('{view.url}', ended)"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(view.url)


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ragnar_core", "inspect", str(tmp_path / "none.duckdb")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == f"there is no store at {tmp_path / 'none.duckdb'}; make one with Store.create\n"


def test_a_store_elsewhere_is_served_under_a_plain_name(tmp_path: Path, served) -> None:
    Store.create(tmp_path / "handbook.duckdb").close()
    inspect_store(tmp_path / "handbook.duckdb")
    folder, name = served[0]
    assert name == "handbook-store"
    assert os.path.realpath(folder / "handbook-store.duckdb") == str(tmp_path / "handbook.duckdb")


def test_a_store_open_for_writing_cannot_be_shared(tmp_path: Path) -> None:
    with Store.create(tmp_path / "s.duckdb") as store, pytest.raises(StoreError, match="close it first"):
        inspect_store(store)


def test_chunks_become_a_store_that_bm25_searches(served) -> None:
    chunks = markdown_chunk(MarkdownDocument("# One\n\n" + "A walrus sleeps. " * 20), target_size=100)
    other = markdown_chunk(MarkdownDocument("A seal.", origin="seal.md"))
    assert chunks_view([chunks, other]) == "view"
    folder, name = served[0]
    with Store.connect(folder / f"{name}.duckdb") as store:
        assert store.documents()["origin"].tolist() == ["document 1", "seal.md"]
        assert store.chunks(1)["text"].tolist() == chunks.texts
        assert store.dim == 0


def test_a_frame_keeps_its_vectors(served) -> None:
    vectors = np.eye(2, 3, dtype=np.float32)
    frame = pd.DataFrame(
        {"text": ["a", "b"], "origin": ["x", "x"], "embedding": list(vectors), "score": [1, 2]}
    )
    chunks_view(frame)
    folder, name = served[0]
    with Store.connect(folder / f"{name}.duckdb") as store:
        assert store.chunks()["text"].tolist() == ["a", "b"]
        assert store.vectors().matrix.tolist() == vectors.tolist()


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        (pd.DataFrame({"text": []}), "there are no chunks to look at"),
        ([], "there are no chunks to look at"),
        (pd.DataFrame({"body": ["a"]}), r"the chunks have no column text \(their columns: body\)"),
    ],
)
def test_nothing_to_look_at(served, chunks, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        chunks_view(chunks)
    assert served == []
