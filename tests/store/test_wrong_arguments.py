"""What a beginner passes by mistake is answered with a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragnar_core import (
    DocumentError,
    FunctionEmbedder,
    MarkdownDocument,
    RetrievalError,
    Store,
    StoreError,
    read_as_markdown,
    retrieve,
)


@pytest.fixture
def store():
    with Store.create(":memory:", FunctionEmbedder(lambda texts: np.ones((len(texts), 2)), dim=2)) as made:
        yield made


@pytest.mark.parametrize("location", [None, "", " ", 5])
def test_a_location_is_a_path(location: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (Store.create, Store.connect):
        with pytest.raises(StoreError, match="location must be a path"):
            call(location)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*nowhere; make it first"):
        Store.create(tmp_path / "nowhere" / "s.duckdb")


def test_a_document_has_to_be_cut_first(store: Store) -> None:
    for call in (store.insert, store.update):
        with pytest.raises(StoreError, match="has to be cut first"):
            call(MarkdownDocument("eel", origin="a"))
        with pytest.raises(StoreError, match="are needed, not NoneType"):
            call(None)


@pytest.mark.parametrize("items", [None, "abc", Path("a.md"), MarkdownDocument("eel"), 5])
def test_ingest_takes_a_list(store: Store, items: object) -> None:
    with pytest.raises(StoreError, match="ingest takes a list"):
        store.ingest(items)
    assert store.counts().documents == 0


@pytest.mark.parametrize("query", [None, 5, 1.5])
def test_a_query_is_a_text(store: Store, query: object) -> None:
    with pytest.raises(RetrievalError, match="must be a text"):
        retrieve(store, query)


@pytest.mark.parametrize("x", [None, "", "  ", 5])
def test_reading_needs_a_path_or_url(x: object) -> None:
    with pytest.raises(DocumentError, match="path or URL is needed"):
        read_as_markdown(x)
