"""The few chunks of a result list, with their texts: what ``store.fetch`` gives, in a fraction of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ragnar_core.store.ranges import chunk_ranges, ranges_sql
from ragnar_core.store.text import frame_of

if TYPE_CHECKING:
    from ragnar_core.store import Store

FEW = 500


def fetch_rows(store: Store, chunk_ids: NDArray[np.int64]) -> dict[str, Any]:
    """The columns of ``store.fetch(chunk_ids)`` by name, in that order; chunks that are gone have no row."""
    if store.layout.version == 1 or not 0 < len(chunk_ids) <= FEW:
        table = store.fetch(chunk_ids)
        return {str(name): table[name] for name in table.columns}
    known = chunk_ranges(store.opened)
    if known is not None:
        with store.opened.database.reading() as cursor:
            columns = _columns(store, cursor, known.take(chunk_ids))
        if known.still_hold():
            return columns
    wanted = [int(number) for number in chunk_ids]
    with store.opened.database.snapshot() as cursor:
        # Ids as values, not as a table to join: then DuckDB skips the row groups that cannot hold them.
        sql = f"{ranges_sql(store.opened)} WHERE chunk_id IN ({_marks(wanted)})"
        table = cursor.execute(sql, wanted).to_arrow_table()
        place = {number: row for row, number in enumerate(table.column(0).to_pylist())}
        order = [place[number] for number in wanted if number in place]
        return _columns(store, cursor, table.take(pa.array(order, pa.int64())))


def _columns(store: Store, cursor: Any, table: pa.Table) -> dict[str, Any]:
    """The columns of ``store.fetch`` for rows of ``ranges_sql``."""
    layout = store.layout
    ids, docs, starts, ends, contexts = (table.column(number).to_pylist() for number in range(5))
    first = 1 if layout.kind == "ragnar" else 0
    starts = [start - first for start in starts]
    parts = _parts(cursor, docs, starts, ends)
    texts = []
    for doc, start, end in zip(docs, starts, ends, strict=True):
        _, low, text = parts[doc]
        texts.append(text[start - low : end - low])
    columns: dict[str, Any] = {
        "chunk_id": np.array(ids, dtype=np.int64),
        "doc_id": np.array(docs) if layout.kind != "ragnar" else np.array(docs, dtype=np.int32),
        "origin": _strings([parts[doc][0] for doc in docs]),
        "start": np.array(starts, dtype=np.int64),
        "end": np.array(ends, dtype=np.int64),
        "context": _strings([context or "" for context in contexts]),
        "text": _strings(texts),
    }
    extra = list(store.extra_cols)
    if extra:
        frame = frame_of(table.select(extra))
        columns |= {name: frame[name] for name in extra}
    return columns


def _parts(
    cursor: Any, docs: list[Any], starts: list[int], ends: list[int]
) -> dict[Any, tuple[str | None, int, str]]:
    """Document -> origin, and the part of its text that its chunks cover with where that starts."""
    reach: dict[Any, tuple[int, int]] = {}
    for doc, start, end in zip(docs, starts, ends, strict=True):
        low, high = reach.get(doc, (start, end))
        reach[doc] = min(low, start), max(high, end)
    parts: dict[Any, tuple[str | None, int, str]] = {doc: (None, low, "") for doc, (low, _) in reach.items()}
    known = list(reach)
    lows, sizes = [low + 1 for low, _ in reach.values()], [high - low for low, high in reach.values()]
    # IN goes through the primary key; slicing there saves the rest of a long document the way here.
    sql = (
        "SELECT doc_id, origin, substring(text, list_extract(?, place), list_extract(?, place)) FROM "
        f"(SELECT *, list_position(?, doc_id) AS place FROM documents WHERE doc_id IN ({_marks(known)}))"
    )
    for doc, origin, text in cursor.execute(sql, [lows, sizes, known, *known]).fetchall():
        parts[doc] = origin, reach[doc][0], text or ""
    return parts


def _marks(values: list[Any]) -> str:
    return ", ".join("?" * len(values)) or "NULL"


def _strings(values: list[Any]) -> Any:
    return pd.array(values, dtype="str")
