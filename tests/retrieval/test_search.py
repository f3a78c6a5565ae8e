from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import EmbedError, FilterError, RetrievalError
from ragnar_core.retrieval import (
    SearchSettings,
    Selection,
    retrieve,
    retrieve_bm25,
    retrieve_hybrid,
    retrieve_vss,
    search,
    search_batch,
    search_ids,
)
from ragnar_core.store import Store

SETTINGS = SearchSettings(
    mode="hybrid",
    top_k=7,
    weights=(2, 1),
    filter='category == "news"',
    fusion="weighted_scores",
    selection=Selection(per_document=2),
)


@pytest.mark.parametrize(
    ("mode", "function"),
    [("vss", retrieve_vss), ("bm25", retrieve_bm25), ("hybrid", retrieve_hybrid), ("union", retrieve)],
)
def test_a_mode_is_a_function(fruit: Store, mode: str, function: Any) -> None:
    found = search(fruit, "apple fig", SearchSettings(mode=mode, top_k=4))
    pd.testing.assert_frame_equal(found, function(fruit, "apple fig", top_k=4))


def test_settings_survive_json_and_say_only_what_differs() -> None:
    assert SearchSettings().to_dict() == {}
    plain = SETTINGS.to_dict()
    assert SearchSettings.from_dict(json.loads(json.dumps(plain))) == SETTINGS
    assert plain["weights"] == [2.0, 1.0]
    assert "k" not in plain
    as_text = SearchSettings(filter={"category": ["a", "b"]}).to_dict()
    assert as_text == {"filter": 'category in ["a", "b"]'}


def test_the_same_in_python(fruit: Store) -> None:
    line = SETTINGS.as_python('apple "fig"')
    assert line == (
        "retrieve_hybrid(store, 'apple \"fig\"', top_k=7, weights=(2.0, 1.0), fusion='weighted_scores', "
        "filter='category == \"news\"', selection=Selection(deoverlap=False, touching=False, per_document=2, "
        "drop_duplicates=False, mmr=None))"
    )
    names = {"retrieve_hybrid": retrieve_hybrid, "Selection": Selection, "store": fruit}
    pd.testing.assert_frame_equal(eval(line, names), search(fruit, 'apple "fig"', SETTINGS))
    assert SearchSettings(mode="union").as_python("x") == "retrieve(store, 'x')"


def test_a_mode_tells_which_settings_matter() -> None:
    assert SearchSettings(mode="vss").applies("min_similarity")
    assert not SearchSettings(mode="vss").applies("k")
    assert SearchSettings(mode="hybrid").applies("rrf_k")
    assert not SearchSettings(mode="hybrid", fusion="weighted_scores").applies("rrf_k")


def test_a_batch_is_each_query_in_order(fruit: Store) -> None:
    queries = ["apple", "fig grape", " "]
    for mode in ("vss", "bm25", "hybrid", "union"):
        settings = SearchSettings(mode=mode, top_k=5)
        found = search_batch(fruit, queries, settings)
        assert [len(one) for one in found][2] == 0
        for query, one in zip(queries, found, strict=True):
            pd.testing.assert_frame_equal(one, search(fruit, query, settings))


def test_a_batch_embeds_its_queries_in_one_call_and_finds_the_same(toy_model: FunctionEmbedder) -> None:
    asked: list[list[str]] = []

    def embed_queries(texts: list[str]) -> Any:
        asked.append(list(texts))
        return toy_model.embed_queries(texts)[:, ::-1]

    model = FunctionEmbedder(toy_model.embed, 8, query=embed_queries, batch_size=500)
    queries = ["apple", "fig grape", " ", "apple", "lemon \ud800", *(f"kiwi {n}" for n in range(300))]
    with Store.create(":memory:", model) as store:
        store.insert(pd.DataFrame({"origin": "a", "text": ["apple fig", "grape lemon", "kiwi", "fig kiwi"]}))
        settings = SearchSettings(mode="hybrid", top_k=3, filter="start >= 0")
        found = search_batch(store, iter(queries), settings)
        assert [len(texts) for texts in asked] == [126, 128, 49]
        assert asked[0][:4] == ["apple", "fig grape", "lemon \ufffd", "kiwi 0"]
        search_batch(store, queries[-5:], settings)
        search_batch(store, queries, SearchSettings(mode="bm25"))
        assert len(asked) == 3
        assert len(found) == len(queries)
        for query, one in zip(queries, found, strict=True):
            pd.testing.assert_frame_equal(one, search(store, query, settings))


def test_a_batch_of_blank_queries_or_none_needs_no_model() -> None:
    with Store.create(":memory:", None, embedding_size=2) as store:
        assert search_batch(store, [], SearchSettings()) == []
        assert [len(one) for one in search_batch(store, [" ", ""], SearchSettings())] == [0, 0]
        with pytest.raises(EmbedError, match="which model built it"):
            search_batch(store, [" ", "apple"], SearchSettings(mode="vss"))


@pytest.mark.parametrize("queries", [None, "apple", 3, [None], ["apple", 3]])
def test_a_batch_is_a_list_of_texts(fruit: Store, queries: Any) -> None:
    with pytest.raises(RetrievalError, match=r"must be a (list of texts|text), not"):
        search_batch(fruit, queries, SearchSettings())


@pytest.mark.parametrize(
    "settings",
    [
        SearchSettings(mode="vss", top_k=9, filter='category == "news"', min_similarity=0.6, min_bm25=9),
        SearchSettings(mode="bm25", top_k=9, k=2, conjunctive=True, min_similarity=0.99),
        SearchSettings(mode="hybrid", top_k=9, weights=(1, 2), min_bm25=0.1),
        SearchSettings(mode="hybrid", top_k=9, fusion="weighted_scores", candidates=12),
    ],
)
def test_ids_alone_are_those_of_the_search(fruit: Store, settings: SearchSettings) -> None:
    for query in ("apple", "fig grape lemon", " "):
        found = search_ids(fruit, query, settings)
        assert found.tolist() == search(fruit, query, settings)["chunk_id"].tolist()
    assert len(search_ids(fruit, "apple", settings)) > 0


def test_ids_alone_are_refused_where_a_row_is_no_chunk(fruit: Store) -> None:
    for settings in (SearchSettings(mode="union"), SearchSettings(selection=Selection(per_document=1))):
        with pytest.raises(RetrievalError, match="use search"):
            search_ids(fruit, "apple", settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "dense"}, "use one of vss, bm25, hybrid, union"),
        ({"top_k": 0}, "top_k must be"),
        ({"weights": (0, 0)}, "not both 0"),
        ({"limit": -1}, "limit must be"),
        ({"b": 2}, "b must be"),
    ],
)
def test_settings_out_of_range_are_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrievalError, match=message):
        SearchSettings(**options)


def test_a_filter_that_does_not_parse_and_an_unknown_setting() -> None:
    with pytest.raises(FilterError, match="needs a value"):
        SearchSettings(filter="year >=")
    with pytest.raises(RetrievalError, match="setting 'topk' is unknown; the settings are b, candidates"):
        SearchSettings.from_dict({"topk": 3})
