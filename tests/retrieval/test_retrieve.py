from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ragnar_core.chunking import markdown_chunk
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import chunks_deoverlap, retrieve, retrieve_bm25, retrieve_vss
from ragnar_core.store import Store

QUERY = "apple fig juniper"


@pytest.fixture(scope="module")
def overlapping(toy_model: Any) -> Any:
    random = np.random.default_rng(2)
    words = ["apple", "banana", "cherry", "fig", "grape", "iris", "kiwi", "lemon"]
    with Store.create(":memory:", toy_model) as store:
        for number in range(6):
            sentences = [" ".join(random.choice(words, size=6)).capitalize() + "." for _ in range(40)]
            document = MarkdownDocument(f"# Part {number}\n\n" + " ".join(sentences), f"part-{number}")
            store.insert(markdown_chunk(document, target_size=200))
        yield store


def test_it_is_the_union_of_both_searches_each_chunk_once(fruit: Store) -> None:
    vss = retrieve_vss(fruit, QUERY, top_k=4).set_index("chunk_id")["metric_value"]
    bm25 = retrieve_bm25(fruit, QUERY, top_k=4).set_index("chunk_id")["metric_value"]
    found = retrieve(fruit, QUERY, top_k=4, deoverlap=False).set_index("chunk_id")
    assert sorted(found.index) == sorted({*vss.index, *bm25.index})
    np.testing.assert_array_equal(found["cosine_distance"], vss.reindex(found.index))
    np.testing.assert_array_equal(found["bm25"], bm25.reindex(found.index))
    fused = {
        number: sum(
            1 / (61 + order.index(number))
            for order in (vss.index.tolist(), bm25.index.tolist())
            if number in order
        )
        for number in found.index
    }
    assert found.index.tolist() == sorted(fused, key=lambda number: (-fused[number], number))


def test_overlapping_chunks_are_merged(overlapping: Store) -> None:
    chunks = retrieve(overlapping, "apple banana", top_k=5, deoverlap=False)
    found = retrieve(overlapping, "apple banana", top_k=5)
    assert len(found) < len(chunks)
    expected = chunks_deoverlap(overlapping, chunks)
    assert found["chunk_id"].tolist() == expected["chunk_id"].tolist()
    for row in found.to_dict("records"):
        document = overlapping.document(row["origin"])
        assert row["text"] == document.text[row["start"] : row["end"]]
        assert len(row["cosine_distance"]) == len(row["bm25"]) == len(row["chunk_id"])


@pytest.mark.parametrize("limit", [1, 4, 9])
def test_limit_is_the_number_of_passages_as_long_as_there_are_more(overlapping: Store, limit: int) -> None:
    found = retrieve(overlapping, "apple banana", top_k=2, limit=limit)
    assert len(found) == min(limit, 6 + 3 * (limit > 6))


def test_limit_beyond_the_store_gives_all_there_is(fruit: Store) -> None:
    assert len(retrieve(fruit, QUERY, top_k=1, limit=10_000)) == 120


def test_several_queries_at_once(fruit: Store) -> None:
    queries = ["apple", "fig grape"]
    found = retrieve(fruit, queries, top_k=3, deoverlap=False).set_index("chunk_id")
    alone = {
        query: {
            number
            for search in (retrieve_vss, retrieve_bm25)
            for number in search(fruit, query, top_k=3)["chunk_id"]  # type: ignore[operator]
        }
        for query in queries
    }
    assert set(found.index) == alone["apple"] | alone["fig grape"]
    for number, asked in found["query"].items():
        assert asked == [query for query in queries if number in alone[query]]
    assert retrieve(fruit, ["apple"], deoverlap=False)["chunk_id"].tolist() == (
        retrieve(fruit, "apple", deoverlap=False)["chunk_id"].tolist()
    )


def test_filter_and_thresholds_hold_for_every_row(fruit: Store) -> None:
    found = retrieve(
        fruit, QUERY, top_k=60, deoverlap=False, filter='category == "news"', min_similarity=0.5, min_bm25=0.2
    )
    assert len(found)
    assert set(found["category"]) == {"news"}
    similar = retrieve_vss(fruit, QUERY, top_k=120, min_similarity=0.5)["chunk_id"]
    strong = retrieve_bm25(fruit, QUERY, top_k=120, min_bm25=0.2)["chunk_id"]
    assert set(found["chunk_id"]) <= set(similar) & set(strong)


def test_a_version_1_store_gives_its_chunks_as_they_are(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple pie", "banana"], "b": ["apple tart"]}, version=1)
    found = retrieve(store, "apple", top_k=2)
    assert sorted(found["text"]) == ["apple pie", "apple tart"]


def test_blank_queries_and_settings_out_of_range(fruit: Store) -> None:
    assert len(retrieve(fruit, " ")) == 0
    assert retrieve(fruit, " ").columns.tolist() == retrieve(fruit, "apple").columns.tolist()
    with pytest.raises(RetrievalError, match="list of queries is empty"):
        retrieve(fruit, [])
    with pytest.raises(RetrievalError, match="must be a text, not int"):
        retrieve(fruit, ["apple", 3])  # type: ignore[list-item]
    with pytest.raises(RetrievalError, match="limit must be a whole number"):
        retrieve(fruit, "apple", limit=0)
