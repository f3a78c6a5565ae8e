from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from ragnar_core import (
    ChunkSettings,
    FunctionEmbedder,
    MarkdownDocument,
    ReadReport,
    Store,
    markdown_chunk,
    read_bytes,
)


@pytest.fixture
def store(tmp_path: Path):
    embed = FunctionEmbedder(lambda texts: np.ones((len(texts), 2), np.float32), dim=2, name="ones")
    with Store.create(tmp_path / "s.duckdb", embed) as made:
        yield made


def test_each_write_is_noted_with_settings_model_and_report(store: Store) -> None:
    document = read_bytes(b"\xff\xfeA\x00", "a.txt")
    store.update(markdown_chunk(document, target_size=100))
    store.update(markdown_chunk(MarkdownDocument("A changed", origin="a.txt"), target_size=200))
    store.update(markdown_chunk(MarkdownDocument("A changed", origin="a.txt"), target_size=200))

    first, second = store.history("a.txt")
    assert first.report == document.report
    assert first.report.encoding == "utf-16-le" or first.report.encoding.startswith("utf-16")
    assert (first.settings, first.chunks, first.model) == (ChunkSettings(target_size=100), 1, "ones")
    assert (second.settings, second.report) == (ChunkSettings(target_size=200), None)
    assert timedelta(0) <= datetime.now(UTC) - second.written < timedelta(minutes=5)
    assert first.written <= second.written
    assert store.history(1) == [first, second]


def test_history_goes_with_its_document_and_comes_back_with_the_file(store: Store) -> None:
    report = ReadReport("text", notes=("one part was left out",))
    store.ingest(
        [MarkdownDocument("eel", origin="a", report=report), MarkdownDocument("herring", origin="b")]
    )
    store.delete("b")
    location = store.location
    store.close()
    with Store.connect(location) as again:
        assert [one.report for one in again.history("a")] == [report]
        assert again.history("b") == []
        assert again.history("never") == []


def test_a_failed_write_leaves_no_trace(store: Store) -> None:
    chunks = markdown_chunk(MarkdownDocument("eel", origin="a"))
    store.insert(chunks)
    with pytest.raises(Exception, match="in the store already"):
        store.insert(chunks)
    assert len(store.history("a")) == 1


def test_version_1_goes_by_origin(tmp_path: Path) -> None:
    embed = FunctionEmbedder(lambda texts: np.ones((len(texts), 2), np.float32), dim=2, name="ones")
    with Store.create(tmp_path / "one.duckdb", embed, version=1) as store:
        store.insert(markdown_chunk(MarkdownDocument("eel", origin="a")))
        assert [one.chunks for one in store.history("a")] == [1]
