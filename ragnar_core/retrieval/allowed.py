"""Which chunks of a store pass a filter, and what a filter form offers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ragnar_core.retrieval.filters import Column, Filter
from ragnar_core.retrieval.scoring import Rows

if TYPE_CHECKING:
    from ragnar_core.store import Store

REMEMBERED_FILTERS = 32

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
    condition, parameters = parsed.bind(filter_columns(store)).sql()
    passing = _remembered(store, condition, parameters)
    at = np.searchsorted(chunk_ids, passing)
    known = at < len(chunk_ids)
    at, passing = at[known], passing[known]
    return at[chunk_ids[at] == passing].astype(np.int64)


def filter_columns(store: Store) -> list[Column]:
    """The columns that a filter on this store may name, with their kinds."""
    return store.filter_columns()


def _remembered(store: Store, condition: str, parameters: list[Any]) -> NDArray[np.int64]:
    key = (store.revision, condition, tuple((type(value), value) for value in parameters))
    with _lock:
        known = _passing.setdefault(store, OrderedDict())
        if key in known:
            known.move_to_end(key)
            return known[key]
    passing = np.sort(store.matching(condition, parameters))
    with _lock:
        known[key] = passing
        while len(known) > REMEMBERED_FILTERS:
            known.popitem(last=False)
    return passing
