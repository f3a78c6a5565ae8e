from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import EmbedError, RetrievalError
from ragnar_core.retrieval import Filter, retrieve_vss
from ragnar_core.retrieval.allowed import filter_columns
from ragnar_core.retrieval.scoring import VSS_METHODS, rank_of_row, rank_vectors
from ragnar_core.store import Store

COLUMNS = ["chunk_id", "doc_id", "origin", "start", "end", "context", "text"]


def distances(matrix: np.ndarray, query: np.ndarray, method: str) -> np.ndarray:
    wide, q = matrix.astype(np.float64), query.astype(np.float64)
    if method == "euclidean_distance":
        return np.linalg.norm(wide - q, axis=1)
    if method == "negative_inner_product":
        return -(wide @ q)
    return 1 - wide @ q / (np.linalg.norm(wide, axis=1) * np.linalg.norm(q))


@pytest.mark.parametrize("method", VSS_METHODS)
@pytest.mark.parametrize("scale", [1.0, 7.5])
def test_distances_equal_numpys(make_store: Callable[..., Store], method: str, scale: float) -> None:
    random = np.random.default_rng(1)
    matrix = random.normal(scale=scale, size=(300, 24)).astype(np.float32)
    store = make_store({"d": [f"text {row}" for row in range(300)]}, vectors=matrix)
    for _ in range(5):
        query = random.normal(size=24).astype(np.float32)
        expected = distances(matrix, query, method)
        found = retrieve_vss(store, query, top_k=20, method=method)
        order = np.argsort(expected, kind="stable")[:20]
        assert found["chunk_id"].tolist() == (order + 1).tolist()
        np.testing.assert_allclose(found["metric_value"], expected[order], rtol=0, atol=1e-6)
        assert set(found["metric_name"]) == {method}


def test_the_result_has_the_columns_of_the_store_and_the_metric(fruit: Store) -> None:
    found = retrieve_vss(fruit, "apple banana", top_k=2)
    assert found.columns.tolist() == [*COLUMNS, *fruit.extra_cols, "metric_name", "metric_value"]
    expected = fruit.fetch(found["chunk_id"].to_numpy())
    pd.testing.assert_frame_equal(found[expected.columns.tolist()], expected)


@pytest.mark.parametrize("method", VSS_METHODS)
def test_equal_vectors_come_in_the_order_of_chunk_id(make_store: Callable[..., Store], method: str) -> None:
    random = np.random.default_rng(3)
    kinds = random.normal(size=(3, 37)).astype(np.float32)
    matrix = kinds[random.integers(0, 3, 400)]
    store = make_store({"d": ["x"] * 400}, vectors=matrix)
    query = random.normal(size=37)
    found = retrieve_vss(store, query, top_k=400, method=method)
    nearest = np.argsort([distances(kinds[at : at + 1], query, method)[0] for at in range(3)])
    expected = [row + 1 for kind in nearest for row in np.flatnonzero((matrix == kinds[kind]).all(axis=1))]
    assert found["chunk_id"].tolist() == expected
    for top_k in (1, 7, 133):
        assert retrieve_vss(store, query, top_k=top_k, method=method)["chunk_id"].tolist() == expected[:top_k]


@pytest.mark.parametrize("method", VSS_METHODS)
def test_the_rank_of_a_row_is_its_place_in_the_ranking(fruit: Store, method: str) -> None:
    table, query = fruit.vectors(), np.arange(8, dtype=np.float32) + 1
    allowed = np.arange(0, 120, 3)
    for rows in (None, allowed):
        ranking = rank_vectors(table, query, method, 120, rows)
        places = [rank_of_row(table, query, method, int(row), rows) for row in ranking.rows]
        assert places == list(range(1, len(ranking) + 1))


@pytest.mark.parametrize(
    "filter",
    [
        'category == "news" and year >= 2010',
        "ripe == true",
        {"price": {"$lt": 0.05}},
        {"year": None},
        "chunk_id in [3, 5, 118]",
        'text contains "iris" and not context contains "Part"',
        {"origin": "document-03"},
        "start > 100",
    ],
)
@pytest.mark.parametrize("top_k", [1, 10, 200])
def test_a_filtered_search_is_brute_force_over_the_rows_that_pass(
    fruit: Store, filter: Any, top_k: int
) -> None:
    everything = retrieve_vss(fruit, "apple cherry", top_k=120)
    passes = Filter.parse(filter).bind(filter_columns(fruit)).predicate()
    expected = everything[[passes(row) for row in everything.to_dict("records")]].head(top_k)
    found = retrieve_vss(fruit, "apple cherry", top_k=top_k, filter=filter)
    assert len(expected)
    assert found["chunk_id"].tolist() == expected["chunk_id"].tolist()
    np.testing.assert_array_equal(found["metric_value"], expected["metric_value"])


