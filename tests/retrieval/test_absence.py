from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import SearchSettings, Selection, retrieve_bm25, retrieve_vss, search, why_not
from ragnar_core.store import Store

QUERY = "apple fig"


def test_a_chunk_below_the_end_of_the_list_has_its_rank(fruit: Store) -> None:
    for mode, retrieve, name in (("vss", retrieve_vss, "VSS"), ("bm25", retrieve_bm25, "BM25")):
        ranked: Any = retrieve(fruit, QUERY, top_k=120)  # type: ignore[operator]
        absent = why_not(fruit, QUERY, SearchSettings(mode=mode, top_k=5), chunk_id=ranked["chunk_id"][13])
        assert absent.reason == "rank"
        assert absent.detail == f"{name} rank 14; the list ends at 5"
        assert (absent.vss_rank if mode == "vss" else absent.bm25_rank) == 14


def test_a_hit_is_said_to_be_one(fruit: Store) -> None:
    settings = SearchSettings(mode="hybrid", top_k=5)
    results = search(fruit, QUERY, settings)
    present = why_not(fruit, QUERY, settings, chunk_id=results["chunk_id"][3], results=results)
    assert (present.reason, present.position, present.fused_rank) == ("in results", 4, 4)


def test_a_filter_is_named_with_the_part_that_fails(fruit: Store) -> None:
    settings = SearchSettings(filter='category == "news" and year >= 2006')
    absent = why_not(fruit, QUERY, settings, origin="document-03")
    assert absent.reason == "filter"
    assert absent.detail == "the filter asks for: year is at least 2006; its year is 2003"
    assert (absent.vss_rank, absent.bm25_rank, absent.chunks) == (None, None, 5)
    assert absent.unfiltered_vss_rank == min(
        rank
        for rank, origin in enumerate(retrieve_vss(fruit, QUERY, top_k=120)["origin"], 1)
        if origin == "document-03"
    )


def test_thresholds_are_named_with_the_value(fruit: Store) -> None:
    last = retrieve_vss(fruit, QUERY, top_k=120).iloc[-1]
    absent = why_not(fruit, QUERY, SearchSettings(mode="vss", min_similarity=0.9), chunk_id=last["chunk_id"])
    assert absent.reason == "similarity"
    assert absent.detail == f"its similarity {1 - last['metric_value']:.3f} is below min_similarity 0.9"
    absent = why_not(fruit, QUERY, SearchSettings(mode="bm25", min_bm25=2), chunk_id=last["chunk_id"])
    assert absent.reason == "bm25"


