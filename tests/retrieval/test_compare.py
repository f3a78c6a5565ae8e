from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import compare_results, retrieve, retrieve_bm25, retrieve_vss
from ragnar_core.retrieval.compare import rank_biased_overlap
from ragnar_core.store import Store


def table(ids: list[Any], **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"chunk_id": pd.Series(ids, dtype=object), "origin": "d", **columns})


def test_moves_say_where_each_passage_stands_on_the_other_side() -> None:
    found = compare_results(table([1, 2, 3, 4]), table([3, 2, 5, 1]))
    assert [(one.left_rank, one.right_rank, one.change, one.status) for one in found.moves] == [
        (1, 4, -3, "down"),
        (2, 2, 0, "same"),
        (3, 1, 2, "up"),
        (4, None, None, "only_left"),
        (None, 3, None, "only_right"),
    ]
    assert (found.left, found.right, found.overlap, found.jaccard) == (4, 4, 3, 0.6)
    assert found.kendall == pytest.approx(-1.0)
    assert found.spearman == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("right", "kendall", "spearman"),
    [([1, 2, 3, 4], 1, 1), ([4, 3, 2, 1], -1, -1), ([2, 1, 3, 4], 2 / 3, 0.8), ([1, 9, 8, 7], None, None)],
)
def test_rank_correlations_of_the_passages_in_both(right: list[int], kendall: Any, spearman: Any) -> None:
    found = compare_results(table([1, 2, 3, 4]), table(right))
    assert found.kendall == (None if kendall is None else pytest.approx(kendall))
    assert found.spearman == (None if spearman is None else pytest.approx(spearman))


@pytest.mark.parametrize(
    ("left", "right", "p", "expected"),
    [
        ("abcd", "abcd", 0.9, 1.0),
        ("abc", "xyz", 0.9, 0.0),
        ("a", "ab", 0.9, 1.0),
        # By hand: (1-p)/p (1 p + 1/2 p^2) + 1/2 p^2 = 0.05 + 0.1 * 1 + 0.405 ... with p = 0.9.
        ("ab", "ac", 0.9, 0.1 / 0.9 * (0.9 + 0.405) + 0.405),
        ("ab", "ba", 0.5, 0.5 / 0.5 * (0 + 0.25) + 0.25),
    ],
)
def test_rank_biased_overlap(left: str, right: str, p: float, expected: float) -> None:
    pairs = [(left.index(item), right.index(item)) for item in left if item in right]
    assert rank_biased_overlap(len(left), len(right), pairs, p) == pytest.approx(expected)


def test_rank_biased_overlap_weighs_the_top_most() -> None:
    first = compare_results(table([1, 2, 3, 4]), table([1, 7, 8, 9])).rank_biased_overlap
    last = compare_results(table([1, 2, 3, 4]), table([7, 8, 9, 4])).rank_biased_overlap
    assert first is not None
    assert last is not None
    assert first > last > 0


def test_empty_lists() -> None:
    both = compare_results(table([]), table([]))
    assert (both.overlap, both.jaccard, both.rank_biased_overlap, both.moves) == (0, None, None, ())
    one = compare_results(table([1]), table([]))
    assert (one.overlap, one.jaccard, one.rank_biased_overlap) == (0, 0.0, 0.0)
    assert one.moves[0].status == "only_left"


def test_passages_that_share_a_chunk_are_the_same() -> None:
    found = compare_results(table([[1, 2], [5]]), table([[9], [2, 3]]))
    assert [(one.left_chunks, one.right_chunks) for one in found.moves] == [
        ((1, 2), (2, 3)),
        ((5,), ()),
        ((), (9,)),
    ]


def test_two_chunk_sizes_are_compared_by_range() -> None:
    left = table([1, 2], start=[0, 400], end=[400, 800])
    right = table([10, 11, 12], start=[350, 0, 450], end=[520, 90, 700])
    found = compare_results(left, right, match="range")
    assert [(one.left_rank, one.right_rank) for one in found.moves] == [(1, 2), (2, 3), (None, 1)]
    elsewhere = compare_results(left, right.assign(origin="other"), match="range")
    assert elsewhere.overlap == 0


def test_two_searches_of_one_store(fruit: Store) -> None:
    vss, bm25 = retrieve_vss(fruit, "apple fig", top_k=10), retrieve_bm25(fruit, "apple fig", top_k=10)
    found = compare_results(vss, bm25)
    assert found.overlap == len(set(vss["chunk_id"]) & set(bm25["chunk_id"]))
    assert compare_results(vss, vss).rank_biased_overlap == pytest.approx(1)
    frame = found.to_frame()
    assert len(frame) == 20 - found.overlap
    assert frame.columns.tolist()[:4] == ["left_rank", "right_rank", "change", "status"]
    assert found.to_dict()["overlap"] == found.overlap


def test_version_1_results_have_no_ranges(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple", "fig"]}, version=1)
    found = retrieve(store, "apple")
    assert compare_results(found, found).overlap == 2
    assert compare_results(found, found, match="range").overlap == 0


def test_settings_out_of_range_are_said() -> None:
    with pytest.raises(RetrievalError, match="use one of chunk, range"):
        compare_results(table([1]), table([1]), match="text")
    with pytest.raises(RetrievalError, match="between 0 and 1"):
        compare_results(table([1]), table([1]), p=1)
    with pytest.raises(RetrievalError, match="needs the column chunk_id"):
        compare_results(pd.DataFrame({"x": [1]}), table([1]))
