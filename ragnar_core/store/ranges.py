"""Where each chunk stands in its document, kept in memory so that a result list costs one lookup of texts.

Finding ten rows of a hundred thousand by their id takes DuckDB longer than scoring them all takes NumPy. The table is
read once the store stands still, and belongs to a number of commits; whoever used it asks afterwards whether it still
holds, and otherwise reads the rows in a transaction.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragnar_core.store.postings import Ints
from ragnar_core.store.schema import quote

if TYPE_CHECKING:
    from ragnar_core.store.connection import Database
    from ragnar_core.store.opened import Opened

MOST_BYTES = 256_000_000

_TOO_LARGE = "too large"

_lock = threading.Lock()


@dataclass(frozen=True)
class ChunkRanges:
    """`table` has the columns of `ranges_sql`, row i belonging to `chunk_ids[i]` (int64, ascending)."""

    chunk_ids: Ints
    table: pa.Table
    commits: int
    database: Database

    def take(self, chunk_ids: NDArray[np.int64]) -> pa.Table:
        """The rows of some chunks in their order; those that are not there are left out."""
        at = np.searchsorted(self.chunk_ids, chunk_ids)
        inside = at < len(self.chunk_ids)
        at, chunk_ids = at[inside], chunk_ids[inside]
        return self.table.take(pa.array(at[self.chunk_ids[at] == chunk_ids]))

    def still_hold(self) -> bool:
        """Whether no write was committed, or had begun to be, since they were read."""
        return self.database.commits == self.commits


def chunk_ranges(opened: Opened) -> ChunkRanges | None:
    """The ranges of all chunks, or None: at the first call after a write, while one is being committed, where the
    database has other writers, and for a table of more than 256 MB."""
    database, shared = opened.database, opened.database.shared
    commits = database.commits
    if commits % 2 or not database.own:
        return None
    with _lock:
        seen, known = shared.get("ranges", (None, None))
        if seen != commits:
            shared["ranges"] = commits, None
            return None
        if known is None:
            known = _read(opened, commits)
            if known.still_hold():
                # Of a table that is too large, only that it is.
                known = known if known.table.nbytes <= MOST_BYTES else _TOO_LARGE
                shared["ranges"] = commits, known
    return known if isinstance(known, ChunkRanges) else None


def ranges_sql(opened: Opened) -> str:
    """`SELECT chunk_id, doc_id, start, end, context, <extra columns>`, as the file has them."""
    layout = opened.layout
    extra = "".join(f", {quote(name)}" for name in opened.extra_cols)
    return (
        f"SELECT chunk_id, {layout.doc_id}, {layout.start}, {layout.end}, context{extra} FROM {layout.table}"
    )


def _read(opened: Opened, commits: int) -> ChunkRanges:
    with opened.database.snapshot() as cursor:
        table = cursor.execute(f"{ranges_sql(opened)} ORDER BY chunk_id").to_arrow_table().combine_chunks()
    return ChunkRanges(table.column(0).to_numpy().astype(np.int64), table, commits, opened.database)
