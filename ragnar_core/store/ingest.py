"""Ingest: many documents, read and cut in parallel, embedded in full batches, written one transaction each.

What has been embedded and is not yet part of a written document waits in the file, so that a crash, a refused request
or a cancel never means paying twice.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ragnar_core.chunking import Boundaries, Chunks, ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import EmbedCancelledError
from ragnar_core.errors import EmbedError, RagnarError, StoreError
from ragnar_core.store.cache import Floats, fixed_size_matrix
from ragnar_core.store.prepare import Prepared, check_vectors, give_vectors, keys_of, prepare
from ragnar_core.store.update import is_unchanged, known_vectors
from ragnar_core.store.write import find_existing, insert_arrow, vector_array, write_document

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

Item = str | Path | MarkdownDocument | Chunks
Prepare = Callable[[Any], MarkdownDocument | Chunks]

BATCH = 128
"""Texts a call of the embedder gets, from as many documents as that takes."""

_FAILURES_IN_A_ROW = 2


@dataclass(frozen=True)
class IngestProgress:
    """Where an ingest stands. `stage` is "read", "embed", "written", "unchanged" or "failed"; `origin` names the
    document it is about. `documents_total` is None while the list of documents is not known to its end."""

    stage: str
    origin: str | None
    documents_done: int
    documents_total: int | None
    chunks_written: int
    chunks_embedded: int
    message: str = ""


@dataclass(frozen=True)
class IngestSummary:
    """What an ingest did. `done` = inserted + replaced + unchanged documents; `failed` are (origin, reason); `pending`
    were not reached (cancelled, or the model kept failing) and come next time; `seconds` is wall time."""

    done: int = 0
    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    pending: tuple[str, ...] = ()
    cancelled: bool = False
    chunks: int = 0
    chunks_embedded: int = 0
    vectors_reused: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not (self.failed or self.pending or self.cancelled)


@dataclass
class _Waiting:
    document: Prepared
    missing: dict[bytes, str]


def ingest(
    store: Store,
    items: Iterable[Item],
    *,
    settings: ChunkSettings,
    prepare_item: Prepare | None,
    progress: Callable[[IngestProgress], None] | None,
    cancel: threading.Event | None,
    workers: int | None,
    on_error: str,
    batch_size: int,
) -> IngestSummary:
    if on_error not in ("report", "raise"):
        raise StoreError(f"on_error must be 'report' or 'raise', not {on_error!r}")
    run = _Run(store, progress, cancel or threading.Event(), on_error, batch_size)
    known = list(items) if not isinstance(items, Iterator) else None
    run.total = None if known is None else len(known)

    def work(item: Any) -> Prepared:
        made = prepare_item(item) if prepare_item else item
        return _prepared(store, made, settings)

    threads = workers or min(4, os.cpu_count() or 1)
    with closing(_in_order(work, known if known is not None else items, threads, run.cancel)) as results:
        for item, outcome in results:
            run.take(item, outcome)
    return run.finish()


class _Run:
    """One ingest: takes prepared documents in order, embeds, writes, keeps count. Used by one thread."""

    def __init__(
        self,
        store: Store,
        progress: Callable[[IngestProgress], None] | None,
        cancel: threading.Event,
        on_error: str,
        batch_size: int,
    ) -> None:
        self.store = store
        self.cancel = cancel
        self.total: int | None = None
        self.summary = IngestSummary()
        self._progress = progress
        self._on_error = on_error
        self._batch_size = batch_size
        self._started = time.monotonic()
        self._waiting: deque[_Waiting] = deque()
        self._have = load_saved_vectors(store)
        self._saved = set(self._have)
        self._origins: set[str] = set()
        self._failures = 0
        self._one_document = False
        self._stopped = False

    def take(self, item: Any, outcome: Prepared | BaseException | None) -> None:
        name = origin_of(item)
        if outcome is None or self._stopped or self.cancel.is_set():
            self._count(pending=name)
            return
        if isinstance(outcome, BaseException):
            self._fail(name, outcome)
            return
        name = outcome.origin or name
        if outcome.origin is not None and outcome.origin in self._origins:
            self._fail(name, StoreError(f"{name} is in the list twice; only the first was taken"))
            return
        if not len(outcome):
            self._fail(name, StoreError("no text was found in it"))
            return
        self._origins.add(outcome.origin or "")
        self._tell("read", name)
        if self._same(outcome):
            self.summary = replace(
                self.summary, done=self.summary.done + 1, unchanged=self.summary.unchanged + 1
            )
            self._tell("unchanged", name)
            return
        missing = {}
        for key, text in zip(keys_of(outcome), outcome.searched, strict=True):
            if self.store.dim and outcome.vectors is None and key not in self._have and text.strip():
                missing[key] = text
        reused = 0 if not self.store.dim else len(outcome) - len(missing)
        self.summary = replace(self.summary, vectors_reused=self.summary.vectors_reused + reused)
        self._waiting.append(_Waiting(outcome, missing))
        while self._missing() >= self._batch_size and not self._stopped:
            self._embed()
        self._write_complete()

    def finish(self) -> IngestSummary:
        while self._missing() and not self._stopped:
            self._embed()
        self._write_complete()
        # These were read before those that were never looked at.
        left = tuple(waiting.document.origin or "a document without origin" for waiting in self._waiting)
        self.summary = replace(self.summary, pending=left + self.summary.pending)
        if self.summary.ok:
            forget_saved_vectors(self.store)
        return replace(self.summary, cancelled=self.cancel.is_set(), seconds=time.monotonic() - self._started)

    def _same(self, document: Prepared) -> bool:
        """Whether the store holds the document already; if it holds another state, its vectors are kept for reuse."""
        with self.store.opened.database.snapshot() as cursor:
            if document.origin is None:
                sql = "SELECT 1 FROM documents WHERE origin IS NULL AND text = ?"
                return self.store.version == 2 and cursor.execute(sql, [document.text]).fetchone() is not None
            existing = find_existing(self.store, cursor, document.origin)
            if existing is None:
                return False
            if is_unchanged(self.store, cursor, document, existing):
                return True
            if document.vectors is None:
                self._have.update(known_vectors(self.store, cursor, existing))
            return False

    def _missing(self) -> int:
        return sum(len(waiting.missing) for waiting in self._waiting)

    def _embed(self) -> None:
        """One call of the model for the oldest missing texts; whatever came back is kept."""
        batch: dict[bytes, str] = {}
        for waiting in self._waiting:
            for key, text in waiting.missing.items():
                if len(batch) < self._batch_size:
                    batch[key] = text
            if len(batch) >= self._batch_size or (self._one_document and batch):
                break
        failure: EmbedError | StoreError | None = None
        keys = list(batch)
        embedder = self.store.embedder
        try:
            found = embedder.embed(list(batch.values()), progress=self._embedding, cancel=self.cancel)
            got = dict(
                zip(keys, check_vectors(found, len(keys), self.store.dim, embedder.label), strict=True)
            )
        except (EmbedError, StoreError) as error:
            failure = error
            got = _finished(error, keys)
        self._keep(got)
        self._write_complete()
        if failure is None:
            self._failures, self._one_document = 0, False
        elif isinstance(failure, EmbedCancelledError) or self.cancel.is_set():
            self._stopped = True
        elif not self._one_document and len(self._waiting) > 1 and not got:
            # Nothing says which document the model cannot take, so they are tried one by one.
            self._one_document = True
        else:
            if got:
                self._failures = 0
            self._failures += 1
            failed = self._waiting.popleft()
            self._fail(failed.document.origin or "a document without origin", failure)
            self._stopped = self._failures >= _FAILURES_IN_A_ROW

    def _keep(self, got: dict[bytes, Floats]) -> None:
        if not got:
            return
        self._have.update(got)
        for waiting in self._waiting:
            for key in got.keys() & waiting.missing.keys():
                del waiting.missing[key]
        self.summary = replace(self.summary, chunks_embedded=self.summary.chunks_embedded + len(got))
        unfinished = {key for w in self._waiting if w.missing for key in keys_of(w.document)}
        save_vectors(self.store, {k: v for k, v in got.items() if k in unfinished and k not in self._saved})
        self._saved |= got.keys() & unfinished

    def _write_complete(self) -> None:
        """Writes the documents, oldest first, that lack no vector."""
        while self._waiting and not self._waiting[0].missing:
            document = self._waiting.popleft().document
            name = document.origin or "a document without origin"
            try:
                if document.vectors is None:
                    give_vectors(document, self._have, self.store.dim)
                with self.store.opened.database.write_lock:
                    existing = None
                    if document.origin is not None:
                        with self.store.opened.database.reading() as cursor:
                            existing = find_existing(self.store, cursor, document.origin)
                    write_document(self.store, document, existing=existing)
            except RagnarError as error:
                self._fail(name, error)
                continue
            for key in keys_of(document):
                if key not in self._saved:
                    self._have.pop(key, None)
            s = self.summary
            self.summary = replace(
                s,
                done=s.done + 1,
                inserted=s.inserted + (existing is None),
                replaced=s.replaced + (existing is not None),
                chunks=s.chunks + len(document),
            )
            self._tell("written", name)

    def _fail(self, name: str, error: BaseException) -> None:
        if self._on_error == "raise":
            raise error
        reason = " ".join(str(error).split()) or type(error).__name__
        self.summary = replace(self.summary, failed=(*self.summary.failed, (name, reason)))
        self._tell("failed", name, reason)

    def _count(self, pending: str) -> None:
        self.summary = replace(self.summary, pending=(*self.summary.pending, pending))

    def _embedding(self, done: int, total: int) -> None:
        waiting = self._waiting[0].document.origin if self._waiting else None
        self._tell("embed", waiting, f"{done} of {total} texts")

    def _tell(self, stage: str, origin: str | None, message: str = "") -> None:
        if self._progress is not None:
            s = self.summary
            done = s.done + len(s.failed)
            self._progress(
                IngestProgress(stage, origin, done, self.total, s.chunks, s.chunks_embedded, message)
            )


def origin_of(item: Any) -> str:
    """How an item is named in a summary before, or without, being read."""
    if isinstance(item, str | Path):
        return str(item)
    document = getattr(item, "document", item)
    return getattr(document, "origin", None) or "a document without origin"


def load_saved_vectors(store: Store) -> dict[bytes, Floats]:
    """Vectors that an earlier ingest computed for documents it did not get to write."""
    if not store.dim:
        return {}
    with store.opened.database.reading() as cursor:
        table = cursor.execute("SELECT text_hash, embedding FROM ragnar_vectors").to_arrow_table()
    keys = table["text_hash"].to_pylist()
    parts = [fixed_size_matrix(part, store.dim) for part in table["embedding"].chunks]
    return dict(zip(keys, np.concatenate(parts), strict=True)) if keys else {}


def save_vectors(store: Store, vectors: dict[bytes, Floats]) -> None:
    if not vectors:
        return
    columns = {
        "text_hash": pa.array(list(vectors), pa.binary()),
        "embedding": vector_array(np.stack(list(vectors.values()))),
    }
    with store.opened.database.writing() as cursor:
        insert_arrow(cursor, "ragnar_vectors", columns)


def forget_saved_vectors(store: Store) -> None:
    with store.opened.database.reading() as cursor:
        row = cursor.execute("SELECT count(*) FROM ragnar_vectors").fetchone()
    if row != (0,):
        with store.opened.database.writing() as cursor:
            cursor.execute("DELETE FROM ragnar_vectors")


def _prepared(store: Store, made: Any, settings: ChunkSettings) -> Prepared:
    if isinstance(made, str | Path):
        from ragnar_core.documents import read_as_markdown

        made = read_as_markdown(made)
    if isinstance(made, MarkdownDocument):
        count = store.embedder.count_tokens if settings.unit == "tokens" and store.dim else None
        made = Boundaries.of(made).chunk(settings, count_tokens=count)
    if not hasattr(made, "table"):
        raise StoreError(f"prepare must give a document or chunks, not {type(made).__name__}")
    document = prepare(store, made)[0]
    keys_of(document)
    return document


def _in_order(
    work: Callable[[Any], Prepared], items: Iterable[Any], workers: int, cancel: threading.Event
) -> Generator[tuple[Any, Prepared | BaseException | None], None, None]:
    """(item, its result, error, or None when cancelled) in the order of the items, a few ahead of the taker."""
    with ThreadPoolExecutor(workers, thread_name_prefix="ingest") as pool:
        running: deque[tuple[Any, Future[Prepared] | None]] = deque()
        try:
            for item in items:
                running.append((item, None if cancel.is_set() else pool.submit(work, item)))
                if len(running) > 2 * workers:
                    yield _result(*running.popleft())
            while running:
                yield _result(*running.popleft())
        finally:
            for _, future in running:
                if future is not None:
                    future.cancel()


def _result(item: Any, future: Future[Prepared] | None) -> tuple[Any, Prepared | BaseException | None]:
    if future is None:
        return item, None
    try:
        return item, future.result()
    except Exception as error:
        # Readers of third parties raise what they like; each failure belongs to its document.
        return item, error


def _finished(error: Exception, keys: list[bytes]) -> dict[bytes, Floats]:
    """The vectors that an interrupted run got done before it stopped."""
    vectors, done = getattr(error, "vectors", None), getattr(error, "done", None)
    if vectors is None or done is None:
        return {}
    return {
        key: vectors[row] for row, key in enumerate(keys) if done[row] and np.isfinite(vectors[row]).all()
    }
