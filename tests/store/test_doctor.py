"""The store doctor: each thing that can be wrong is found, said, and repaired."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import StoreError
from ragnar_core.store import Store
from ragnar_core.store.interop_r import write_embed

TEXT = (
    "# Ships\n\n" + "\n\n".join(f"Boat number {i} came in at dusk, slowly, slowly." for i in range(9)) + "\n"
)


@pytest.fixture
def path(tmp_path, embed, chunks_of):
    found = tmp_path / "s.duckdb"
    with Store.create(found, embed) as store:
        store.insert([chunks_of(TEXT, "a"), chunks_of("The zebra.", "b"), chunks_of("The lion.", "c")])
    return found


NAN = "CAST('nan' AS FLOAT)"
DAMAGE = {
    "stale_index": "DELETE FROM ragnar_postings WHERE last_chunk_id = (SELECT max(chunk_id) FROM embeddings)",
    "missing_vectors": "UPDATE embeddings SET embedding = NULL WHERE chunk_id = 1",
    "bad_vectors": "UPDATE embeddings SET embedding = [0,0,0,0,0,0,0,0] WHERE chunk_id = 1",
    "orphan_chunks": "DELETE FROM documents WHERE origin = 'c'",
    "empty_documents": "INSERT INTO documents VALUES (77, 'empty', '')",
    "duplicate_documents": "INSERT INTO documents SELECT 77, 'copy', text FROM documents WHERE origin = 'b'",
    "bad_ranges": 'UPDATE embeddings SET "end" = 9999 WHERE chunk_id = 1',
    "wrong_size": "UPDATE metadata SET embedding_size = 3",
}
SAID = {
    "stale_index": ("warning", 1, "Index these chunks and write the index into the file."),
    "missing_vectors": ("error", 1, "Embed 1 chunks with the store's model."),
    "bad_vectors": ("error", 1, "Embed 1 chunks again with the store's model."),
    "orphan_chunks": ("error", 1, "Delete 1 chunks that have no document."),
    "empty_documents": ("note", 1, "Delete 1 documents without chunks."),
    "duplicate_documents": ("warning", 1, "Delete 1 documents and keep the first of each text."),
    "bad_ranges": ("error", 1, "Delete these 1 chunks; update their documents to get them back."),
    "wrong_size": ("warning", 0, "Write 8 into the metadata."),
}


def test_a_healthy_store(path, embed):
    with Store.connect(path, embed=embed) as store:
        assert store.check() == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_found_said_and_repaired(path, embed, kind):
    with duckdb.connect(str(path)) as connection:
        connection.execute(DAMAGE[kind])
    with Store.connect(path, read_only=False, embed=embed) as store:
        found = {finding.kind: finding for finding in store.check()}
        assert kind in found
        assert (found[kind].severity, found[kind].count, found[kind].repair) == SAID[kind]
        for finding in store.check():
            if finding.repair:
                store.repair(finding)
        assert [finding.kind for finding in store.check() if finding.kind == kind] == []
        assert store.index_state().bm25 == "fresh"
        assert len(store.vectors().chunk_ids) == store.counts().chunks
    with Store.connect(path, embed=embed) as store:
        assert store.check() == []


def test_vectors_that_are_no_numbers(path, embed, model):
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"UPDATE embeddings SET embedding = [{NAN},0,0,0,0,0,0,1] WHERE chunk_id = 2")
    with Store.connect(path, read_only=False, embed=embed) as store:
        (finding,) = store.check(probe=False)
        assert (finding.kind, finding.items) == ("bad_vectors", (2,))
        store.repair(finding)
        assert np.isfinite(store.vectors().matrix).all()


def test_vectors_of_another_model(path):
    """A function of the same name and size that gives other vectors."""
    other = FunctionEmbedder(lambda texts: np.ones((len(texts), 8)), 8, "counting")
    with Store.connect(path, read_only=False, embed=other) as store:
        (finding,) = store.check()
        assert (finding.kind, finding.severity) == ("other_model", "error")
        assert "Embed every chunk again with counting" in finding.repair
        assert store.check(probe=False) == []
        store.repair(finding)
        assert store.check() == []
        assert store.vectors().matrix[0].tolist() == [1.0] * 8


def test_two_names_for_the_model(path, embed):
    with duckdb.connect(str(path)) as connection:
        function = write_embed({"provider": "openai", "model": "text-embedding-3-small"})
        connection.execute("UPDATE metadata SET embed_func = ?", [function])
    with Store.connect(path, read_only=False, embed=embed) as store:
        (finding,) = store.check()
        assert (
            finding.message == "For Python the store names the model counting, for R text-embedding-3-small."
        )
        store.repair(finding)
        assert store.check() == []


def test_an_unknown_model_is_said(path):
    with Store.connect(path) as store:
        (finding,) = store.check()
        assert (finding.kind, finding.repair) == ("unknown_model", None)
        with pytest.raises(StoreError, match="open for reading only"):
            store.repair(finding)


def test_bloat_is_given_back(tmp_path, monkeypatch, chunks_of):
    monkeypatch.setattr("ragnar_core.store.doctor._SMALL_FILE", 2**20)
    with Store.create(tmp_path / "s.duckdb", embedding_size=256) as store:
        vectors = np.random.default_rng(0).normal(size=(2000, 256)).astype(np.float32)
        for number in range(4):
            store.insert(
                pd.DataFrame({"text": [f"row {number} {i}" for i in range(2000)], "origin": f"d{number}"}),
                vectors=vectors,
            )
        with store.opened.database.reading() as cursor:
            cursor.execute("CHECKPOINT")
        for number in range(3):
            store.delete(f"d{number}")
    with Store.connect(tmp_path / "s.duckdb", read_only=False) as store:
        before = store.counts()
        rows, matrix, revision = store.chunks(), store.vectors().matrix, store.revision
        with store.opened.database.reading() as cursor:
            cursor.execute("CHECKPOINT")
        (finding,) = [f for f in store.check(probe=False) if f.kind == "bloat"]
        assert finding.count > 0
        store.repair(finding)
        after = store.counts()
        assert after.bytes < 0.6 * before.bytes
        assert (after.documents, after.chunks) == (before.documents, before.chunks)
        pd.testing.assert_frame_equal(store.chunks(), rows)
        assert np.array_equal(store.vectors().matrix, matrix)
        assert store.revision == revision
        store.insert(pd.DataFrame({"text": ["more"]}), vectors=matrix[:1])
        assert store.chunks()["chunk_id"].iloc[-1] == 8001
