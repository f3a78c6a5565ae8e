"""The graph for approximate search: a cache beside the store that is believed only as far as it is true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from ragnar_core.retrieval import Selection, retrieve, retrieve_hybrid, retrieve_vss
from ragnar_core.retrieval.search import SearchSettings, search_ids
from ragnar_core.store import Finding, Store, ann

pytest.importorskip("usearch")

DIM, N = 16, 600


def vectors_of(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = (rng.normal(size=(12, DIM))[rng.integers(0, 12, n)] + 0.4 * rng.normal(size=(n, DIM))).astype(
        np.float32
    )
    return found / np.linalg.norm(found, axis=1, keepdims=True)


VECTORS, QUERIES = vectors_of(1, N), vectors_of(2, 40)


def insert(store: Store, vectors: np.ndarray, name: str) -> None:
    texts = [f"{name} number{i} apple" for i in range(len(vectors))]
    store.insert(
        pd.DataFrame({"text": texts, "origin": [f"{name}{i}.md" for i in range(len(vectors))]}),
        vectors=vectors,
    )


@pytest.fixture(autouse=True)
def _small_stores_have_a_graph(monkeypatch):
    monkeypatch.setattr(ann, "ANN_FROM", 500)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("ann") / "s.duckdb"
    with Store.create(path, embedding_size=DIM) as store:
        insert(store, VECTORS, "d")
    return path


@pytest.fixture
def store(made, tmp_path):
    path = tmp_path / "s.duckdb"
    shutil.copy(made, path)
    with Store.connect(path, read_only=False) as store:
        yield store


@pytest.fixture
def graph(store):
    store.build_index("vss")
    return ann.ann_path(store)


def how(store: Store, **settings) -> str:
    return retrieve_vss(store, QUERIES[0], top_k=10, **settings).attrs["vss"]


def found_of(store: Store) -> list[Finding]:
    return [finding for finding in store.check(probe=False) if finding.kind != "unknown_model"]


def damage(path, change) -> None:
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes(change(data)))


def flipped(data: bytearray, at: int) -> bytearray:
    data[at] ^= 0x40
    return data


def test_a_small_store_needs_no_graph(store, monkeypatch):
    monkeypatch.setattr(ann, "ANN_FROM", N + 1)
    assert store.build_index("vss").ann == "none"
    assert not ann.ann_path(store).exists()
    assert how(store) == "exact"
    assert [finding.kind for finding in found_of(store)] == []


def test_the_threshold_is_300_000_chunks():
    # The fixture lowers it for this module, so a fresh process is asked.
    code = "from ragnar_core.store.ann import ANN_FROM; print(ANN_FROM)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "300000\n"


def test_only_build_index_builds_it(store):
    assert how(store) == "exact"
    assert store.index_state().ann == "absent"
    assert [finding.kind for finding in found_of(store)] == ["absent_ann"]
    assert not ann.ann_path(store).exists()
    assert store.build_index("fts").ann == "absent"
    seen = []
    state = store.build_index("vss", progress=lambda done, total: seen.append((done, total)))
    assert (state.ann, state.ann_stale, seen) == ("fresh", 0, [(N, N)])
    assert ann.ann_path(store) == Path(store.location + ".ann")
    assert [entry for entry in os.listdir(os.path.dirname(store.location)) if entry.endswith(".new")] == []
    assert how(store) == "approximate"


def test_it_finds_what_the_exact_search_finds_with_its_distances(store, graph):
    lost = 0
    for query in QUERIES:
        near, exact = retrieve_vss(store, query, top_k=10), retrieve_vss(store, query, top_k=10, exact=True)
        assert (near.attrs["vss"], exact.attrs["vss"]) == ("approximate", "exact")
        lost += len(set(exact["chunk_id"]) - set(near["chunk_id"]))
        distances = 1 - VECTORS[near["chunk_id"] - 1].astype(np.float64) @ query.astype(np.float64)
        assert np.allclose(near["metric_value"].to_numpy(float), distances, rtol=0, atol=1e-6)
        assert near["metric_value"].is_monotonic_increasing
    assert lost <= 0.02 * 10 * len(QUERIES)


def test_vectors_of_one_length_have_all_distances_and_others_only_the_cosine(store, graph, tmp_path):
    for method in ("euclidean_distance", "negative_inner_product"):
        near, exact = (
            retrieve_vss(store, QUERIES[3], top_k=5, method=method, exact=one) for one in (False, True)
        )
        assert near.attrs["vss"] == "approximate"
        assert near.drop(columns="text").equals(exact.drop(columns="text"))
    with Store.create(tmp_path / "long.duckdb", embedding_size=DIM) as other:
        insert(other, VECTORS * np.linspace(1, 3, N, dtype=np.float32)[:, None], "d")
        other.build_index("vss")
        assert how(other) == "approximate"
        assert how(other, method="euclidean_distance") == "exact"


def test_filters_thresholds_and_long_lists_are_exact(store, graph):
    assert how(store, filter="origin == 'd7.md'") == "exact"
    assert how(store, min_similarity=0.1) == "exact"
    assert how(store, selection=Selection(mmr=0.5)) == "approximate"
    assert retrieve_vss(store, QUERIES[0], top_k=100).attrs["vss"] == "approximate"
    assert retrieve_vss(store, QUERIES[0], top_k=101).attrs["vss"] == "exact"


def test_every_search_says_how_it_searched(store, graph):
    hybrid = retrieve_hybrid(store, "apple", vector=QUERIES[0])
    assert hybrid.attrs["vss"] == "approximate"
    exact = retrieve_hybrid(store, "apple", vector=QUERIES[0], exact=True)
    assert exact.attrs["vss"] == "exact"
    assert hybrid["chunk_id"].tolist() == exact["chunk_id"].tolist()
    assert retrieve(store, " ").attrs["vss"] == "exact"
    settings = SearchSettings(mode="vss", top_k=5, exact=True)
    assert settings.to_dict() == {"mode": "vss", "top_k": 5, "exact": True}
    assert search_ids(store, "apple", settings, vector=VECTORS[8])[0] == 9


def test_chunks_written_and_deleted_since_are_seen(store, graph):
    insert(store, QUERIES[:5], "new")
    store.delete("d0.md")
    store.delete("d1.md")
    assert (store.index_state().ann, store.index_state().ann_stale) == ("stale", 7)
    for i in range(5):
        found = retrieve_vss(store, QUERIES[i], top_k=3)
        assert (found["origin"][0], found.attrs["vss"]) == (f"new{i}.md", "approximate")
        assert found["metric_value"][0] == pytest.approx(0, abs=1e-6)
    found = retrieve_vss(store, VECTORS[0], top_k=10)
    assert {"d0.md", "d1.md"} & set(found["origin"]) == set()
    assert found.attrs["vss"] == "approximate"
    [finding] = found_of(store)
    assert (finding.kind, finding.count) == ("stale_ann", 7)
    store.repair(finding)
    assert (store.index_state().ann, store.index_state().ann_stale) == ("fresh", 0)


def test_a_replaced_document_is_found_by_its_new_vector_only(store, graph):
    table = pd.DataFrame({"text": ["d number3 pear"], "origin": ["d3.md"]})
    store.update(table, vectors=QUERIES[:1])
    assert retrieve_vss(store, QUERIES[0], top_k=1)["origin"].tolist() == ["d3.md"]
    found = retrieve_vss(store, VECTORS[3], top_k=5)
    assert found.attrs["vss"] == "approximate"
    assert "d3.md" not in set(found["origin"]) or found["metric_value"][0] > 1e-3


def test_a_store_that_changed_much_is_searched_exactly(store, graph):
    insert(store, vectors_of(5, 80), "new")
    assert how(store) == "exact"
    assert store.index_state().ann == "stale"
    assert store.build_index("vss").ann == "fresh"
    assert how(store) == "approximate"


def test_a_vector_that_another_program_changed_is_noticed(store, graph):
    path = store.location
    store.close()
    with duckdb.connect(path) as connection:
        connection.execute(
            "UPDATE embeddings SET embedding = ?::FLOAT[16] WHERE chunk_id = 30", [QUERIES[0].tolist()]
        )
    with Store.connect(path) as store:
        found = retrieve_vss(store, QUERIES[0], top_k=1)
        assert (found["chunk_id"].tolist(), found.attrs["vss"]) == ([30], "approximate")
        assert (store.index_state().ann, store.index_state().ann_stale) == ("stale", 2)


def test_a_file_of_another_store_is_never_believed(store, graph, tmp_path):
    with Store.create(tmp_path / "other.duckdb", embedding_size=DIM) as other:
        insert(other, vectors_of(9, N), "d")
        shutil.copy(graph, ann.ann_path(other))
        assert how(other) == "exact"
        [finding] = found_of(other)
        assert finding.kind == "stale_ann"
    with Store.create(tmp_path / "wide.duckdb", embedding_size=2 * DIM) as wide:
        insert(wide, np.repeat(VECTORS, 2, axis=1), "d")
        shutil.copy(graph, ann.ann_path(wide))
        assert retrieve_vss(wide, np.repeat(QUERIES[0], 2), top_k=3).attrs["vss"] == "exact"
        assert wide.index_state().ann == "damaged"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:200],
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"more",
        lambda data: b"x" * len(data),
        lambda data: flipped(data, 30),
        lambda data: flipped(data, 600),
        lambda data: flipped(data, len(data) - 3000),
    ],
)
def test_a_damaged_file_is_ignored_found_and_repaired(store, graph, change):
    assert how(store) == "approximate"
    damage(graph, change)
    assert how(store) == "exact"
    assert store.index_state().ann == "damaged"
    [finding] = found_of(store)
    assert (finding.kind, finding.severity) == ("bad_ann", "warning")
    store.repair(finding)
    assert found_of(store) == []
    assert how(store) == "approximate"


def test_it_can_be_deleted_at_any_time(store, graph):
    assert how(store) == "approximate"
    graph.unlink()
    assert how(store) == "exact"
    assert store.index_state().ann == "absent"


def test_a_reading_store_uses_it_and_leaves_it_alone(store, graph):
    path = store.location
    store.close()
    before = graph.stat()
    with Store.connect(path) as reader:
        assert how(reader) == "approximate"
        assert retrieve_vss(reader, VECTORS[5], top_k=1)["chunk_id"].tolist() == [6]
        assert reader.index_state().ann == "fresh"
    after = graph.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        before.st_mtime_ns,
        before.st_size,
        before.st_ino,
    )


def test_without_usearch_the_search_is_exact_and_says_what_is_missing(store, graph, monkeypatch):
    monkeypatch.setattr(ann, "available", lambda: False)
    assert how(store) == "exact"
    assert store.build_index("vss").ann == "absent"


def test_another_model_takes_the_graph_away(store, graph):
    store.reembed(lambda texts: np.eye(DIM, dtype=np.float32)[[len(text) % DIM for text in texts]])
    assert not graph.exists()
    assert how(store) == "exact"


def test_a_store_made_in_the_place_of_another_starts_without_a_graph(store, graph):
    path = store.location
    store.close()
    with Store.create(path, embedding_size=DIM, overwrite=True):
        assert not graph.exists()


def test_chunks_without_a_vector_are_no_neighbours(store):
    store.insert(pd.DataFrame({"text": ["  "], "origin": ["blank.md"]}), vectors=np.full((1, DIM), np.nan))
    assert store.build_index("vss").ann == "fresh"
    found = retrieve_vss(store, QUERIES[1], top_k=100)
    assert found.attrs["vss"] == "approximate"
    assert "blank.md" not in set(found["origin"])
