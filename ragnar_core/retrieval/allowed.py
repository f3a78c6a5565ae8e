"""Which chunks of a store pass a filter, and what a filter form offers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ragnar_core.retrieval.filters import BoundFilter, Column, Filter
from ragnar_core.retrieval.query import check_store
from ragnar_core.retrieval.scoring import Rows

if TYPE_CHECKING:
    from ragnar_core.store import Store

REMEMBERED_FILTERS = 32
LISTED_VALUES = 50

_passing: WeakKeyDictionary[Any, OrderedDict[Any, NDArray[np.int64]]] = WeakKeyDictionary()
_lock = threading.Lock()


def allowed_rows(
    store: Store, filter: str | Mapping[str, Any] | Filter | None, chunk_ids: NDArray[np.int64]
) -> Rows | None:
    """Rows of ``chunk_ids`` (ascending) that pass the filter, ascending; None when everything does.

    Raises:
        FilterError: the filter does not parse, names an unknown column, or compares it with an unfit value.
    """
    parsed = Filter.parse(filter)
    if parsed.is_empty:
        return None
    passing = _remembered(store, parsed.bind(filter_columns(store)))
    at = np.searchsorted(chunk_ids, passing)
    known = at < len(chunk_ids)
    at, passing = at[known], passing[known]
    return np.asarray(at[chunk_ids[at] == passing], dtype=np.int64)


def count_matching(store: Store, filter: str | Mapping[str, Any] | Filter | None) -> int:
    """How many chunks of the store pass a filter; all of them pass None and an empty one.

    Raises:
        FilterError: the filter does not parse, names an unknown column, or compares it with an unfit value.
    """
    check_store(store)
    parsed = Filter.parse(filter)
    if parsed.is_empty:
        return store.counts().chunks
    return len(_remembered(store, parsed.bind(filter_columns(store))))


def filter_columns(store: Store) -> list[Column]:
    """The columns that a filter on this store may name: those of ``store.fetch``, with their kinds."""
    layout = store.layout
    if layout.version == 1:
        first = "min(e.chunk_id) OVER (PARTITION BY e.origin)"
        document = f"CASE WHEN e.origin IS NULL THEN e.chunk_id ELSE {first} END"
        columns = [
            Column("doc_id", "integer", document),
            Column("origin", "text", "e.origin"),
            Column("start", "integer", "NULL::BIGINT"),
            Column("end", "integer", "NULL::BIGINT"),
            Column("context", "text", "''"),
            Column("text", "text", "e.text"),
        ]
    else:
        origin = 1 if layout.kind == "ragnar" else 0
        start, end = f"(e.{layout.start} - {origin})", f"e.{layout.end}"
        columns = [
            Column("doc_id", "integer", f"e.{layout.doc_id}"),
            Column("origin", "text", "d.origin"),
            Column("start", "integer", start),
            Column("end", "integer", end),
            Column("context", "text", "coalesce(e.context, '')"),
            Column("text", "text", f"substring(d.text, {start} + 1, {end} - {start})"),
        ]
    extra = [Column.of_type(name, kind, f"e.{_quoted(name)}") for name, kind in store.extra_cols.items()]
    return [*extra, Column("chunk_id", "integer", "e.chunk_id"), *columns]


@dataclass(frozen=True)
class ColumnChoice:
    """What a filter form offers for a column.

    Attributes:
        kind: "text", "integer", "number", "boolean", "date", "timestamp" or "list".
        values: the most frequent values (of a list, its elements) with the number of chunks, at most 50.
        complete: whether these are all.
        minimum, maximum: of numbers, dates and times.
        missing: chunks without a value.
    """

    name: str
    kind: str
    values: tuple[tuple[Any, int], ...]
    complete: bool
    minimum: Any
    maximum: Any
    missing: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def filter_choices(store: Store) -> list[ColumnChoice]:
    """The extra columns and ``origin``, with their values; read from the store at each call."""
    check_store(store)
    columns = [column for column in filter_columns(store) if column.kind != "other"]
    offered = [column for column in columns if column.name in (*store.extra_cols, "origin")]
    return [_choice(store, column) for column in offered]


def _choice(store: Store, column: Column) -> ColumnChoice:
    source = _source(store, {column.name})
    value = f"unnest({column.sql})" if column.kind == "list" else column.sql
    ordered = column.kind in ("integer", "number", "date", "timestamp")
    with store.opened.database.reading() as cursor:
        found = cursor.execute(
            f"SELECT value, count(*) FROM (SELECT {value} AS value FROM {source}) WHERE value IS NOT NULL "
            f"GROUP BY value ORDER BY count(*) DESC, value LIMIT {LISTED_VALUES + 1}"
        ).fetchall()
        bounds = f"min({column.sql}), max({column.sql})" if ordered else "NULL, NULL"
        (low, high, missing), *_ = cursor.execute(
            f"SELECT {bounds}, count(*) FILTER ({column.sql} IS NULL) FROM {source}"
        ).fetchall()
    return ColumnChoice(
        column.name,
        column.kind,
        tuple((value, int(count)) for value, count in found[:LISTED_VALUES]),
        len(found) <= LISTED_VALUES,
        low,
        high,
        int(missing),
    )


def _remembered(store: Store, bound: BoundFilter) -> NDArray[np.int64]:
    condition, parameters = bound.sql()
    key = (store.revision, condition, tuple((type(value), value) for value in parameters))
    with _lock:
        known = _passing.setdefault(store.opened.database, OrderedDict())
        if key in known:
            known.move_to_end(key)
            return known[key]
    passing = _matching(store, bound, condition, parameters)
    with _lock:
        known[key] = passing
        while len(known) > REMEMBERED_FILTERS:
            known.popitem(last=False)
    return passing


def _matching(store: Store, bound: BoundFilter, condition: str, parameters: list[Any]) -> NDArray[np.int64]:
    named = bound.names()
    source = _source(store, named)
    if store.layout.version == 1 and "doc_id" in named:
        # A window function may not stand in WHERE.
        document = bound.columns["doc_id"].sql
        source = f"(SELECT e.*, {document} AS ragnar_document FROM {source}) e"
        condition = condition.replace(document, "e.ragnar_document")
    with store.opened.database.reading() as cursor:
        found = cursor.execute(f"SELECT e.chunk_id FROM {source} WHERE {condition}", parameters).fetchnumpy()
    return np.sort(np.asarray(found["chunk_id"], dtype=np.int64))


def _source(store: Store, named: set[str]) -> str:
    table = f"{store.layout.table} e"
    if store.layout.version == 1 or not named & {"origin", "text"}:
        return table
    return f"{table} JOIN documents d ON d.doc_id = e.{store.layout.doc_id}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