def test_terms_that_do_not_occur(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple pie"], "b": ["banana split"]})
    assert why_not(store, "apple", SearchSettings(mode="bm25"), origin="b").reason == "no term"
    absent = why_not(store, "apple banana", SearchSettings(mode="bm25", conjunctive=True), origin="a")
    assert (absent.reason, absent.detail) == (
        "missing terms",
        "it does not hold banana, and every term is asked for",
    )
    assert why_not(store, "", SearchSettings(mode="bm25"), origin="a").reason == "empty query"


def test_a_merged_chunk_is_found_in_its_passage(make_store: Callable[..., Store]) -> None:
    from ragnar_core.chunking import markdown_chunk
    from ragnar_core.documents.document import MarkdownDocument

    store = make_store({})
    store.insert(markdown_chunk(MarkdownDocument("Apple here. Fig there. " * 20, "d"), target_size=100))
    settings = SearchSettings(mode="vss", top_k=1, selection=Selection(deoverlap=True))
    results = search(store, QUERY, SearchSettings(mode="union", top_k=3))
    numbers = next(numbers for numbers in results["chunk_id"] if len(numbers) > 1)
    found = why_not(store, QUERY, settings, chunk_id=numbers[1], results=results)
    assert found.reason == "merged"
    assert f"merged with chunk {numbers[0]}" in found.detail


def test_what_the_selection_passed_over(make_store: Callable[..., Store]) -> None:
    texts = {"a": ["apple apple", "apple apple apple"], "b": ["apple  apple"], "c": ["apple banana"]}
    store = make_store(texts)
    found = why_not(
        store,
        "apple",
        SearchSettings(mode="vss", top_k=3, selection=Selection(drop_duplicates=True)),
        origin="b",
    )
    assert (found.reason, found.detail) == ("duplicate", "its text is that of result 1")
    one = SearchSettings(mode="vss", top_k=3, selection=Selection(per_document=1))
    shown = search(store, "apple", one)["chunk_id"].tolist()
    hidden = next(number for number in (1, 2) if number not in shown)
    assert why_not(store, "apple", one, chunk_id=hidden).reason == "per document"
    diverse = SearchSettings(mode="vss", top_k=2, selection=Selection(mmr=0.1))
    assert search(store, "apple", diverse)["origin"].tolist()[1] == "c"
    assert why_not(store, "apple", diverse, chunk_id=hidden).reason in ("diversity", "rank")
    assert why_not(store, "apple", diverse, origin="b").reason == "diversity"


def test_a_document_stands_for_its_best_chunk(fruit: Store) -> None:
    ranked = retrieve_bm25(fruit, QUERY, top_k=120)
    origin = ranked["origin"].drop_duplicates().iloc[8]
    absent = why_not(fruit, QUERY, SearchSettings(mode="bm25"), origin=origin)
    assert absent.chunk_id == ranked[ranked["origin"] == origin]["chunk_id"].iloc[0]
    assert absent.to_dict()["explanation"]["bm25"]["rank"] == absent.bm25_rank


def test_one_target_that_exists(fruit: Store) -> None:
    settings = SearchSettings()
    with pytest.raises(RetrievalError, match="give chunk_id or origin"):
        why_not(fruit, QUERY, settings)
    with pytest.raises(RetrievalError, match="no document 'nowhere'"):
        why_not(fruit, QUERY, settings, origin="nowhere")
    with pytest.raises(RetrievalError, match="no chunk 9999"):
        why_not(fruit, QUERY, settings, chunk_id=9999)


def test_without_a_model_words_have_their_reasons(without_model: Store) -> None:
    settings = SearchSettings(mode="bm25", top_k=1)
    absent = why_not(without_model, "apple", settings, origin="a")
    assert (absent.reason, absent.detail) == ("rank", "BM25 rank 2; the list ends at 1")
    assert (absent.bm25_rank, absent.vss_rank, absent.fused_rank) == (2, None, None)
    assert why_not(without_model, "apple", settings, chunk_id=2).reason == "in results"
    assert why_not(without_model, "apple", settings, chunk_id=3).reason == "no term"
    assert why_not(without_model, " ", settings, chunk_id=3).reason == "empty query"


@pytest.mark.parametrize("mode", ["vss", "hybrid", "union"])
def test_without_a_model_the_other_searches_say_that_it_is_missing(without_model: Store, mode: str) -> None:
    absent = why_not(without_model, "apple", SearchSettings(mode=mode), origin="b")
    assert absent.reason == "no model"
    assert absent.detail == f"the query cannot be embedded: {absent.explanation.no_vss.rstrip('.')}"
    assert (absent.chunk_id, absent.bm25_rank, absent.vss_rank) == (2, 1, None)


def test_a_failing_model_is_asked_once(toy_model: FunctionEmbedder) -> None:
    asked = []

    def failing(texts: list[str]) -> Any:
        asked.append(texts)
        raise RuntimeError("out")

    with Store.create(":memory:", FunctionEmbedder(toy_model.embed, 8, query=failing)) as store:
        store.insert(pd.DataFrame({"origin": ["a"], "text": ["apple"]}))
        assert why_not(store, "apple", SearchSettings(), origin="a").reason == "no model"
    assert asked == [["apple"]]
