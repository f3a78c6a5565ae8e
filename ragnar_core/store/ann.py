"""A graph of near vectors beside a very large store (HNSW, Malkov and Yashunin 2016, by usearch): a cache, never the
truth.

It is one file, `<store>.ann`, which may be deleted at any time. It names the chunks it was built from, each with a
fingerprint of its vector, and what the store does not hold in the same way now is left out of it: so a file of another
store, or of another state of this one, can cost time and never an answer. Whatever it proposes is measured again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.errors import StoreError
from ragnar_core.store.cache import VectorTable
from ragnar_core.store.postings import Ints

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

ANN_FROM = 300_000
"""Chunks from which on a graph is built and used; below, the exact search takes less than 40 ms of CPU."""

MOST_OUTSIDE = 0.1
"""Share of the chunks that may be outside the graph, and are searched exactly beside it, before it is left unused."""

_MAGIC = b"ragnar ann 1\n\0\0\0"
_ALIGN = 64
_BATCH = 10_000
# bfloat16 halves the file and the time to build; the graph only proposes, so its rounding costs nothing.
_GRAPH: dict[str, Any] = {
    "metric": "cos",
    "dtype": "bf16",
    "connectivity": 32,
    "expansion_add": 128,
    "expansion_search": 512,
}
_lock = threading.RLock()


@dataclass(frozen=True)
class Graph:
    """A file that was read: key i of `index` is the vector of `chunk_ids[i]` (int64, ascending), whose fingerprint is
    `prints[i]` (uint64). `data` is the mapped file, which the index reads and does not keep by itself."""

    index: Any
    chunk_ids: Ints
    prints: NDArray[np.uint64]
    data: NDArray[np.uint8]


@dataclass(frozen=True)
class GraphView:
    """A graph over a table of vectors: `row_of[key]` is the table's row, or -1 where the table has that vector no
    more; `outside` are the rows that the graph lacks, int64 ascending."""

    graph: Graph
    row_of: Ints
    outside: Ints

    def near(self, query: NDArray[np.float32], count: int) -> Ints:
        """About `count` rows whose vectors point most nearly where the query's does, of those in the graph."""
        keys = np.asarray(self.graph.index.search(query, count, threads=1).keys, np.int64)
        rows = self.row_of[keys[keys < len(self.row_of)]]
        return rows[rows >= 0]


@dataclass
class _Seen:
    """What is known of a store's file in this process."""

    stamp: tuple[int, int, int]
    graph: Graph | None
    damage: str = ""
    loads: int = -1
    verified: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    table: VectorTable | None = None
    view: GraphView | None = None


def ann_path(store: Store) -> Path | None:
    """Where a store's graph is kept; None for stores in memory and elsewhere."""
    database = store.opened.database
    return Path(database.path + ".ann") if database.path is not None and store.dim else None


def available() -> bool:
    """Whether usearch is installed. It is loaded when a graph is, since it takes long and few stores need it."""
    return importlib.util.find_spec("usearch") is not None


def graph_view(store: Store, table: VectorTable) -> GraphView | None:
    """The graph over this table, or None where the exact search is to be used: the table is small, or there is no file
    that is sound and fits it well enough."""
    if len(table) < ANN_FROM:
        return None
    with _lock:
        seen = _look(store)
        if seen is None or seen.graph is None:
            return None
        if seen.table is not table:
            seen.table, seen.view = table, _fit(store, seen, seen.graph, table)
        view = seen.view
        return view if view is not None and len(view.outside) <= MOST_OUTSIDE * len(table) else None


def build_graph(store: Store, progress: Callable[[int, int], None] | None = None) -> bool:
    """Writes the graph of a store that is large enough, in place of an older one; False where none is needed or
    usearch is not installed."""
    path = ann_path(store)
    if path is None or not available():
        return False
    table = store.vectors()
    if len(table) < ANN_FROM:
        return False
    rows = np.flatnonzero(table.norms > 0)
    index = _new_index(store.dim)
    for start in range(0, len(rows), _BATCH):
        some = rows[start : start + _BATCH]
        index.add(np.arange(start, start + len(some)), table.matrix[some])
        if progress is not None:
            progress(min(start + _BATCH, len(rows)), len(rows))
    parts = [table.chunk_ids[rows].astype("<i8"), _prints(table.matrix[rows]).astype("<u8")]
    header = {
        "store": store.name,
        "revision": store.revision,
        "dim": store.dim,
        "chunks": len(rows),
        **_GRAPH,
    }
    with _lock:
        # On Windows a file that is mapped cannot be replaced.
        store.opened.database.shared.pop("ann", None)
        _write(
            path,
            header,
            [*(np.frombuffer(part, np.uint8) for part in parts), np.frombuffer(index.save(), np.uint8)],
        )
    return True


def delete_graph(store: Store) -> None:
    """Takes the file away. One that cannot be deleted (on Windows, while another process has it mapped) stays, and is
    believed no further than its fingerprints go."""
    path = ann_path(store)
    if path is not None:
        with _lock, contextlib.suppress(OSError):
            store.opened.database.shared.pop("ann", None)
            path.unlink()


