from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import retrieve_bm25, retrieve_hybrid, retrieve_vss
from ragnar_core.store import Store

QUERY = "apple fig juniper"


def ranks(table: pd.DataFrame) -> dict[int, int]:
    return {number: rank for rank, number in enumerate(table["chunk_id"].tolist(), 1)}


@pytest.mark.parametrize("weights", [(1, 1), (2, 0.5), (0.25, 3)])
@pytest.mark.parametrize("rrf_k", [60, 1, 0])
@pytest.mark.parametrize("filter", [None, 'category == "news"'])
def test_reciprocal_rank_fusion_by_hand(fruit: Store, weights: Any, rrf_k: int, filter: Any) -> None:
    vss = ranks(retrieve_vss(fruit, QUERY, top_k=20, filter=filter))
    bm25 = ranks(retrieve_bm25(fruit, QUERY, top_k=20, filter=filter))
    expected = {
        number: (weights[0] / (rrf_k + vss[number]) if number in vss else 0)
        + (weights[1] / (rrf_k + bm25[number]) if number in bm25 else 0)
        for number in {*vss, *bm25}
    }
    order = sorted(expected, key=lambda number: (-expected[number], number))[:15]
    found = retrieve_hybrid(
        fruit, QUERY, top_k=15, weights=weights, rrf_k=rrf_k, candidates=20, filter=filter
    )
    assert found["chunk_id"].tolist() == order
    np.testing.assert_allclose(found["score"], [expected[number] for number in order], rtol=1e-12)
    assert [None if pd.isna(rank) else rank for rank in found["vss_rank"]] == [vss.get(n) for n in order]
    assert [None if pd.isna(rank) else rank for rank in found["bm25_rank"]] == [bm25.get(n) for n in order]


def test_every_number_has_a_column_of_its_own(fruit: Store) -> None:
    found = retrieve_hybrid(fruit, QUERY, top_k=5)
    own = ["metric_name", "metric_value", "cosine_distance", "bm25", "vss_rank", "bm25_rank", "score"]
    assert found.columns.tolist()[-7:] == own
    distance = retrieve_vss(fruit, QUERY, top_k=120).set_index("chunk_id")["metric_value"]
    score = retrieve_bm25(fruit, QUERY, top_k=120).set_index("chunk_id")["metric_value"]
    np.testing.assert_allclose(found["cosine_distance"], distance[found["chunk_id"]], atol=1e-12)
    np.testing.assert_allclose(found["bm25"], score.reindex(found["chunk_id"]).fillna(0), atol=1e-9)
    assert found["metric_value"].tolist() == found["score"].tolist()
    assert set(found["metric_name"]) == {"rrf"}


@pytest.mark.parametrize("fusion", ["rrf", "weighted_scores", "convex"])
def test_a_weight_of_zero_leaves_the_other_search_alone(fruit: Store, fusion: str) -> None:
    vss = retrieve_hybrid(fruit, QUERY, top_k=120, weights=(1, 0), fusion=fusion)
    assert vss["chunk_id"].tolist() == retrieve_vss(fruit, QUERY, top_k=120)["chunk_id"].tolist()
    assert vss["bm25_rank"].isna().all()
    bm25 = retrieve_hybrid(fruit, QUERY, top_k=120, weights=(0, 1), fusion=fusion)
    assert bm25["chunk_id"].tolist() == retrieve_bm25(fruit, QUERY, top_k=120)["chunk_id"].tolist()


def test_weighted_scores_by_hand(fruit: Store) -> None:
    vss = retrieve_vss(fruit, QUERY, top_k=30).set_index("chunk_id")["metric_value"]
    bm25 = retrieve_bm25(fruit, QUERY, top_k=30).set_index("chunk_id")["metric_value"]
    near = (vss.max() - vss) / (vss.max() - vss.min())
    share = bm25 / bm25.max()
    expected = (0.7 * near).add(0.3 * share, fill_value=0)
    found = retrieve_hybrid(
        fruit, QUERY, top_k=10, weights=(0.7, 0.3), fusion="weighted_scores", candidates=30
    ).set_index("chunk_id")["score"]
    assert found.index.tolist() == expected.sort_values(ascending=False).index[:10].tolist()
    np.testing.assert_allclose(found, expected[found.index], rtol=1e-12)


