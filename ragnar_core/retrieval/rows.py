"""The few chunks of a result list, with their texts: what ``store.fetch`` gives, in a third of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.store.text import frame_of

if TYPE_CHECKING:
    from ragnar_core.store import Store

FEW = 500
AT_ONCE = 20


def fetch_rows(store: Store, chunk_ids: NDArray[np.int64]) -> dict[str, Any]:
    """The columns of ``store.fetch(chunk_ids)`` by name, in that order; chunks that are gone have no row."""
    if store.layout.version == 1 or not 0 < len(chunk_ids) <= FEW:
        table = store.fetch(chunk_ids)
        return {str(name): table[name] for name in table.columns}
    layout, extra = store.layout, list(store.extra_cols)
    wanted = [int(number) for number in chunk_ids]
    names = "".join(', "' + name.replace('"', '""') + '"' for name in extra)
    with store.opened.database.snapshot() as cursor:
        # Ids as values, not as a table to join: then DuckDB skips the row groups that cannot hold them.
        table = cursor.execute(
            f"SELECT chunk_id, {layout.doc_id}, {layout.start}, {layout.end}, context{names} "
            f"FROM {layout.table} WHERE chunk_id IN ({_marks(wanted)})",
            wanted,
        ).to_arrow_table()
        base = [table.column(number).to_pylist() for number in range(5)]
        place = {number: row for row, number in enumerate(base[0])}
        order = [place[number] for number in wanted if number in place]
        ids, docs, starts, ends, contexts = ([column[row] for row in order] for column in base)
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
    if extra:
        frame = frame_of(table.select(extra)).iloc[order].reset_index(drop=True)
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
    for at in range(0, len(known), AT_ONCE):
        some = known[at : at + AT_ONCE]
        lows, sizes = [reach[doc][0] + 1 for doc in some], [reach[doc][1] - reach[doc][0] for doc in some]
        # IN goes through the primary key; slicing there saves the rest of a long document the way here.
        sql = (
            "SELECT doc_id, origin, substring(text, list_extract(?, place), list_extract(?, place)) FROM "
            f"(SELECT *, list_position(?, doc_id) AS place FROM documents WHERE doc_id IN ({_marks(some)}))"
        )
        for doc, origin, text in cursor.execute(sql, [lows, sizes, some, *some]).fetchall():
            parts[doc] = origin, reach[doc][0], text or ""
    return parts


def _marks(values: list[Any]) -> str:
    return ", ".join("?" * len(values)) or "NULL"


def _strings(values: list[Any]) -> Any:
    return pd.array(values, dtype="str")
