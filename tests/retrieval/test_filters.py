from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragnar_core.errors import FilterError
from ragnar_core.retrieval.filters import Column, Filter

COLUMNS = [
    Column.of_type("category", "VARCHAR"),
    Column.of_type("year", "BIGINT"),
    Column.of_type("score", "DOUBLE"),
    Column.of_type("public", "BOOLEAN"),
    Column.of_type("day", "DATE"),
    Column.of_type("seen", "TIMESTAMP"),
    Column.of_type("tags", "VARCHAR[]"),
    Column.of_type("odd name", "INTEGER"),
]
ROWS: list[dict[str, Any]] = [
    {"category": "news", "year": 2024, "score": 0.5, "public": True, "tags": ["a", "b"], "odd name": 1},
    {"category": "news", "year": 2019, "score": 2.5, "public": False, "tags": [], "odd name": 2},
    {"category": "blog", "year": 2020, "score": None, "public": None, "tags": None, "odd name": 3},
    {"category": None, "year": None, "score": float("inf"), "public": True, "tags": ["ab"], "odd name": None},
    {"category": "NEWS", "year": 1, "score": -1.0, "public": False, "tags": ["b"], "odd name": -1},
]
for number, row in enumerate(ROWS):
    row |= {"day": date(2024, 1, 1 + number), "seen": datetime(2024, 1, 1, number) if number else None}


@pytest.fixture(scope="module")
def database() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE rows (id INTEGER, category VARCHAR, year BIGINT, score DOUBLE, public BOOLEAN, "
        'day DATE, seen TIMESTAMP, tags VARCHAR[], "odd name" INTEGER)'
    )
    for number, row in enumerate(ROWS):
        values = [number, *(row[column.name] for column in COLUMNS)]
        connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    return connection


