from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import Filter, retrieve_bm25
from ragnar_core.retrieval.allowed import filter_columns
from ragnar_core.store import AnalyzerOptions, Store, searched_text


def by_hand(
    store: Store, query: str, k: float = 1.2, b: float = 0.75, conjunctive: bool = False
) -> dict[int, float]:
    """BM25 by the book, from the texts."""
    chunks = store.chunks()
    tokens = {
        number: store.analyzer.tokens(searched_text(context, text))
        for number, context, text in zip(chunks["chunk_id"], chunks["context"], chunks["text"], strict=True)
    }
    average = sum(map(len, tokens.values())) / len(tokens)
    scores = {}
    terms = set(store.analyzer.tokens(query))
    for number, words in tokens.items():
        count = Counter(words)
        if conjunctive and not all(count[term] for term in terms):
            continue
        score = 0.0
        for term in terms:
            if count[term]:
                df = sum(term in others for others in tokens.values())
                idf = math.log10((len(tokens) - df + 0.5) / (df + 0.5) + 1)
                score += idf * count[term] * (k + 1) / (count[term] + k * (1 - b + b * len(words) / average))
        if score:
            scores[number] = score
    return scores


@pytest.mark.parametrize(("k", "b"), [(1.2, 0.75), (0, 0), (2.5, 1), (0.5, 0)])
@pytest.mark.parametrize("conjunctive", [False, True])
@pytest.mark.parametrize(
    "query", ["apple", "fig grapes", "apple apple LEMON nothing", "iris juniper kiwi lemon part"]
)
def test_scores_equal_the_formula(fruit: Store, query: str, k: float, b: float, conjunctive: bool) -> None:
    expected = by_hand(fruit, query, k, b, conjunctive)
    found = retrieve_bm25(fruit, query, top_k=120, k=k, b=b, conjunctive=conjunctive)
    assert found["chunk_id"].tolist() == sorted(
        expected, key=lambda number: (-round(expected[number], 12), number)
    )
    for number, score in zip(found["chunk_id"], found["metric_value"], strict=True):
        assert score == pytest.approx(expected[number], rel=0, abs=1e-9)
    assert set(found["metric_name"]) <= {"bm25"}


def test_it_equals_duckdbs_own_match_bm25(make_store: Callable[..., Store]) -> None:
    """Values of match_bm25 (duckdb and fts 1.5.5) for these five texts and default settings."""
    texts = [
        "the quick brown fox jumps over the lazy dog",
        "foxes and dogs are animals",
        "a dog barks at another dog",
        "nothing here matches",
        "brown bread and brown sugar",
    ]
    store = make_store({"d": texts}, analyzer=AnalyzerOptions.duckdb())
    found = retrieve_bm25(store, "brown dogs", top_k=5)
    expected = [
        (5, 0.498070067951456),
        (1, 0.4679147117242777),
        (3, 0.3328787796824322),
        (2, 0.2459188737541564),
    ]
    assert found["chunk_id"].tolist() == [number for number, _ in expected]
    np.testing.assert_allclose(found["metric_value"], [score for _, score in expected], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "filter", ['category == "blog"', {"price": {"$gte": 0.5}}, "not ripe == true", "year == 2003"]
)
@pytest.mark.parametrize("top_k", [1, 4, 200])
def test_a_filtered_search_is_brute_force_and_keeps_the_scores(fruit: Store, filter: Any, top_k: int) -> None:
    everything = retrieve_bm25(fruit, "apple cherry", top_k=120)
    passes = Filter.parse(filter).bind(filter_columns(fruit)).predicate()
    expected = everything[[passes(row) for row in everything.to_dict("records")]].head(top_k)
    found = retrieve_bm25(fruit, "apple cherry", top_k=top_k, filter=filter)
    assert len(expected)
    assert found["chunk_id"].tolist() == expected["chunk_id"].tolist()
    np.testing.assert_array_equal(found["metric_value"], expected["metric_value"])