def test_a_filter_that_few_rows_pass_still_gives_top_k(make_store: Callable[..., Store]) -> None:
    random = np.random.default_rng(0)
    matrix = random.normal(size=(2000, 8))
    matrix[5:10] *= -1
    store = make_store({"far": ["x"] * 5, "near": ["y"] * 1995}, vectors=matrix)
    query = matrix[10:].mean(axis=0)
    assert len(retrieve_vss(store, query, top_k=3, filter={"origin": "far"})) == 3


def test_after_a_delete_the_next_nearest_come_up(make_store: Callable[..., Store]) -> None:
    random = np.random.default_rng(0)
    matrix = random.normal(size=(60, 8))
    store = make_store({f"d{row:02d}": ["x", "y"] for row in range(30)}, vectors=matrix)
    query = random.normal(size=8)
    everything = retrieve_vss(store, query, top_k=60)
    gone = everything["origin"].drop_duplicates()[:12].tolist()
    for origin in gone:
        store.delete(origin)
    left = everything[~everything["origin"].isin(gone)]
    assert retrieve_vss(store, query, top_k=10)["chunk_id"].tolist() == left["chunk_id"][:10].tolist()


@pytest.mark.parametrize(("top_k", "rows"), [(10, 3), (3, 3), (1, 1)])
def test_top_k_rows_or_as_many_as_there_are(make_store: Callable[..., Store], top_k: int, rows: int) -> None:
    store = make_store({"d": ["apple", "banana", "cherry"]})
    assert len(retrieve_vss(store, "apple", top_k=top_k)) == rows


@pytest.mark.parametrize("top_k", [0, -1, 1.5, None, "3", True])
def test_top_k_is_a_positive_whole_number(fruit: Store, top_k: Any) -> None:
    with pytest.raises(RetrievalError, match="top_k must be a whole number of 1 or more"):
        retrieve_vss(fruit, "apple", top_k=top_k)


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (np.ones(5), {}, "5 numbers, this store's vectors have 8"),
        (np.full(8, np.nan), {}, "NaN or infinity"),
        (np.zeros(8), {}, "all zeros"),
        (np.ones((2, 8)), {}, "a text or one vector"),
        (3, {}, "a text or one vector"),
        ("apple", {"method": "l2"}, "use one of cosine_distance, euclidean_distance"),
        ("apple", {"min_similarity": 1.5}, "between -1 and 1"),
        ("apple", {"min_similarity": "0.5"}, "must be a number or None"),
    ],
)
def test_what_is_out_of_range_is_said(
    fruit: Store, query: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(RetrievalError, match=message):
        retrieve_vss(fruit, query, **options)


@pytest.mark.parametrize("query", ["", "  \n\t", "\x00\x1f"])
def test_a_blank_query_finds_nothing(fruit: Store, query: str) -> None:
    found = retrieve_vss(fruit, query)
    assert len(found) == 0
    assert found.columns.tolist() == retrieve_vss(fruit, "apple").columns.tolist()


def test_a_text_is_embedded_once(toy_model: FunctionEmbedder) -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return toy_model.embed(texts)

    with Store.create(":memory:", FunctionEmbedder(embed, 8, "counting")) as store:
        store.insert(pd.DataFrame({"origin": "d", "text": ["apple"]}))
        asked.clear()
        for _ in range(3):
            retrieve_vss(store, "fig \ud800")
        assert asked == ["fig \ufffd"]


def test_an_empty_store_and_a_filter_nothing_passes_give_empty_tables(
    make_store: Callable[..., Store], fruit: Store
) -> None:
    assert len(retrieve_vss(make_store({}), "apple")) == 0
    assert len(retrieve_vss(fruit, "apple", filter="year > 3000")) == 0


def test_a_store_without_vectors_says_so() -> None:
    with Store.create(":memory:") as store, pytest.raises(EmbedError):
        retrieve_vss(store, "apple")


@pytest.mark.parametrize("method", VSS_METHODS)
def test_min_similarity_is_the_cosine_whatever_the_method(
    make_store: Callable[..., Store], method: str
) -> None:
    matrix = np.array([[1, 0], [0.8, 0.6], [0.79, np.sqrt(1 - 0.79**2)], [-1, 0], [0, 3]])
    store = make_store({"d": ["a", "b", "c", "d", "e"]}, vectors=matrix)

    def found(minimum: float | None) -> list[int]:
        rows = retrieve_vss(store, [2, 0], top_k=5, method=method, min_similarity=minimum)
        return sorted(rows["chunk_id"].tolist())

    assert found(0.8) == [1, 2]
    assert found(0.79) == [1, 2, 3]
    assert found(1) == [1]
    assert found(-0.5) == [1, 2, 3, 5]
    assert found(None) == found(0) == [1, 2, 3, 4, 5]
