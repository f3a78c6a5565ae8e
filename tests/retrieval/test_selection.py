from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.chunking import Chunks, markdown_chunk
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import Selection, retrieve_bm25, retrieve_hybrid, retrieve_vss
from ragnar_core.store import Store

WORDS = ["apple", "banana", "cherry", "damson", "elder", "fig", "grape", "hazel"]


@pytest.fixture
def repeated(make_store: Callable[..., Store]) -> Store:
    """60 copies of the nearest text in 4 documents, then 5 others, ever farther."""
    copies = {f"copy-{at}": ["apple  apple", "apple\napple", "apple apple"] * 5 for at in range(4)}
    others = {f"other-{at}": ["apple " + "banana cherry " * (at + 1)] for at in range(5)}
    return make_store({**copies, **others})


def test_duplicates_are_left_out_and_refilled(repeated: Store) -> None:
    found = retrieve_vss(repeated, "apple", top_k=4, selection=Selection(drop_duplicates=True))
    assert found["origin"].tolist() == ["copy-0", "other-0", "other-1", "other-2"]
    everything = retrieve_vss(repeated, "apple", top_k=50, selection=Selection(drop_duplicates=True))
    assert len(everything) == 6


def test_a_limit_per_document_is_refilled(fruit: Store) -> None:
    found = retrieve_bm25(fruit, "apple fig", top_k=20, selection=Selection(per_document=1))
    assert len(found) == 20
    assert found["doc_id"].is_unique
    ranked = retrieve_bm25(fruit, "apple fig", top_k=120)
    assert found["chunk_id"].tolist() == ranked.drop_duplicates("doc_id")["chunk_id"].head(20).tolist()
    two = retrieve_bm25(fruit, "apple fig", top_k=120, selection=Selection(per_document=2))
    assert two.groupby("doc_id").size().max() == 2
    assert two["chunk_id"].tolist() == ranked.groupby("doc_id").head(2)["chunk_id"].tolist()


@pytest.mark.parametrize("search", [retrieve_vss, retrieve_bm25, retrieve_hybrid])
def test_merged_passages_are_refilled_to_top_k(make_store: Callable[..., Store], search: Any) -> None:
    text = "".join(
        f"{word.capitalize()} sentence number {at} is here. " for at in range(12) for word in WORDS
    )
    store = make_store({"last": ["apple and a little lemon"]})
    store.insert(markdown_chunk(MarkdownDocument(text, "long"), target_size=120))
    found = search(store, "apple", top_k=6, selection=Selection(deoverlap=True))
    assert len(found) == 6
    assert sum(map(len, found["chunk_id"])) > 6
    for row in found.to_dict("records"):
        assert row["text"] == store.document(row["origin"]).text[row["start"] : row["end"]]
        assert len(row["metric_value"]) == len(row["chunk_id"])
    places = found.sort_values(["origin", "start"])
    apart = places["start"] >= places.groupby("origin")["end"].shift(fill_value=0)
    assert apart.all()


def test_deoverlap_takes_the_shortest_start_of_the_ranking_that_makes_top_k(
    make_store: Callable[..., Store],
) -> None:
    store = make_store({})
    text = "apple " * 30
    matrix = np.array([[10, at] + [0] * 6 for at in range(5)], dtype=np.float32)
    chunks = pd.DataFrame({"start": [0, 60, 30, 120, 100], "end": [40, 100, 70, 160, 130]})
    chunks["text"] = [text[start:end] for start, end in zip(chunks["start"], chunks["end"], strict=True)]
    store.insert(Chunks.from_table(MarkdownDocument(text.strip() + "x" * 20, "d"), chunks), vectors=matrix)
    query = matrix[0]

    def passages(top_k: int) -> list[list[int]]:
        found = retrieve_vss(store, query, top_k=top_k, selection=Selection(deoverlap=True))
        return [sorted(numbers) for numbers in found["chunk_id"]]

    assert passages(1) == [[1]]
    assert passages(2) == [[1], [2]]
    assert passages(3) == [[1, 2, 3], [4, 5]]


def test_maximal_marginal_relevance_by_hand(make_store: Callable[..., Store]) -> None:
    matrix = np.array([[1, 0, 0], [0.99, 0.14, 0], [0.8, 0, 0.6], [0.7, 0.7, 0.1]])
    store = make_store({"d": ["a", "b", "c", "d"]}, vectors=matrix)
    query = np.array([1.0, 0.05, 0.0])

    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    relevance = unit @ (query / np.linalg.norm(query))
    relevance /= relevance.max()

    def expected(weight: float) -> list[int]:
        picked: list[int] = []
        while len(picked) < 3:
            gains = {
                row: weight * relevance[row]
                - (1 - weight) * max([unit[row] @ unit[other] for other in picked], default=0)
                for row in range(4)
                if row not in picked
            }
            picked.append(max(gains, key=lambda row: gains[row]))
        return [row + 1 for row in picked]

    orders = set()
    for weight in (1.0, 0.7, 0.5, 0.2):
        found = retrieve_vss(store, query, top_k=3, selection=Selection(mmr=weight))
        assert found["chunk_id"].tolist() == expected(weight)
        orders.add(tuple(found["chunk_id"]))
    assert len(orders) > 1
    assert retrieve_vss(store, query, top_k=3, selection=Selection(mmr=1))["chunk_id"].tolist() == [1, 2, 3]


def test_mmr_and_a_limit_together(fruit: Store) -> None:
    found = retrieve_hybrid(fruit, "apple fig", top_k=12, selection=Selection(mmr=0.5, per_document=1))
    assert len(found) == 12
    assert found["doc_id"].is_unique


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_document": 0}, "per_document must be"),
        ({"per_document": 1.5}, "per_document must be"),
        ({"mmr": 1.1}, "mmr must be a number between 0 and 1"),
        ({"mmr": "x"}, "mmr must be"),
    ],
)
def test_settings_out_of_range_are_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrievalError, match=message):
        Selection(**options)


def test_a_version_1_store_takes_limits_but_no_merging(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple", "apple pie"], "b": ["apple tart"]}, version=1)
    found = retrieve_vss(store, "apple", top_k=3, selection=Selection(per_document=1))
    assert sorted(found["origin"]) == ["a", "b"]
    with pytest.raises(RetrievalError, match="version 1"):
        retrieve_vss(store, "apple", selection=Selection(deoverlap=True))