def graph_state(store: Store, here: Ints) -> tuple[str, int]:
    """("none", "absent", "fresh", "stale" or "damaged", chunks it lacks or has too many) for the chunks with a vector
    `here`. "none": the store is searched exactly, as it is not large enough to need a graph."""
    with _lock:
        seen = _look(store)
        if seen is None:
            return ("none" if len(here) < ANN_FROM else "absent"), 0
        if seen.graph is None:
            return "damaged", 0
        known = seen.graph.chunk_ids[seen.verified] if len(seen.verified) else seen.graph.chunk_ids
        off = int((~np.isin(here, known)).sum()) + len(seen.graph.chunk_ids) - int(np.isin(known, here).sum())
        return ("stale" if off else "fresh"), off


def _look(store: Store) -> _Seen | None:
    """What the file holds, read when it is new to this process; None when there is none or it cannot be used."""
    path, shared = ann_path(store), store.opened.database.shared
    try:
        stat = path.stat() if path is not None and available() else None
    except OSError:
        stat = None
    if path is None or stat is None:
        shared.pop("ann", None)
        return None
    stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    seen: _Seen | None = shared.get("ann")
    if seen is None or seen.stamp != stamp:
        try:
            seen = _Seen(stamp, _read(path, store.dim))
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            seen = _Seen(stamp, None, str(error))
        shared["ann"] = seen
    return seen


def _fit(store: Store, seen: _Seen, graph: Graph, table: VectorTable) -> GraphView:
    """Which rows of a table are in the graph with the vector that they have now."""
    at = np.searchsorted(table.chunk_ids, graph.chunk_ids).clip(max=len(table) - 1)
    there = table.chunk_ids[at] == graph.chunk_ids
    loads = store.opened.cache.loads
    if seen.loads != loads:
        # While a table is only added to and taken from, a chunk's vector stays what it was.
        seen.verified = np.zeros(len(there), bool)
        for start in range(0, len(there), _BATCH):
            some = slice(start, start + _BATCH)
            seen.verified[some] = there[some] & (_prints(table.matrix[at[some]]) == graph.prints[some])
        seen.loads = loads
    there &= seen.verified
    outside = np.ones(len(table), bool)
    outside[at[there]] = False
    # A chunk without a vector is nowhere near anything.
    outside &= table.norms > 0
    return GraphView(graph, np.where(there, at, -1).astype(np.int64), np.flatnonzero(outside))


def _prints(matrix: NDArray[np.float32]) -> NDArray[np.uint64]:
    """A number a row, uint64, that changes with any of its bits: a sum of its numbers' bits, each times its own odd
    factor."""
    factors = np.random.default_rng(20).integers(1 << 62, size=matrix.shape[1], dtype=np.uint64) * 2 + 1
    prints = np.empty(len(matrix), np.uint64)
    for start in range(0, len(matrix), _BATCH):
        bits = np.ascontiguousarray(matrix[start : start + _BATCH], "<f4").view("<u4")
        prints[start : start + _BATCH] = bits.astype(np.uint64) @ factors
    return prints


def _new_index(dim: int) -> Any:
    from usearch.index import Index

    return Index(ndim=dim, enable_key_lookups=False, **_GRAPH)


def _write(path: Path, header: dict[str, Any], parts: list[NDArray[np.uint8]]) -> None:
    sum_of_parts = 0
    for part in parts:
        sum_of_parts = zlib.crc32(part.data, sum_of_parts)
    text = json.dumps({**header, "sizes": [len(part) for part in parts], "crc32": sum_of_parts}).encode()
    made = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with made.open("wb") as file:
            head = _MAGIC + struct.pack("<II", len(text), zlib.crc32(text)) + text
            file.write(head.ljust(-(-len(head) // _ALIGN) * _ALIGN, b"\0"))
            for part in parts:
                file.write(part.data)
                file.write(b"\0" * (-len(part) % _ALIGN))
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)
    except OSError as error:
        raise StoreError(f"{path} was not written: {error.strerror or error}; searches stay exact") from error
    finally:
        made.unlink(missing_ok=True)


def _read(path: Path, dim: int) -> Graph:
    """Raises ValueError, saying what is wrong, for anything but a whole file of ours for vectors of `dim` numbers. The
    graph itself stays in the file, memory mapped."""
    with path.open("rb") as file:
        data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    front = len(_MAGIC) + 8
    if len(data) < front or data[: len(_MAGIC)].tobytes() != _MAGIC:
        raise ValueError("it is no file of this kind")
    size, own_sum = struct.unpack("<II", data[len(_MAGIC) : front].tobytes())
    text = data[front : front + size].tobytes()
    if zlib.crc32(text) != own_sum:
        raise ValueError("its head is damaged")
    header = json.loads(text)
    at, parts, sum_of_parts = -(-(front + size) // _ALIGN) * _ALIGN, [], 0
    for length in header["sizes"]:
        parts.append(data[at : at + length])
        sum_of_parts = zlib.crc32(parts[-1].data, sum_of_parts)
        at += length + -length % _ALIGN
    if at != len(data) or sum_of_parts != header["crc32"]:
        raise ValueError("it is damaged or not whole")
    if header["dim"] != dim or {name: header[name] for name in _GRAPH} != _GRAPH:
        raise ValueError("it was built for other vectors or with other settings")
    index = _new_index(dim)
    # Its own reader does not notice every damage, so nothing reaches it that the sums do not vouch for.
    index.view(parts[2])
    if len(index) != header["chunks"]:
        raise ValueError("it does not hold the chunks that it names")
    return Graph(index, parts[0].view("<i8").astype(np.int64), parts[1].view("<u8").astype(np.uint64), data)
