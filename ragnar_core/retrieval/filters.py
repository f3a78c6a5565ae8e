"""Filters: conditions on the columns of chunks, from either spelling to SQL, to a Python predicate, to a
sentence."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from ragnar_core.errors import FilterError
from ragnar_core.retrieval.filter_syntax import parse_filter
from ragnar_core.retrieval.filter_tree import (
    All,
    Compare,
    Either,
    Node,
    Not,
    as_dict,
    comparisons,
    sentence,
    text,
)

INT64 = (-(2**63), 2**63 - 1)
INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
)
SQL_TYPES = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
EXAMPLES = {
    "text": 'a text such as "news"',
    "integer": "a whole number such as 2020",
    "number": "a number such as 0.5",
    "boolean": "true or false",
    "date": 'a date such as "2024-01-31"',
    "timestamp": 'a time such as "2024-01-31T12:00"',
}


@dataclass(frozen=True)
class Column:
    """A column that filters may name.

    Attributes:
        kind: one of "text", "integer", "number", "boolean", "date", "timestamp", "list" or "other".
        sql: the expression that gives its value, made from the store's schema, never from a filter.
        item: for a list, the kind of its elements.
    """

    name: str
    kind: str
    sql: str
    item: str = ""

    @classmethod
    def of_type(cls, name: str, duckdb_type: str, sql: str | None = None) -> Column:
        """A column of a DuckDB type ("BIGINT", "VARCHAR[]"), by default under its own name."""
        expression = sql or '"' + name.replace('"', '""') + '"'
        if duckdb_type.endswith("[]"):
            return cls(name, "list", expression, _kind(duckdb_type[:-2]))
        kind = _kind(duckdb_type)
        if kind == "number":
            # NaN counts as missing: tables of numbers cannot tell the two apart.
            expression = f"nullif({expression}::DOUBLE, 'nan'::DOUBLE)"
        if duckdb_type.startswith("TIMESTAMP WITH") or duckdb_type == "TIMESTAMPTZ":
            expression = f"timezone('UTC', {expression})"
        return cls(name, kind, expression)


def _kind(duckdb_type: str) -> str:
    if duckdb_type in INTEGERS:
        return "integer"
    if duckdb_type in ("FLOAT", "DOUBLE", "REAL") or duckdb_type.startswith("DECIMAL"):
        return "number"
    if duckdb_type.startswith("TIMESTAMP"):
        return "timestamp"
    known = {"VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date"}
    return known.get(duckdb_type, "text" if duckdb_type.startswith("ENUM") else "other")


@dataclass(frozen=True)
class Filter:
    """A parsed filter. ``Filter.parse`` reads both spellings; ``bind`` checks it against columns."""

    tree: Node

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Node):
            raise FilterError(f"Filter.parse makes a filter of a dict or a text; this is {self.tree!r}")

    @classmethod
    def parse(cls, filter: str | Mapping[str, Any] | Filter | None) -> Filter:
        """Raises FilterError where the filter does not parse or an operator is unknown."""
        if isinstance(filter, Filter):
            return filter
        return cls(All(()) if filter is None else parse_filter(filter))

    @property
    def is_empty(self) -> bool:
        """True when it passes everything."""
        return self.tree == All(())

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(part.column for part in comparisons(self.tree)))

    def sentence(self) -> str:
        """In words, for people."""
        return sentence(self.tree)

    def text(self) -> str:
        """In the text spelling."""
        return text(self.tree)

    def to_dict(self) -> dict[str, Any]:
        """In the dict spelling."""
        return as_dict(self.tree)

    def bind(self, columns: Iterable[Column]) -> BoundFilter:
        """The filter over these columns.

        Raises:
            FilterError: a column is unknown (the known ones are named), or a value does not fit a column's
                type.
        """
        known = {column.name: column for column in columns}
        return BoundFilter(_bound(self.tree, known), known)


@dataclass(frozen=True)
class BoundFilter:
    """A filter whose columns exist and whose values have the columns' types."""

    tree: Node
    columns: Mapping[str, Column]

    def sql(self) -> tuple[str, list[Any]]:
        """A condition with ``?`` in place of every value, and the values."""
        parameters: list[Any] = []
        return _sql(self.tree, self.columns, parameters), parameters

    def names(self) -> set[str]:
        return {part.column for part in comparisons(self.tree)}

    def matches(self, row: Mapping[str, Any]) -> bool:
        """Whether a row (column name -> value) passes; the same rows pass as under ``sql``."""
        return self.predicate()(row)

    def predicate(self) -> Callable[[Mapping[str, Any]], bool]:
        return _predicate(self.tree, self.columns)


