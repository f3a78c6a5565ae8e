from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import (
    SearchSettings,
    explain,
    nearest_sentences,
    query_matches,
    retrieve_bm25,
    retrieve_hybrid,
    retrieve_vss,
    search,
)
from ragnar_core.store import Store

QUERY = "the apples FIG nothing"


@pytest.mark.parametrize(
    "settings", [SearchSettings(), SearchSettings(k=2, b=0.3, filter='category == "news"')]
)
def test_contributions_sum_to_the_score_and_ranks_are_the_searchs(
    fruit: Store, settings: SearchSettings
) -> None:
    found = retrieve_bm25(fruit, QUERY, top_k=120, k=settings.k, b=settings.b, filter=settings.filter)
    assert len(found) > 10
    for rank, (number, score) in enumerate(zip(found["chunk_id"], found["metric_value"], strict=True), 1):
        why = explain(fruit, QUERY, number, settings).bm25
        assert why.rank == rank
        assert why.matches == len(found)
        assert why.score == pytest.approx(score, rel=0, abs=1e-9)
        assert sum(term.contribution for term in why.terms) == pytest.approx(score, rel=0, abs=1e-9)
        for term in why.terms:
            assert term.contribution == pytest.approx(term.idf * term.saturation, abs=1e-12)
            norm = term.frequency + settings.k * term.length_factor
            assert term.saturation == pytest.approx(term.frequency * (settings.k + 1) / norm, abs=1e-12)


def test_terms_say_what_was_written_counted_and_ignored(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["Apples and apple pie"], "b": ["a fig"], "c": ["nuts"]})
    why = explain(store, QUERY, 1).bm25
    assert [(term.term, term.words, term.document_frequency, term.frequency) for term in why.terms] == [
        ("appl", ("apples",), 1, 2),
        ("fig", ("FIG",), 1, 0),
        ("noth", ("nothing",), 0, 0),
    ]
    assert why.ignored == ("the",)
    assert why.chunks == 3
    assert why.length == 3
    assert why.arithmetic().startswith("appl: 0.426 × ")
    assert explain(store, QUERY, 3).bm25.arithmetic() == "no term occurs = 0.0000"
    assert explain(store, QUERY, 3).bm25.rank is None


def test_distance_similarity_and_rank_are_those_of_the_search(fruit: Store) -> None:
    for method in ("cosine_distance", "euclidean_distance"):
        found = retrieve_vss(fruit, QUERY, top_k=120, method=method)
        for place in (0, 1, 57, 119):
            why = explain(fruit, QUERY, found["chunk_id"][place], SearchSettings(method=method)).vss
            assert why is not None
            assert (why.rank, why.ranked, why.method) == (place + 1, 120, method)
            assert why.distance == pytest.approx(found["metric_value"][place], abs=1e-12)
            if method == "cosine_distance":
                assert why.similarity == pytest.approx(1 - why.distance, abs=1e-12)


@pytest.mark.parametrize("fusion", ["rrf", "weighted_scores", "convex"])
def test_the_fusions_parts_sum_to_its_score(fruit: Store, fusion: str) -> None:
    settings = SearchSettings(fusion=fusion, weights=(2, 1), candidates=30, top_k=30)
    found = retrieve_hybrid(fruit, QUERY, top_k=30, fusion=fusion, weights=(2, 1), candidates=30)
    for place in range(30):
        row = found.iloc[place]
        why = explain(fruit, QUERY, row["chunk_id"], settings).fusion
        assert why is not None
        assert why.rank == place + 1
        assert why.score == pytest.approx(row["score"], abs=1e-15)
        assert why.vss_part + why.bm25_part == pytest.approx(row["score"], abs=1e-15)


def test_the_fusions_arithmetic_reads_as_it_was_computed(fruit: Store) -> None:
    found = retrieve_hybrid(fruit, QUERY, top_k=120)
    row = found[found["bm25_rank"].notna()].iloc[0]
    why = explain(fruit, QUERY, row["chunk_id"]).fusion
    assert why is not None
    vss, bm25 = int(row["vss_rank"]), int(row["bm25_rank"])
    assert (
        why.arithmetic()
        == f"VSS 1 / (60 + {vss}) + BM25 1 / (60 + {bm25}) = {1 / (60 + vss) + 1 / (60 + bm25):.5f}"
    )


