"""Indexes: what another program left stale, handing a file to R, other options, another model."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import StoreError
from ragnar_core.store import AnalyzerOptions, Store
from ragnar_core.store.extensions import load_extension

EXTENSIONS = importlib.util.find_spec("duckdb_extension_fts") and importlib.util.find_spec(
    "duckdb_extension_vss"
)
with_extensions = pytest.mark.skipif(
    not EXTENSIONS, reason="the wheels duckdb-extension-fts and duckdb-extension-vss are not installed"
)
TEXT = (
    "# Ships\n\n" + "\n\n".join(f"Boat number {i} came in at dusk, slowly, slowly." for i in range(20)) + "\n"
)


@pytest.fixture
def path(tmp_path, embed, chunks_of):
    found = tmp_path / "s.duckdb"
    with Store.create(found, embed) as store:
        store.insert([chunks_of(TEXT, "a"), chunks_of("The zebra.", "b")])
    return found


def outside(path, *statements):
    """Another program writes into the file."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def chunks_with(store, term):
    postings = store.postings()
    i = postings.terms.get(term)
    if i is None:
        return []
    return postings.chunk_ids[postings.rows[postings.indptr[i] : postings.indptr[i + 1]]].tolist()


def test_our_own_writes_are_never_stale(path, embed, chunks_of):
    with Store.connect(path, read_only=False, embed=embed) as store:
        store.insert(chunks_of("More.", "c"))
        store.update(chunks_of("The lion.", "b"))
        store.delete("a")
        state = store.index_state()
    assert (state.bm25, state.vss, state.stale_chunks, state.missing_vectors) == ("fresh", "fresh", 0, 0)
    assert (state.r_fts, state.r_hnsw) == ("absent", ())


def test_what_another_program_wrote_is_found_at_once(path, embed, model):
    with Store.connect(path) as store:
        known = store.revision
        last = int(store.vectors().chunk_ids[-1])
    outside(
        path,
        "INSERT INTO documents VALUES (100, 'r.md', 'A lion and a zebra.')",
        "INSERT INTO embeddings (doc_id, start, \"end\", context) VALUES (100, 1, 19, '# Animals')",
        "DELETE FROM embeddings WHERE chunk_id = 1",
    )
    with Store.connect(path) as store:
        assert store.revision != known
        state = store.index_state()
        assert (state.bm25, state.stale_chunks, state.vss, state.missing_vectors) == ("stale", 2, "stale", 1)
        assert chunks_with(store, "lion") == [last + 1]
        assert chunks_with(store, "zebra") == [last, last + 1]
        assert chunks_with(store, "anim") == [last + 1]
        assert 1 not in store.postings().chunk_ids
        assert store.vectors().norms[-1] == 0.0
    model.texts.clear()
    with Store.connect(path, read_only=False, embed=embed) as store:
        seen = []
        state = store.build_index(progress=lambda done, total: seen.append((done, total)))
        assert (state.bm25, state.vss, state.stale_chunks) == ("fresh", "fresh", 0)
        assert seen == [(1, 1), (1, 1)]
        assert model.texts == ["# Animals\nA lion and a zebra."]
        assert store.vectors().norms[-1] == pytest.approx(1.0)
        assert chunks_with(store, "zebra") == [last, last + 1]
    with Store.connect(path) as store:
        assert store.index_state().bm25 == "fresh"
        assert chunks_with(store, "lion") == [last + 1]
        assert store.revision < 100


def test_a_document_out_of_a_shared_row_of_postings(path, embed):
    """Chunks of one document that were indexed together with others leave the others alone."""
    outside(
        path,
        "DELETE FROM ragnar_postings",
        "INSERT INTO documents VALUES (100, 'r.md', 'A lion and a zebra.')",
        'INSERT INTO embeddings (doc_id, start, "end") VALUES (100, 1, 6), (100, 8, 19)',
    )
    with Store.connect(path, read_only=False, embed=embed) as store:
        store.build_index("fts")
        before = store.postings()
        store.delete("a")
        after = store.postings()
        assert len(after.chunk_ids) == 3 < len(before.chunk_ids)
        assert store.index_state().bm25 == "fresh"
    with Store.connect(path) as store:
        assert store.index_state().stale_chunks == 0
        assert len(chunks_with(store, "zebra")) == 2


def test_kinds_that_are_no_index(path, embed):
    with (
        Store.connect(path, read_only=False, embed=embed) as store,
        pytest.raises(StoreError, match="'vss' and 'fts'"),
    ):
        store.build_index("hnsw")


@with_extensions
def test_a_file_for_r(path, embed):
    with Store.connect(path, read_only=False, embed=embed) as store:
        state = store.build_index(for_r=True)
        n = store.counts().chunks
        assert state.r_fts == "fresh"
        assert state.r_hnsw == ("store_hnsw_cosine_index", "store_hnsw_ip_index", "store_hnsw_l2sq_index")
        query = store.vectors().matrix[-1]
    with duckdb.connect(str(path)) as connection:
        load_extension(connection, "vss")
        load_extension(connection, "fts")
        # The two queries that ragnar sends.
        rows = connection.execute(
            "SELECT * FROM (SELECT *, fts_main_chunks.match_bm25(chunk_id, 'zebra', k := 1.2, b := 0.75) AS metric_value "
            "FROM chunks) WHERE metric_value IS NOT NULL ORDER BY metric_value DESC LIMIT 3"
        ).fetchall()
        assert [row[-2] for row in rows] == ["The zebra."]
        found = connection.execute(
            "SELECT chunk_id FROM embeddings ORDER BY array_cosine_distance(embedding, ?::FLOAT[8]) LIMIT 1",
            [query.tolist()],
        ).fetchone()
        assert found == (n,)
        plan = connection.execute(
            "EXPLAIN SELECT chunk_id FROM embeddings ORDER BY array_cosine_distance(embedding, ?::FLOAT[8]) LIMIT 1",
            [query.tolist()],
        ).fetchall()[0][1]
        assert "HNSW_INDEX_SCAN" in plan


