"""The sample store that ships is what its script makes of the handbook."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ragnar_core import FunctionEmbedder, Store, default_available, retrieve_bm25, retrieve_vss

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "data" / "handbook.duckdb"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "build_sample_store", ROOT / "scripts" / "build_sample_store.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_script_gives_the_same_documents_chunks_and_postings(script: ModuleType, tmp_path: Path) -> None:
    stub = FunctionEmbedder(lambda texts: np.ones((len(texts), 384), np.float32), dim=384, name="stub")
    script.build(tmp_path / "again.duckdb", stub)
    with Store.connect(SHIPPED) as shipped, Store.connect(tmp_path / "again.duckdb", embed=stub) as again:
        assert again.documents()["origin"].tolist() == shipped.documents()["origin"].tolist()
        columns = ["origin", "start", "end", "context", "text"]
        assert again.chunks()[columns].equals(shipped.chunks()[columns])
        ours, theirs = again.postings(), shipped.postings()
        assert dict(ours.terms) == dict(theirs.terms)
        for name in ("indptr", "rows", "tf", "lengths"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
        assert again.chunk_settings == shipped.chunk_settings


def test_shipped_store_is_whole_and_searchable() -> None:
    assert default_available() is None
    with Store.connect(SHIPPED) as store:
        counts = store.counts()
        assert counts.documents >= 12
        assert counts.dim == 384
        state = store.index_state()
        assert (state.bm25, state.vss) == ("fresh", "fresh")
        assert [finding.message for finding in store.check() if finding.severity != "note"] == []
        hits = retrieve_bm25(store, "HNSW_INDEX_SCAN", top_k=2)
        assert "handbook/05-vector-search.md" in hits["origin"].tolist()
        hits = retrieve_vss(store, "Text longer than the model can read is cut off", top_k=5)
        assert "handbook/04-embeddings.md" in hits["origin"].tolist()


def test_vectors_are_those_of_the_default_model() -> None:
    with Store.connect(SHIPPED) as store:
        vectors = store.vectors()
        chunk = store.fetch(vectors.chunk_ids[:1]).iloc[0]
        text = f"{chunk['context']}\n\n{chunk['text']}" if chunk["context"] else chunk["text"]
        assert float(store.embedder.embed([text])[0] @ vectors.matrix[0]) > 0.98