def test_convex_by_hand(fruit: Store) -> None:
    vss = retrieve_vss(fruit, QUERY, top_k=120).set_index("chunk_id")["metric_value"]
    bm25 = retrieve_bm25(fruit, QUERY, top_k=120).set_index("chunk_id")["metric_value"]
    candidates = vss.index[:30].union(bm25.index[:30])
    near = 2 - vss[candidates]
    share = bm25.reindex(candidates).fillna(0) / bm25.max()
    for weights, own in ((None, (0.9, 0.1)), ((3, 1), (0.75, 0.25))):
        expected = own[0] * near / near.max() + own[1] * share
        found = retrieve_hybrid(fruit, QUERY, top_k=10, weights=weights, fusion="convex", candidates=30)
        best = expected.sort_values(ascending=False, kind="stable").index[:10]
        assert found["chunk_id"].tolist() == best.tolist()
        np.testing.assert_allclose(found["score"], expected[best], rtol=1e-9)
        assert set(found["metric_name"]) == {"convex"}


def test_convex_without_any_word_of_the_store(fruit: Store) -> None:
    found = retrieve_hybrid(fruit, "zzzz", top_k=5, fusion="convex")
    assert found["chunk_id"].tolist() == retrieve_vss(fruit, "zzzz", top_k=5)["chunk_id"].tolist()
    assert found["bm25"].tolist() == [0, 0, 0, 0, 0]
    assert found["score"].iloc[0] == pytest.approx(0.9)


def test_a_threshold_holds_for_every_row_whichever_search_found_it(fruit: Store) -> None:
    similar = retrieve_vss(fruit, QUERY, top_k=120, min_similarity=0.6)["chunk_id"]
    found = retrieve_hybrid(fruit, QUERY, top_k=120, min_similarity=0.6)
    assert sorted(found["chunk_id"]) == sorted(similar)
    strong = retrieve_bm25(fruit, QUERY, top_k=120, min_bm25=0.5)["chunk_id"]
    found = retrieve_hybrid(fruit, QUERY, top_k=120, min_bm25=0.5)
    assert sorted(found["chunk_id"]) == sorted(strong)
    assert 0 < len(strong) < 120
    assert 0 < len(similar) < 120


def test_top_k_beyond_the_candidates_takes_more_of_them(fruit: Store) -> None:
    assert len(retrieve_hybrid(fruit, QUERY, top_k=100, candidates=5)) == 100
    assert len(retrieve_hybrid(fruit, QUERY, top_k=2)) == 2
    assert len(retrieve_hybrid(fruit, QUERY, top_k=500)) == 120


def test_a_given_vector_takes_the_place_of_the_embedder(fruit: Store) -> None:
    vector = fruit.embedder.embed_query(QUERY)
    expected = retrieve_hybrid(fruit, QUERY, top_k=9)
    pd.testing.assert_frame_equal(retrieve_hybrid(fruit, QUERY, top_k=9, vector=vector), expected)


def test_a_blank_query_gives_an_empty_table_with_all_columns(fruit: Store) -> None:
    found = retrieve_hybrid(fruit, " ")
    assert len(found) == 0
    assert found.columns.tolist() == retrieve_hybrid(fruit, QUERY).columns.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": (0, 0)}, "not both 0"),
        ({"weights": (-1, 1)}, "0 or more"),
        ({"weights": (1,)}, "two numbers"),
        ({"weights": "ab"}, "two numbers"),
        ({"rrf_k": -1}, "rrf_k must be"),
        ({"fusion": "sum"}, "use one of rrf, weighted_scores, convex"),
        ({"candidates": 0}, "candidates must be a whole number"),
        ({"method": "x"}, "method 'x' is unknown"),
    ],
)
def test_settings_out_of_range_are_said(fruit: Store, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrievalError, match=message):
        retrieve_hybrid(fruit, QUERY, **options)