def test_equal_scores_come_in_the_order_of_chunk_id(make_store: Callable[..., Store]) -> None:
    store = make_store({"d": ["apple pie" if at % 2 else "apple tart" for at in range(40)]})
    found = retrieve_bm25(store, "apple", top_k=7)
    assert found["chunk_id"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert found["metric_value"].nunique() == 1


def test_a_term_in_every_chunk_still_counts_above_zero(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple"], "b": ["apple pie"], "c": ["pie with apple"]})
    found = retrieve_bm25(store, "apple", top_k=3)
    assert len(found) == 3
    assert (found["metric_value"] > 0).all()
    assert retrieve_bm25(store, "apple pie", top_k=3)["chunk_id"].tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    ("query", "origin"),
    [
        ("2024", "report"),
        ("42", "report"),
        ("日本語", "japanese"),
        ("検索", "japanese"),
        ("v2", "release"),
        ("python3.11", "release"),
        ("привет", "russian"),
        ("C++", "signs"),
        ("node.js", "signs"),
        ("file_not_found", "signs"),
    ],
)
def test_digits_other_scripts_and_signs_find_their_own_chunk(
    make_store: Callable[..., Store], query: str, origin: str
) -> None:
    store = make_store(
        {
            "report": ["2024 report section 42"],
            "japanese": ["日本語の文章です。検索"],
            "release": ["python3.11 release v2"],
            "apostrophe": ["it's"],
            "russian": ["Привет мир"],
            "signs": ["C++ and node.js say file_not_found"],
        }
    )
    assert retrieve_bm25(store, query)["origin"].tolist() == [origin]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "%_",
        "-- ; drop table d",
        "'; DROP TABLE chunks; --",
        "a" * 100_000,
        "\x00",
        "👍",
        "!?.,",
        "\ud800",
    ],
)
def test_odd_queries_find_nothing_and_break_nothing(fruit: Store, query: str) -> None:
    found = retrieve_bm25(fruit, query)
    assert len(found) == 0
    assert found.columns.tolist() == retrieve_bm25(fruit, "apple").columns.tolist()
    assert len(retrieve_bm25(fruit, "apple")) == 3


def test_a_long_query_is_cut_at_its_first_terms(fruit: Store) -> None:
    assert len(retrieve_bm25(fruit, " ".join(f"w{at}" for at in range(1024)) + " apple", top_k=1)) == 0
    assert len(retrieve_bm25(fruit, "apple " + " ".join(f"w{at}" for at in range(9999)), top_k=1)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": -1}, "k must be a number of 0 or more"),
        ({"k": float("nan")}, "k must be"),
        ({"b": 1.1}, "b must be a number between 0 and 1"),
        ({"b": True}, "b must be"),
        ({"top_k": 0}, "top_k must be"),
        ({"min_bm25": "1"}, "min_bm25 must be a number"),
    ],
)
def test_settings_out_of_range_are_said(fruit: Store, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrievalError, match=message):
        retrieve_bm25(fruit, "apple", **options)


def test_a_query_is_a_text(fruit: Store) -> None:
    with pytest.raises(RetrievalError, match="must be a text, not list"):
        retrieve_bm25(fruit, ["apple"])  # type: ignore[arg-type]


def test_min_bm25_is_inclusive(fruit: Store) -> None:
    everything = retrieve_bm25(fruit, "apple fig", top_k=120)
    least = everything["metric_value"].iloc[9]
    found = retrieve_bm25(fruit, "apple fig", top_k=120, min_bm25=float(least))
    assert found["chunk_id"].tolist() == everything["chunk_id"][everything["metric_value"] >= least].tolist()
    assert len(retrieve_bm25(fruit, "apple fig", top_k=120, min_bm25=0)) == len(everything)


def test_a_store_without_vectors_searches_words() -> None:
    with Store.create(":memory:") as store:
        store.insert(pd.DataFrame({"origin": "d", "text": ["apple pie", "banana split"]}))
        assert retrieve_bm25(store, "bananas")["chunk_id"].tolist() == [2]