def test_what_the_filter_shuts_out_has_no_rank(fruit: Store) -> None:
    settings = SearchSettings(filter='category == "blog"')
    why = explain(fruit, QUERY, 1, settings)
    assert why.vss is not None
    assert why.vss.rank is None
    assert why.bm25.rank is None
    assert why.fusion is not None
    assert why.fusion.rank is None
    assert why.vss.ranked == 40


def test_a_blank_query_and_an_unknown_chunk(fruit: Store) -> None:
    assert explain(fruit, " ", 3).vss is None
    with pytest.raises(RetrievalError, match="no chunk 9999"):
        explain(fruit, QUERY, 9999)


def test_an_explanation_is_plain_data(fruit: Store) -> None:
    plain = explain(fruit, QUERY, 3).to_dict()
    assert plain["bm25"]["terms"][0]["term"] == "appl"
    assert set(plain) == {"chunk_id", "bm25", "vss", "fusion", "no_vss"}


def test_the_nearest_sentences_of_a_text(fruit: Store) -> None:
    text = "Kiwi and lemon. \n\n  Apple fig apple! Hazel iris?"
    found = nearest_sentences(fruit, "apple fig", text)
    assert found[0].text == "Apple fig apple!"
    assert sorted(one.text for one in found) == ["Apple fig apple!", "Hazel iris?", "Kiwi and lemon."]
    for one in found:
        assert text[one.start : one.end] == one.text
    similarity = [one.similarity for one in found]
    assert similarity == sorted(similarity, reverse=True)
    expected = fruit.embedder.embed(["Apple fig apple!"])[0] @ fruit.embedder.embed_query("apple fig")
    assert similarity[0] == pytest.approx(float(expected), abs=1e-6)
    assert len(nearest_sentences(fruit, "apple", text, limit=1)) == 1
    assert nearest_sentences(fruit, "apple", "  \n") == []


def test_matches_are_where_the_querys_terms_stand(fruit: Store) -> None:
    text = "An apple, two Apples and a figment; FIG."
    found = query_matches(fruit, "apples the fig", text)
    assert [text[start:end] for start, end, _ in found] == ["apple", "Apples", "FIG"]
    assert [term for _, _, term in found] == ["appl", "appl", "fig"]


def test_explaining_every_hit_of_a_search(fruit: Store) -> None:
    settings = SearchSettings(mode="hybrid", top_k=8)
    scores = [
        explain(fruit, QUERY, number, settings).fusion
        for number in search(fruit, QUERY, settings)["chunk_id"]
    ]
    assert [one.rank for one in scores if one] == list(np.arange(1, 9))


def test_words_are_explained_where_the_query_cannot_be_embedded(without_model: Store) -> None:
    for mode in ("vss", "bm25", "hybrid", "union"):
        why = explain(without_model, "apple", 2, SearchSettings(mode=mode, min_similarity=0.5))
        assert (why.chunk_id, why.vss, why.fusion) == (2, None, None)
        assert (why.bm25.rank, why.bm25.matches, why.bm25.terms[0].frequency) == (1, 2, 2)
        assert why.bm25.score == pytest.approx(
            retrieve_bm25(without_model, "apple")["metric_value"][0], abs=1e-12
        )
        reasons = ("has no vectors", "which model built it", "function", "the model is out")
        assert any(reason in why.no_vss for reason in reasons)


def test_the_reason_for_a_missing_part_is_empty_where_nothing_is_amiss(fruit: Store) -> None:
    assert explain(fruit, QUERY, 3).no_vss == ""
    assert explain(fruit, " ", 3).no_vss == ""


def test_a_threshold_that_the_mode_does_not_take_shuts_nothing_out(fruit: Store) -> None:
    settings = SearchSettings(mode="bm25", top_k=120, min_similarity=0.9)
    found = search(fruit, QUERY, settings)["chunk_id"]
    assert [explain(fruit, QUERY, number, settings).bm25.rank for number in found] == list(
        range(1, len(found) + 1)
    )
    settings = SearchSettings(mode="vss", top_k=120, min_bm25=0.9)
    first = search(fruit, "zebra", settings)["chunk_id"][0]
    why = explain(fruit, "zebra", first, settings).vss
    assert why is not None
    assert why.rank == 1