def passing(database: Any, filter: Any) -> list[int]:
    """The rows that pass, after checking that SQL and predicate agree on them."""
    bound = Filter.parse(filter).bind(COLUMNS)
    condition, parameters = bound.sql()
    found = database.execute(f"SELECT id FROM rows WHERE {condition} ORDER BY id", parameters).fetchall()
    by_sql = [number for (number,) in found]
    assert by_sql == [number for number, row in enumerate(ROWS) if bound.matches(row)]
    return by_sql


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (None, [0, 1, 2, 3, 4]),
        ({}, [0, 1, 2, 3, 4]),
        ("", [0, 1, 2, 3, 4]),
        ({"category": "news"}, [0, 1]),
        ({"category": None}, [3]),
        ({"category": {"$ne": "news"}}, [2, 3, 4]),
        ({"category": {"$ne": None}}, [0, 1, 2, 4]),
        ({"category": ["news", "blog"]}, [0, 1, 2]),
        ({"category": {"news"}}, [0, 1]),
        ({"category": ["news", None]}, [0, 1, 3]),
        ({"category": {"$nin": ["news", None]}}, [2, 4]),
        ({"category": {"$nin": ["news"]}}, [2, 3, 4]),
        ({"category": []}, []),
        ({"category": {"$nin": []}}, [0, 1, 2, 3, 4]),
        ({"category": {"$contains": "ew"}}, [0, 1]),
        ({"year": {"$gte": 2019, "$lt": 2024}}, [1, 2]),
        ({"year": {"$gt": 2019.5}}, [0, 2]),
        ({"year": {"$lte": 2019.5}}, [1, 4]),
        ({"year": 2019.5}, []),
        ({"year": 2019.0}, [1]),
        ({"year": {"$lt": 10**30}}, [0, 1, 2, 4]),
        ({"year": {"$gt": -float("inf")}}, [0, 1, 2, 4]),
        ({"year": {"$gte": 10**30}}, []),
        ({"year": {"$in": [2019, 2019.5, 10**40]}}, [1]),
        ({"score": {"$gte": 1}}, [1, 3]),
        ({"score": {"$lt": 0.5}}, [4]),
        ({"public": True}, [0, 3]),
        ({"public": {"$ne": True}}, [1, 2, 4]),
        ({"day": "2024-01-02"}, [1]),
        ({"day": {"$gt": date(2024, 1, 3)}}, [3, 4]),
        ({"seen": {"$gte": "2024-01-01T03:00+01:00"}}, [2, 3, 4]),
        ({"tags": {"$contains": "b"}}, [0, 4]),
        ({"tags": None}, [2]),
        ({"$and": [{"category": "news"}]}, [0, 1]),
        ({"$and": []}, [0, 1, 2, 3, 4]),
        ({"$or": []}, []),
        ({"$or": [{"year": 1}, {"$and": [{"category": "news"}, {"public": True}]}]}, [0, 4]),
        ({"$not": {"category": "news"}}, [2, 3, 4]),
        ({"year": {"$not": {"$gt": 2019}}}, [1, 3, 4]),
        ({"category": "news", "year": 2024}, [0]),
        ('category == "news" and year >= 2020', [0]),
        ("category = 'news' or year < 10", [0, 1, 4]),
        ('category == "news" or category == "blog" and year > 2020', [0, 1]),
        ('(category == "news" or category == "blog") and year > 2019', [0, 2]),
        ("not public == true", [1, 2, 4]),
        ("category is null", [3]),
        ("category is not null", [0, 1, 2, 4]),
        ('category in ["news", "blog"] && !(year == 2019)', [0, 2]),
        ('category not in ("news")', [2, 3, 4]),
        ('tags contains "a"', [0]),
        ('category not contains "e"', [2, 3, 4]),
        ("`odd name` > 1", [1, 2]),
        ("score >= -1.0e0 and score < .6", [0, 4]),
        ("true", [0, 1, 2, 3, 4]),
        ('day >= "2024-01-04"', [3, 4]),
    ],
)
def test_both_spellings_pass_these_rows(database: Any, filter: Any, expected: list[int]) -> None:
    assert passing(database, filter) == expected


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        (
            {"categroy": "x"},
            r"column 'categroy' is unknown \(did you mean category\?\); the columns are category, year",
        ),
        ({"year": {"$regex": "x"}}, r"operator '\$regex' is unknown.*\$eq, \$ne, \$gt, \$gte"),
        ({"$nor": []}, r"operator '\$nor' is unknown"),
        ({"$gt": 3}, r"\$gt stands inside a column"),
        ({"$and": {"year": 1}}, r"\$and takes a list of conditions"),
        ({"$or": ["x"]}, r"\$or takes conditions such as"),
        ({"year": {}}, "year has no condition"),
        ({"year": {"$in": 3}}, r"\$in on year takes a list"),
        ({"year": {"$in": "2020"}}, r"\$in on year takes a list"),
        (
            {"year": "2020"},
            "column year holds whole numbers, and '2020' is none; compare it with a whole number",
        ),
        ({"year": True}, "column year holds whole numbers, and True is none"),
        ({"public": 1}, "column public holds booleans, and 1 is none; compare it with true or false"),
        ({"public": {"$gt": False}}, "no order"),
        (
            {"category": 5},
            'column category holds texts, and 5 is none; compare it with a text such as "news"',
        ),
        ({"category": b"x"}, "can be compared with texts"),
        ({"category": "\ud800"}, "surrogate"),
        ({"score": float("nan")}, "NaN"),
        ({"year": {"$gt": None}}, r"\$gt on year needs a value"),
        ({"year": {"$contains": 2}}, r"\$contains works on texts and lists"),
        ({"tags": "a"}, r"column tags can only be compared by \$contains and null"),
        ({"day": "yesterday"}, "column day holds dates"),
        ({1: 2}, "keys are column names"),
        (5, "a filter is a dict or a text, not int"),
        ("category == news", r'a text in quotes: "news"'),
        ("category", "needs one of == != > >= < <= in not in contains = <> after category at its end"),
        ("category ==", "needs a value at its end"),
        ("year > 1 year", "needs and, or, or the end of the filter at character 10"),
        ("(year > 1", r"needs \) at its end"),
        ("year in 3", "needs a list"),
        ("year in [1 2]", r"needs , or \]"),
        ("year > 1; DROP TABLE rows", "cannot be read at character 9"),
        ("1 < year", "needs a column name"),
        ("(" * 200 + "year > 1" + ")" * 200, "nested more than 50 levels"),
        ("not " * 4000 + "year > 1", "nested more than 50 levels"),
        ("year > " + "1" * 30_000, "at most 20000"),
        ("year > " + "1" * 5_000, "the number at character 8 has more than 400 digits"),
    ],
)
def test_what_does_not_parse_or_fit_is_an_error_that_says_so(filter: Any, message: str) -> None:
    with pytest.raises(FilterError, match=message):
        Filter.parse(filter).bind(COLUMNS)


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        ('category == "news" and year >= 2020', 'category is "news" and year is at least 2020'),
        ({"category": ["a", "b"]}, 'category is one of "a", "b"'),
        ({"$or": [{"year": 1}, {"year": 2, "public": True}]}, "year is 1 or (year is 2 and public is true)"),
        ("not (category is null)", "not (category is missing)"),
        ("category is not null", "category is there"),
        ({}, "everything"),
        ({"$or": []}, "nothing"),
        ('category contains "x"', 'category contains "x"'),
        ({"day": {"$lt": date(2024, 1, 1)}}, 'day is below "2024-01-01"'),
    ],
)
def test_sentence(filter: Any, words: str) -> None:
    assert Filter.parse(filter).sentence() == words


