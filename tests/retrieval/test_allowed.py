from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.errors import FilterError
from ragnar_core.retrieval import Filter, count_matching, filter_choices, retrieve_bm25
from ragnar_core.retrieval.allowed import allowed_rows, filter_columns
from ragnar_core.store import Store

FILTERS: list[Any] = [
    'category == "news"',
    {"category": None},
    {"year": {"$gte": 2010, "$lt": 2020}},
    {"$or": [{"price": {"$gt": 0.9}}, {"ripe": True}]},
    'origin contains "-1"',
    "doc_id in [1, 3]",
    "start == 0",
    "end > 100 and not chunk_id < 20",
    'text contains "apple fig"',
    'context == ""',
    "year is null",
]


@pytest.mark.parametrize("filter", FILTERS)
def test_the_rows_that_pass_are_those_the_predicate_passes(fruit: Store, filter: Any) -> None:
    chunks = fruit.chunks()
    passes = Filter.parse(filter).bind(filter_columns(fruit)).predicate()
    expected = [row for row, chunk in enumerate(chunks.to_dict("records")) if passes(chunk)]
    found = allowed_rows(fruit, filter, chunks["chunk_id"].to_numpy())
    assert found is not None
    assert found.tolist() == expected
    assert 0 < len(expected) < 120


def test_no_filter_allows_everything(fruit: Store) -> None:
    ids = fruit.vectors().chunk_ids
    assert allowed_rows(fruit, None, ids) is None
    assert allowed_rows(fruit, {}, ids) is None


def test_counting_what_passes(fruit: Store) -> None:
    for filter, expected in [
        (None, 120),
        ({}, 120),
        ("", 120),
        ('category == "news"', 40),
        (Filter.parse({"year": {"$gte": 2020}}), 20),
        ("year is null", 5),
        ('origin == "document-03" and start == 0', 1),
        ("year > 3000", 0),
    ]:
        assert count_matching(fruit, filter) == expected
    with pytest.raises(FilterError, match="did you mean year"):
        count_matching(fruit, "yeer > 2000")


def test_counting_after_a_write(make_store: Callable[..., Store]) -> None:
    for version in (1, 2):
        store = make_store({"a": ["apple", "fig"], "b": ["apple"]}, version=version)
        assert count_matching(store, {"origin": "a"}) == 2
        store.insert(pd.DataFrame({"origin": ["c"], "text": ["fig"]}))
        assert [count_matching(store, filter) for filter in (None, {"origin": {"$ne": "b"}})] == [4, 3]
        store.delete("a")
        assert [count_matching(store, filter) for filter in (None, {"origin": {"$ne": "b"}})] == [2, 1]


def test_a_write_is_seen_by_the_next_search(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple"], "b": ["apple"]})
    asked = {"origin": {"$ne": "b"}}
    assert retrieve_bm25(store, "apple", filter=asked)["origin"].tolist() == ["a"]
    store.insert(pd.DataFrame({"origin": ["c"], "text": ["apple"]}))
    assert retrieve_bm25(store, "apple", filter=asked)["origin"].tolist() == ["a", "c"]
    store.delete("a")
    assert retrieve_bm25(store, "apple", filter=asked)["origin"].tolist() == ["c"]


def test_columns_of_every_type(make_store: Callable[..., Store]) -> None:
    columns = {"tags": list[str], "day": date, "seen": datetime, "weight": float, "odd name": int}
    store = make_store({}, extra_cols=columns)
    for number in range(3):
        store.insert(
            pd.DataFrame(
                {
                    "origin": f"d{number}",
                    "text": ["apple"],
                    "tags": [["red", "round"][: number + 1]],
                    "day": [date(2024, 1, 1 + number)],
                    "seen": [datetime(2024, 1, 1, number)],
                    "weight": [float(number)],
                    "odd name": [number],
                }
            )
        )

    def found(filter: Any) -> list[str]:
        return [str(origin) for origin in retrieve_bm25(store, "apple", filter=filter)["origin"]]

    assert found('tags contains "round"') == ["d1", "d2"]
    assert found({"day": {"$gt": date(2024, 1, 2)}}) == ["d2"]
    assert found('seen >= "2024-01-01 01:00"') == ["d1", "d2"]
    assert found({"weight": {"$in": [0, 2.0]}}) == ["d0", "d2"]
    assert found("`odd name` != 1") == ["d0", "d2"]
    kinds = {choice.name: choice.kind for choice in filter_choices(store)}
    assert kinds == {
        "tags": "list",
        "day": "date",
        "seen": "timestamp",
        "weight": "number",
        "odd name": "integer",
        "origin": "text",
    }


def test_version_1_stores_filter_on_what_they_have(make_store: Callable[..., Store]) -> None:
    store = make_store({"a": ["apple", "fig"], "b": ["apple pie"]}, version=1)
    ids = store.postings().chunk_ids
    for filter, expected in [
        ({"origin": "b"}, [2]),
        ('text contains "pie"', [2]),
        ("start is null", [0, 1, 2]),
        ({"doc_id": 1}, [0, 1]),
        ({"doc_id": {"$gt": 1}, "context": ""}, [2]),
    ]:
        assert np.asarray(allowed_rows(store, filter, ids)).tolist() == expected


@pytest.mark.parametrize("version", [1, 2])
def test_documents_are_named_by_number_in_either_version(
    make_store: Callable[..., Store], version: int
) -> None:
    store = make_store({"a": ["apple", "fig"], "b": ["apple pie"]}, version=version)
    numbers = store.documents()["doc_id"].tolist()
    for number, expected in zip(numbers, [2, 1], strict=True):
        assert count_matching(store, {"doc_id": number}) == expected
    assert retrieve_bm25(store, "apple", filter={"doc_id": numbers[1]})["origin"].tolist() == ["b"]
    with pytest.raises(FilterError, match="doc_id"):
        count_matching(store, {"doc_id": "a"})


def test_unknown_columns_name_those_of_the_store(fruit: Store) -> None:
    with pytest.raises(FilterError, match=r"column 'categori' is unknown \(did you mean category\?\)"):
        retrieve_bm25(fruit, "apple", filter={"categori": "news"})
    with pytest.raises(FilterError, match="category, year, price, ripe, chunk_id, doc_id, origin"):
        retrieve_bm25(fruit, "apple", filter="colour == 1")


def test_text_of_the_person_cannot_leave_its_parameter(fruit: Store) -> None:
    evil = "x' OR 1=1; DROP TABLE embeddings; --"
    for column in ("origin", "category", "text", "context"):
        assert len(retrieve_bm25(fruit, "apple", filter={column: evil})) == 0
    assert fruit.counts().chunks == 120


def test_choices_for_a_filter_form(fruit: Store) -> None:
    choices = {choice.name: choice for choice in filter_choices(fruit)}
    assert list(choices) == ["category", "year", "price", "ripe", "origin"]
    category = choices["category"]
    assert (category.kind, category.values, category.missing) == ("text", (("blog", 40), ("news", 40)), 40)
    assert category.complete
    year = choices["year"]
    assert (year.kind, year.minimum, year.maximum, year.missing) == ("integer", 2000, 2023, 5)
    assert choices["ripe"].values == ((False, 60), (True, 60))
    assert not choices["price"].complete
    assert len(choices["price"].values) == 50
    assert choices["origin"].to_dict()["values"][0] == ("document-00", 5)
