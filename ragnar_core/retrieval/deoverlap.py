"""Merge retrieved chunks that share characters into passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.query import check_store

if TYPE_CHECKING:
    from ragnar_core.store import Store

PLAIN = ("origin", "doc_id", "start", "end", "context", "text")


def chunks_deoverlap(store: Store, chunks: pd.DataFrame, *, touching: bool = False) -> pd.DataFrame:
    """Merge chunks of one document whose ranges share characters; most relevant passage first.

    Args:
        store: where the chunks came from (its documents are read when the chunks' own texts do not add up).
        chunks: rows of any search, most relevant first.
        touching: also merge a chunk that starts exactly where another ends.

    Returns:
        One row a passage. ``start`` is the lowest start, ``end`` the farthest end, ``text`` the document
        between them once, ``context`` that of the chunk that starts first. Every other column (``chunk_id``,
        metrics, extra columns) becomes a list with one value a merged chunk, in the order of their starts. A
        passage stands where its best chunk stood. A chunk that occurs twice counts once, where it stood
        first.

    Raises:
        RetrievalError: the store is of version 1 (its chunks have no ranges), or a needed column is missing.
    """
    check_mergeable(store)
    if not isinstance(chunks, pd.DataFrame):
        raise RetrievalError(f"chunks must be the table of a search, not {type(chunks).__name__}")
    missing = [name for name in ("doc_id", "chunk_id", "start", "end") if name not in chunks.columns]
    if missing:
        raise RetrievalError(
            f"to merge chunks the columns {', '.join(missing)} are needed; pass a search result"
        )
    chunks = chunks.loc[:, [name for name in chunks.columns if name != "embedding"]]
    chunks = chunks.drop_duplicates("chunk_id").reset_index(drop=True)
    order, group = passage_groups(chunks, touching=touching)
    return _merged(store, chunks, order, group)


def check_mergeable(store: Store) -> None:
    check_store(store)
    if store.version < 2:
        raise RetrievalError(
            "chunks of a version 1 store have no positions and cannot be merged; use deoverlap=False"
        )


def passage_groups(
    chunks: pd.DataFrame, *, touching: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``order`` sorts rows by document and start; ``group`` numbers the passage of each row in that order."""
    doc = pd.factorize(chunks["doc_id"])[0]
    start = chunks["start"].to_numpy(dtype=np.int64)
    end = chunks["end"].to_numpy(dtype=np.int64)
    order = np.lexsort((np.arange(len(chunks)), start, doc)).astype(np.int64)
    doc, start, end = doc[order], start[order], end[order]
    group = np.zeros(len(chunks), dtype=np.int64)
    last_doc, farthest, number = -1, 0, -1
    for at in range(len(chunks)):
        apart = start[at] > farthest if touching else start[at] >= farthest
        if doc[at] != last_doc or apart:
            number += 1
            farthest = end[at]
        last_doc, farthest = doc[at], max(farthest, end[at])
        group[at] = number
    return order, group


def _merged(
    store: Store, chunks: pd.DataFrame, order: NDArray[np.int64], group: NDArray[np.int64]
) -> pd.DataFrame:
    members = [order[group == number] for number in range(int(group.max(initial=-1)) + 1)]
    members.sort(key=lambda rows: int(rows.min()))
    out: dict[str, Any] = {}
    for name in chunks.columns:
        column = chunks[name]
        if name == "text":
            out[name] = [_text(store, chunks, rows) for rows in members]
        elif name == "end":
            out[name] = [int(column.iloc[rows].max()) for rows in members]
        elif name in PLAIN:
            out[name] = column.iloc[[int(rows[0]) for rows in members]].to_numpy()
        else:
            values = column.tolist()
            out[name] = pd.Series([[values[row] for row in rows] for rows in members], dtype=object)
    return pd.DataFrame(out, columns=chunks.columns)


def _text(store: Store, chunks: pd.DataFrame, rows: NDArray[np.int64]) -> str:
    """The passage put together from its chunks' texts; from the document where a text is not its range."""
    part = chunks.iloc[rows]
    start, end = int(part["start"].min()), int(part["end"].max())
    text, at = "", start
    for piece_start, piece_end, piece in zip(part["start"], part["end"], part["text"], strict=True):
        if not isinstance(piece, str) or len(piece) != piece_end - piece_start:
            return store.document(int(part["doc_id"].iloc[0])).text[start:end]
        if piece_end > at:
            text += piece[at - piece_start :]
            at = int(piece_end)
    return text