def test_no_text_of_the_person_reaches_sql() -> None:
    evil = '"; DROP TABLE rows; --'
    filter = {"$or": [{"category": evil}, {"category": {"$in": [evil]}}, {"tags": {"$contains": evil}}]}
    condition, parameters = Filter.parse(filter).bind(COLUMNS).sql()
    assert "DROP" not in condition
    assert parameters == [evil, evil, evil]
    with pytest.raises(FilterError, match="is unknown"):
        Filter.parse({evil: 1}).bind(COLUMNS)


def test_numpy_values_are_taken_as_numbers(database: Any) -> None:
    assert passing(database, {"year": np.int64(2019)}) == [1]
    assert passing(database, {"year": np.array([2019, 2020])}) == [1, 2]


texts = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["news", "NEWS", "blog", "%", "_", "'"]
)
numbers = (
    st.integers(-5, 3000) | st.integers() | st.floats(allow_nan=False) | st.sampled_from([2019, 0.5, 2.5])
)
values = {
    "category": texts,
    "year": numbers,
    "score": numbers.filter(lambda number: abs(number) < 10**300 or isinstance(number, float)),
    "public": st.booleans(),
    "day": st.dates(date(2023, 12, 30), date(2024, 1, 9)),
    "seen": st.datetimes(datetime(2023, 12, 31), datetime(2024, 1, 2)),
    "odd name": st.integers(-2, 4),
}


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    column = draw(st.sampled_from([*values, "tags"]))
    if column == "tags":
        return {"tags": draw(st.sampled_from([None]) | st.fixed_dictionaries({"$contains": texts}))}
    value = values[column]
    choices: list[Any] = [
        st.none(),
        value,
        st.lists(value | st.none(), max_size=3),
        st.fixed_dictionaries({"$ne": value | st.none()}),
        st.fixed_dictionaries({"$nin": st.lists(value | st.none(), max_size=3)}),
    ]
    if column == "category":
        choices.append(st.fixed_dictionaries({"$contains": texts}))
    if column != "public":
        order = dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), value)
        choices.append(st.fixed_dictionaries({}, optional=order).filter(bool))
    return {column: draw(st.one_of(choices))}


filters = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"$not": inner}),
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(filters)
@example({"category": "\x00"})
@example({"score": [float("inf"), -float("inf")]})
def test_sql_and_predicate_pass_the_same_rows_in_every_spelling(
    database: Any, filter: dict[str, Any]
) -> None:
    expected = passing(database, filter)
    parsed = Filter.parse(filter)
    assert passing(database, parsed.to_dict()) == expected
    assert passing(database, parsed.text()) == expected
    assert json.dumps(parsed.sentence())