def _bound(node: Node, columns: Mapping[str, Column]) -> Node:
    if isinstance(node, Compare):
        return _bound_comparison(node, columns)
    if isinstance(node, Not):
        return Not(_bound(node.part, columns))
    return type(node)(tuple(_bound(part, columns) for part in node.parts))


def _bound_comparison(node: Compare, columns: Mapping[str, Column]) -> Node:
    column = columns.get(node.column)
    if column is None:
        near = difflib.get_close_matches(node.column, columns, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise FilterError(f"column {node.column!r} is unknown{hint}; the columns are {', '.join(columns)}")
    if node.operator == "$ne":
        return Not(_bound_comparison(Compare(node.column, "$eq", node.value), columns))
    if node.operator == "$nin":
        return Not(_bound_comparison(Compare(node.column, "$in", node.value), columns))
    if node.value is None:
        return node
    if column.kind == "other" or (column.kind == "list" and node.operator != "$contains"):
        allowed = "$contains and null" if column.kind == "list" else "null"
        raise FilterError(f"column {column.name} can only be compared by {allowed}, not by {node.operator}")
    if node.operator == "$contains":
        if column.kind not in ("text", "list"):
            raise FilterError(
                f"$contains works on texts and lists; column {column.name} holds {column.kind}s"
            )
        kind = column.item if column.kind == "list" else "text"
        value = _value(column.name, kind, node.value)
        if _beyond(kind, value):
            return Either(())
        return Compare(column.name, "$contains", int(value) if kind == "integer" else value)
    if node.operator == "$in":
        missing = [Compare(column.name, "$eq", None)] if None in node.value else []
        values = [_value(column.name, column.kind, value) for value in node.value if value is not None]
        listed = Compare(
            column.name, "$in", tuple(value for value in values if not _beyond(column.kind, value))
        )
        return Either((listed, *missing)) if missing else listed
    if column.kind == "boolean" and node.operator != "$eq":
        raise FilterError(f"column {column.name} holds true and false, which have no order; use == or !=")
    return _whole(column, node.operator, _value(column.name, column.kind, node.value))


def _value(column: str, kind: str, value: Any) -> Any:
    """The value as the column's type, or FilterError: nothing is cast in silence, and true is not 1."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer" and number:
        return value
    if kind == "number" and number and abs(value) < 10**300:
        return float(value)
    if kind == "number" and number and isinstance(value, float):
        return value
    if (kind == "boolean" and isinstance(value, bool)) or (kind == "text" and isinstance(value, str)):
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            raise FilterError(
                f"the value for column {column} holds half of a surrogate pair; give valid text"
            )
        return value
    if kind in ("date", "timestamp") and isinstance(value, (str, date)):
        found = _moment(value, kind)
        if found is not None:
            return found
    holds = {"integer": "whole numbers", "timestamp": "times"}.get(kind, f"{kind}s")
    raise FilterError(
        f"column {column} holds {holds}, and {value!r} is none; compare it with {EXAMPLES.get(kind, 'null')}"
    )


def _moment(value: Any, kind: str) -> date | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if isinstance(moment, datetime):
        moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
        if kind == "timestamp":
            return moment
        return moment.date() if moment.time() == datetime.min.time() else None
    return moment if kind == "date" else datetime(moment.year, moment.month, moment.day)


def _beyond(kind: str, value: Any) -> bool:
    """True for a value no whole number of the column can equal."""
    return kind == "integer" and (not INT64[0] <= value <= INT64[1] or value != math.floor(value))


def _whole(column: Column, operator: str, value: Any) -> Node:
    """A comparison of whole numbers with any number as one with a whole number, which no cast can blur."""
    if column.kind != "integer":
        return Compare(column.name, operator, value)
    if operator == "$eq":
        return Either(()) if _beyond("integer", value) else Compare(column.name, operator, int(value))
    upper = operator in ("$lt", "$lte")
    if not INT64[0] < value < INT64[1]:
        return Not(Compare(column.name, "$eq", None)) if upper == (value > 0) else Either(())
    if operator in ("$gt", "$lte"):
        return Compare(column.name, operator, math.floor(value))
    return Compare(column.name, operator, math.ceil(value))


SQL_OPERATORS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def _sql(node: Node, columns: Mapping[str, Column], parameters: list[Any]) -> str:
    if isinstance(node, Not):
        return f"(NOT {_sql(node.part, columns, parameters)})"
    if not isinstance(node, Compare):
        if not node.parts:
            return "TRUE" if isinstance(node, All) else "FALSE"
        joint = " AND " if isinstance(node, All) else " OR "
        return "(" + joint.join(_sql(part, columns, parameters) for part in node.parts) + ")"
    column = columns[node.column]
    if node.value is None:
        return f"({column.sql} IS NULL)"
    values = node.value if isinstance(node.value, tuple) else (node.value,)
    if not values:
        return "FALSE"
    parameters.extend(int(value) if column.kind == "integer" else value for value in values)
    mark = f"?::{SQL_TYPES[column.item if column.kind == 'list' else column.kind]}"
    if node.operator == "$in":
        test = f"{column.sql} IN ({', '.join([mark] * len(values))})"
    elif node.operator == "$contains":
        test = f"{'list_contains' if column.kind == 'list' else 'contains'}({column.sql}, {mark})"
    else:
        test = f"{column.sql} {SQL_OPERATORS[node.operator]} {mark}"
    return f"coalesce({test}, FALSE)"


def _predicate(node: Node, columns: Mapping[str, Column]) -> Callable[[Mapping[str, Any]], bool]:
    if isinstance(node, Not):
        inner = _predicate(node.part, columns)
        return lambda row: not inner(row)
    if isinstance(node, Compare):
        return _comparison(node, columns[node.column])
    parts = [_predicate(part, columns) for part in node.parts]
    if isinstance(node, All):
        return lambda row: all(part(row) for part in parts)
    return lambda row: any(part(row) for part in parts)


def _comparison(node: Compare, column: Column) -> Callable[[Mapping[str, Any]], bool]:
    wanted = node.value
    tests: dict[str, Callable[[Any], bool]] = {
        "$eq": lambda value: value == wanted,
        "$gt": lambda value: value > wanted,
        "$gte": lambda value: value >= wanted,
        "$lt": lambda value: value < wanted,
        "$lte": lambda value: value <= wanted,
        "$in": lambda value: value in wanted,
        "$contains": lambda value: wanted in value,
    }
    test = tests[node.operator]

    def passes(row: Mapping[str, Any]) -> bool:
        value = _present(row.get(column.name), column)
        if wanted is None:
            return value is None
        return value is not None and bool(test(value))

    return passes


def _present(value: Any, column: Column) -> Any:
    """A row's value as the column's Python type; None where it is missing."""
    if column.kind == "list":
        if value is None or isinstance(value, float):
            return None
        return [item.item() if hasattr(item, "item") else item for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if column.kind == "number":
        return float(value)
    if column.kind in ("date", "timestamp"):
        return _moment(value, column.kind)
    return value
