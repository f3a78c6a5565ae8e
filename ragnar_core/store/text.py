"""From chunk ids to what a chunk says: rows with Python's ranges, and the text that is embedded and indexed."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ragnar_core.store.layout import Layout
from ragnar_core.store.schema import quote

_BATCH = 5000
Ids = NDArray[np.int64]


def searched_text(context: str | None, text: str) -> str:
    """What is embedded and indexed of a chunk: the headings in force, a line break, the text (as in ragnar)."""
    return f"{context}\n{text}" if context else text


def texts_of(cursor: duckdb.DuckDBPyConnection, layout: Layout, chunk_ids: Ids) -> list[str]:
    """The searched texts of chunks, in the order of `chunk_ids`."""
    texts: list[str] = []
    for start in range(0, len(chunk_ids), _BATCH):
        rows = rows_of(cursor, layout, chunk_ids[start : start + _BATCH], ())
        texts += [searched_text(c, t) for c, t in zip(rows["context"], rows["text"], strict=True)]
    return texts


def rows_of(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, chunk_ids: Ids | None, extra: Sequence[str]
) -> pd.DataFrame:
    """chunk_id, doc_id, origin, start, end, context, text and the extra columns, in the order of `chunk_ids` (None: all,
    ascending). Ids that are not in the store have no row."""
    columns = "".join(f", {quote(name)}" for name in extra)
    where = ""
    if chunk_ids is not None:
        wanted = pa.table({"chunk_id": pa.array(np.asarray(chunk_ids, np.int64))})
        cursor.register("ragnar_wanted", wanted)
        where = "WHERE chunk_id IN (SELECT chunk_id FROM ragnar_wanted)"
    if layout.version == 1:
        head = "chunk_id, coalesce(min(chunk_id) OVER (PARTITION BY origin), chunk_id) AS doc_id, origin"
        nothing = 'NULL::INTEGER AS start, NULL::INTEGER AS "end", NULL::VARCHAR AS context'
        base = f"SELECT {head}, {nothing}, text{columns} FROM chunks"
        # The document's number is its first chunk's, so it is found before rows are left out.
        frame = cursor.execute(f"SELECT * FROM ({base}) {where} ORDER BY chunk_id").to_arrow_table()
    else:
        frame = cursor.execute(
            f'SELECT chunk_id, {layout.doc_id} AS doc_id, {layout.start} AS start, {layout.end} AS "end", '
            f"context{columns} FROM {layout.table} {where} ORDER BY chunk_id"
        ).to_arrow_table()
    rows = frame_of(frame)
    if layout.version != 1:
        rows = _with_texts(cursor, layout, rows, extra)
    else:
        rows = rows.assign(doc_id=_numbered(rows), context="")
    if chunk_ids is not None:
        cursor.unregister("ragnar_wanted")
        place = pd.Index(rows["chunk_id"]).get_indexer(pd.Index(np.asarray(chunk_ids, np.int64)))
        rows = rows.iloc[place[place >= 0]].reset_index(drop=True)
    return rows


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Arrow to pandas: text as Python str objects, numbers that can be missing as nullable, the rest as pandas does."""
    nullable = {pa.int32(): pd.Int64Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    with_nulls = {name for name in table.column_names if table[name].null_count}
    frame: pd.DataFrame = pa.Table.from_arrays(
        [table[name] for name in table.column_names], names=table.column_names
    ).to_pandas(
        types_mapper=lambda kind: None,
        date_as_object=True,
        strings_to_categorical=False,
    )
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            frame[name] = pd.Series(table[name].to_pylist(), dtype=object)
        elif name in with_nulls and kind in nullable:
            frame[name] = pd.array(table[name].to_pylist(), dtype=nullable[kind])
    return frame


def _with_texts(
    cursor: duckdb.DuckDBPyConnection, layout: Layout, rows: pd.DataFrame, extra: Sequence[str]
) -> pd.DataFrame:
    """Slices in Python: DuckDB's own slicing walks the document from its start for every chunk."""
    first = 1 if layout.kind == "ragnar" else 0
    starts = rows["start"].to_numpy(dtype=np.int64) - first
    ends = rows["end"].to_numpy(dtype=np.int64)
    texts = np.empty(len(rows), dtype=object)
    origins = np.empty(len(rows), dtype=object)
    codes, doc_ids = pd.factorize(rows["doc_id"])
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(doc_ids) + 1))
    for begin in range(0, len(doc_ids), 200):
        some = doc_ids[begin : begin + 200].tolist()
        marks = ", ".join("?" * len(some))
        found = cursor.execute(f"SELECT doc_id, origin, text FROM documents WHERE doc_id IN ({marks})", some)
        documents = {doc_id: (origin, text or "") for doc_id, origin, text in found.fetchall()}
        for number, doc_id in enumerate(some, begin):
            origin, text = documents.get(doc_id, (None, ""))
            for row in order[bounds[number] : bounds[number + 1]]:
                texts[row] = text[starts[row] : ends[row]]
                origins[row] = origin
    return pd.DataFrame(
        {
            "chunk_id": rows["chunk_id"].astype(np.int64),
            "doc_id": rows["doc_id"],
            "origin": origins,
            "start": starts,
            "end": ends,
            "context": [context or "" for context in rows["context"]],
            "text": texts,
            **{name: rows[name] for name in extra},
        }
    )


def _numbered(rows: pd.DataFrame) -> pd.Series:
    """Chunks without an origin belong to no common document: each is its own."""
    return rows["chunk_id"].where(rows["origin"].isna(), rows["doc_id"]).astype(np.int64)