@with_extensions
def test_rs_vector_index_is_in_the_way_of_writing_only(path, embed, chunks_of):
    with Store.connect(path, read_only=False, embed=embed) as store:
        store.build_index("vss", for_r=True)
    with Store.connect(path, read_only=False, embed=embed) as store:
        assert len(store.vectors().chunk_ids) == store.counts().chunks
        with pytest.raises(StoreError, match=r"holds R's vector index .* drop_hnsw"):
            store.insert(chunks_of("More.", "c"))
        with pytest.raises(StoreError, match="drop_hnsw"):
            store.delete("a")
        assert len(store.drop_hnsw()) == 3
        store.insert(chunks_of("More.", "c"))
        assert store.drop_hnsw() == ()
        assert store.index_state().r_hnsw == ()
    with Store.connect(path) as store:
        assert store.document("c").text == "More."


def test_without_extensions_the_message_says_what_to_install(path, embed, monkeypatch, tmp_path):
    monkeypatch.setattr("ragnar_core.store.extensions._from_wheel", lambda name: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    with Store.connect(path, read_only=False, embed=embed) as store:
        with pytest.raises(StoreError, match=rf"pip install duckdb-extension-fts=={duckdb.__version__}"):
            store.build_index("fts", for_r=True)
        # The store is as usable as before.
        assert store.index_state().bm25 == "fresh"
        store.delete("b")


def test_other_options_index_everything_again(path, embed, chunks_of):
    with Store.connect(path, read_only=False, embed=embed) as store:
        assert "came" in store.postings().terms
        seen = []
        store.set_analyzer(AnalyzerOptions.duckdb(), progress=lambda done, total: seen.append((done, total)))
        n = store.counts().chunks
        assert seen == [(n, n)]
        assert "came" not in store.postings().terms
        store.insert(chunks_of("Came the pelican.", "c"))
        assert chunks_with(store, "pelican") == [n + 1]
        assert "came" not in store.postings().terms
    with Store.connect(path) as store:
        assert store.analyzer.options == AnalyzerOptions.duckdb()
        assert store.index_state().bm25 == "fresh"
        assert store.postings().lengths[-1] == 1


def test_another_model(path, embed, chunks_of):
    longer = FunctionEmbedder(lambda texts: [[float(len(text))] * 12 for text in texts], 12, "longer")
    with (
        Store.connect(path, read_only=False, embed=embed) as store,
        Store.connect(path, embed=embed) as reader,
    ):
        n = store.counts().chunks
        assert store.reembed(longer) == n
        assert (store.dim, reader.dim, store.embed_config["model"]) == (12, 12, "longer")
        lengths = [
            len(f"{c}\n{t}" if c else t)
            for c, t in store.chunks()[["context", "text"]].itertuples(index=False)
        ]
        assert reader.vectors().matrix[:, 3].tolist() == lengths
        assert chunks_with(reader, "zebra") == [n]
        store.insert(chunks_of("More.", "c"))
        assert store.vectors().chunk_ids.tolist() == list(range(1, n + 2))
        assert store.check() == []
    with Store.connect(path, embed=longer) as store:
        assert store.vectors().matrix.shape == (n + 1, 12)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT embedding_size, embed_config FROM metadata").fetchone() == (
            12,
            json.dumps(longer.config),
        )
        assert connection.execute("SELECT text FROM chunks ORDER BY chunk_id DESC").fetchone() == ("More.",)


def test_another_model_goes_on_where_it_was_stopped(tmp_path, embed, chunks_of):
    lines = "\n\n".join(f"Line {i} ".ljust(99, "x") for i in range(300))
    asked, cancel = [], threading.Event()

    def function(texts):
        asked.extend(texts)
        if len(asked) >= 128:
            cancel.set()
        return np.ones((len(texts), 3)) * len(asked)

    other = FunctionEmbedder(function, 3, "other", batch_size=64)
    with Store.create(tmp_path / "s.duckdb", embed) as store:
        store.insert(chunks_of(lines, "a"))
        n = store.counts().chunks
        with pytest.raises(Exception, match="stopped"):
            store.reembed(other, cancel=cancel)
        assert store.dim == 8
        assert len(store.vectors().matrix[0]) == 8
        paid = len(asked)
        assert 0 < paid < n
        store.reembed(other)
        assert store.dim == 3
        assert len(asked) < n + 128


def test_opening_a_file_needs_neither_network_nor_extension(path, tmp_path):
    """In a process without a home and with extensions out of reach: open, search tables, write."""
    code = (
        "import sys, ragnar_core.store.extensions as e; e._from_wheel = None\n"
        "from ragnar_core.store import Store\n"
        "s = Store.connect(sys.argv[1], read_only=False)\n"
        "print(len(s.vectors().chunk_ids), 'zebra' in s.postings().terms, s.delete('b'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=__file__.rsplit("/tests/", 1)[0],
        env={"HOME": str(tmp_path / "nowhere"), "PATH": "/usr/bin:/bin", "http_proxy": "http://127.0.0.1:9"},
    )
    assert run.stdout.split()[1:] == ["True", "1"]
