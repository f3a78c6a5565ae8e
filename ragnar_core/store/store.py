"""The store: a handful of verbs over one DuckDB file."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
import pandas as pd

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import Embedder, as_embedder, embedder_from_config
from ragnar_core.errors import EmbedError, StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.analyzer import Analyzer, AnalyzerOptions
from ragnar_core.store.cache import VectorTable
from ragnar_core.store.connection import MEMORY, Database, acquire, create_file, is_open, release
from ragnar_core.store.motherduck import connect_motherduck, is_motherduck
from ragnar_core.store.opened import Opened, adopt, opened
from ragnar_core.store.postings import PostingsTable
from ragnar_core.store.prepare import Input, Prepared, embed_missing, prepare
from ragnar_core.store.schema import Layout, check_name, create_tables, extra_types
from ragnar_core.store.text import frame_of, rows_of
from ragnar_core.store.update import UpdateResult, update_documents
from ragnar_core.store.write import delete_documents, find_existing, write_document

Embed = Embedder | Callable[..., Any] | Mapping[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class StoreCounts:
    """How much a store holds; `bytes` is the size of the file with its write-ahead log, 0 in memory."""

    documents: int
    chunks: int
    dim: int
    bytes: int


class Store:
    """Documents, their chunks, vectors and postings in one DuckDB file, which ragnar (R) opens as well.

    Made by `Store.create` or `Store.connect`. May be used from any number of threads: readers see the last committed
    state, writers take turns. Tables that come out use Python's ranges: 0-based, half open.
    """

    def __init__(
        self, database: Database, location: str, *, read_only: bool, embed: Embed | None = None
    ) -> None:
        self.location = location
        self.read_only = read_only
        self.opened: Opened = opened(database)
        self._embedder = None if embed is None else as_embedder(embed)
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def create(
        cls,
        location: str | Path,
        embed: Embed | None = None,
        *,
        embedding_size: int | None = None,
        version: int = 2,
        extra_cols: Mapping[str, Any] | pd.DataFrame | None = None,
        name: str | None = None,
        title: str | None = None,
        overwrite: bool = False,
        analyzer: AnalyzerOptions | None = None,
    ) -> Store:
        """Makes a store, open for writing.

        Args:
            location: path of the file, or ":memory:".
            embed: the model: an Embedder, its configuration, or a function of a list of texts. None makes a store for
                BM25 only, or, with `embedding_size`, one whose vectors are handed in.
            embedding_size: numbers a vector; found by asking the model when not given.
            version: 2 (documents with ranges) or 1 (a flat table of chunks), as in ragnar.
            extra_cols: further columns of chunks, name -> type, or a data frame whose columns to copy.
            name: letters, digits, _ and -; title: for people.
            overwrite: replace a store that is there; never another kind of file.
            analyzer: what counts as a word for BM25.

        Raises StoreError when the file exists, cannot be written or a setting is out of range.
        """
        if version not in (1, 2):
            raise StoreError(f"version must be 1 or 2, not {version!r}")
        embedder = None if embed is None else as_embedder(embed)
        dim = _dimension(embedder, embedding_size)
        extra = extra_types(extra_cols)
        config = embedder.config if embedder else None
        metadata: dict[str, Any] = {
            "embed_func": interop_r.write_embed(config),
            "name": check_name(name if name is not None else f"store_{next(_numbers):03d}"),
            "title": title,
            "embed_config": None if config is None else json.dumps(config),
        }
        if version == 1:
            metadata["schema"] = interop_r.write_schema(extra, dim)
        options = (analyzer or AnalyzerOptions()).to_dict()

        def lay_out(database: Database) -> None:
            with database.writing() as cursor:
                create_tables(
                    cursor, version=version, dim=dim, extra=extra, metadata=metadata, analyzer=options
                )

        if is_motherduck(str(location)):
            database = connect_motherduck(str(location), create=True)
            lay_out(database)
            return cls(database, str(location), read_only=False, embed=embedder)
        if str(location) == MEMORY:
            database = acquire(None, read_only=False)
            lay_out(database)
            return cls(database, MEMORY, read_only=False, embed=embedder)
        path = _path(location)
        if Path(path).exists() or Path(path + ".wal").exists():
            _check_overwrite(path, overwrite)
        made = f"{path}.{os.getpid()}.new"
        _remove(made)
        try:
            create_file(made)
            database = acquire(made, read_only=False)
            try:
                lay_out(database)
            finally:
                release(database, read_only=False)
            _remove(path + ".wal", only=True)
            os.replace(made, path)
        finally:
            _remove(made)
        return cls(acquire(path, read_only=False), path, read_only=False, embed=embedder)

    @classmethod
    def connect(cls, location: str | Path, *, read_only: bool = True, embed: Embed | None = None) -> Store:
        """Opens a store of ours, of ragnar (versions 1 and 2) or of raghilda (reading only).

        `embed` is needed where the file cannot name its model (a function); it must be the model that built the store.
        Raises StoreError when there is no store, another process holds it, or the model is another one.
        """
        if str(location) == MEMORY:
            raise StoreError(
                "a store in memory cannot be connected to; keep the object that Store.create returned"
            )
        if is_motherduck(str(location)):
            return cls(connect_motherduck(str(location)), str(location), read_only=read_only, embed=embed)
        path = _path(location)
        database = acquire(path, read_only=read_only)
        try:
            store = cls(database, path, read_only=read_only, embed=embed)
            if store.layout.kind == "raghilda" and not read_only:
                raise StoreError(f"{path} is a store of raghilda, which can be read here but not changed")
            if embed is not None:
                store._check_model()
        except BaseException:
            release(database, read_only=read_only)
            raise
        return store

    @property
    def layout(self) -> Layout:
        return self.opened.layout

    @property
    def name(self) -> str:
        return self.opened.name

    @property
    def title(self) -> str | None:
        return self.opened.title

    @property
    def version(self) -> int:
        """1 or 2: the layout of ragnar's that the file has."""
        return self.layout.version

    @property
    def dim(self) -> int:
        """Numbers a vector; 0 in a store without vectors."""
        return self.opened.dim

    @property
    def extra_cols(self) -> dict[str, str]:
        """Further columns of chunks: name -> DuckDB type."""
        return dict(self.opened.extra_cols)

    @property
    def revision(self) -> int:
        """A number that changes at each write."""
        return self.opened.revision

    @property
    def embed_config(self) -> dict[str, Any] | None:
        """The model's configuration, without secrets; None where the file names none."""
        return self.opened.embed_config

    @property
    def r_call(self) -> str | None:
        """The R expression in `embed_func` that embeds `x`, as text, or None."""
        return self.opened.r_call

    @property
    def embedder(self) -> Embedder:
        """The model; made from the configuration at first use. Raises EmbedError when it is unknown."""
        with self._lock:
            if self._embedder is None:
                if not self.dim:
                    raise EmbedError(
                        f"{self.location} has no vectors (it was made for BM25 only), so it has no model"
                    )
                if self.embed_config is None:
                    said = f" (its R function is {self.r_call})" if self.r_call else ""
                    raise EmbedError(
                        f"{self.location} does not say which model built it{said}; "
                        "pass the model as embed= to Store.connect"
                    )
                self._embedder = embedder_from_config(self.embed_config)
            return self._embedder

    @property
    def analyzer(self) -> Analyzer:
        with self.opened.database.reading() as cursor:
            return self.opened.cache.term_coder(cursor).analyzer

    @property
    def chunk_settings(self) -> ChunkSettings | None:
        """The settings of the chunks written last, where they are known."""
        if not self.opened.has_own_tables:
            return None
        with self.opened.database.reading() as cursor:
            row = cursor.execute("SELECT chunk_settings FROM ragnar_state").fetchone()
        return ChunkSettings.from_dict(json.loads(row[0])) if row and row[0] else None

    def insert(self, chunks: Input, *, vectors: Any = None) -> None:
        """Adds documents. Takes the chunks of one (`markdown_chunk`), a list of those, or a data frame with a column
        text and maybe origin, context, hash, embedding and the extra columns (a document an origin).

        `vectors` float32 `(n, dim)` saves embedding. Each document is one transaction. Raises StoreError when an origin
        is in the store already or something does not fit, EmbedError when the model fails.
        """
        self._writable()
        documents = prepare(self, chunks, vectors)
        embed_missing(self, documents)
        for document in documents:
            write_document(self, document)
        self._remember(documents)

    def update(self, chunks: Input, *, vectors: Any = None, doc_id: int | None = None) -> UpdateResult:
        """Makes the store hold exactly these chunks of these documents: adds what is new, replaces what changed, drops
        chunks that are no more, embeds only texts it has no vector for. `doc_id` names a document without origin."""
        self._writable()
        documents = prepare(self, chunks, vectors)
        result = update_documents(self, documents, doc_id)
        self._remember(documents)
        return result

    def delete(self, origin: str | int) -> int:
        """Takes out the document with an origin, or with a doc_id. Returns the number of chunks that went (0: none was
        there)."""
        self._writable()
        with self.opened.database.write_lock:
            with self.opened.database.reading() as cursor:
                found = find_existing(self, cursor, origin)
            return delete_documents(self, [found] if found else [])

    def documents(self) -> pd.DataFrame:
        """doc_id, origin, chunks, characters: a row a document, in the order they came."""
        if self.version == 1:
            sql = (
                "SELECT min(chunk_id) AS doc_id, any_value(origin) AS origin, count(*) AS chunks, "
                "sum(length(text)) AS characters FROM chunks GROUP BY coalesce(origin, chr(0) || chunk_id) ORDER BY 1"
            )
        else:
            order = "d.rowid" if self.layout.kind == "raghilda" else "d.doc_id"
            sql = (
                "SELECT d.doc_id, d.origin, coalesce(e.chunks, 0) AS chunks, length(d.text) AS characters "
                "FROM documents d LEFT JOIN (SELECT doc_id, count(*) AS chunks FROM embeddings GROUP BY doc_id) e "
                f"USING (doc_id) ORDER BY {order}"
            )
        with self.opened.database.reading() as cursor:
            frame = frame_of(cursor.execute(sql).to_arrow_table())
        return frame.assign(
            chunks=frame["chunks"].astype(np.int64), characters=frame["characters"].fillna(0).astype(np.int64)
        )

    def document(self, which: str | int) -> MarkdownDocument:
        """A document by origin or doc_id. In a version 1 store, which keeps no documents, its chunks joined by blank
        lines. Raises StoreError when there is none."""
        with self.opened.database.reading() as cursor:
            if self.version == 1:
                found = find_existing(self, cursor, which)
                if found is not None:
                    rows = rows_of(cursor, self.layout, found.chunk_ids, ())
                    return MarkdownDocument("\n\n".join(rows["text"]), rows["origin"].iloc[0])
            else:
                origin_first = "(origin = $1 OR doc_id = $1)" if self.layout.kind == "raghilda" else (
                    "origin = $1" if isinstance(which, str) else "doc_id = $1"
                )  # fmt: skip
                value = which if isinstance(which, str) else int(which)
                row = cursor.execute(
                    f"SELECT text, origin FROM documents WHERE {origin_first}", [value]
                ).fetchone()
                if row is not None:
                    return exact_document(row[0] or "", row[1])
        raise StoreError(
            f"there is no document {which!r} in {self.location}; documents() lists what there is"
        )

    def chunks(self, doc_id: Any = None) -> pd.DataFrame:
        """chunk_id, doc_id, origin, start, end, context, text and extra columns; of one document or of all."""
        with self.opened.database.snapshot() as cursor:
            ids = None
            if doc_id is not None:
                if self.version == 1:
                    found = find_existing(self, cursor, int(doc_id))
                    ids = np.zeros(0, np.int64) if found is None else found.chunk_ids
                else:
                    sql = f"SELECT chunk_id FROM {self.layout.table} WHERE doc_id = ? ORDER BY chunk_id"
                    value = doc_id if isinstance(doc_id, str) else int(doc_id)
                    ids = np.asarray(cursor.execute(sql, [value]).fetchnumpy()["chunk_id"], np.int64)
            return rows_of(cursor, self.layout, ids, list(self.opened.extra_cols))

    def fetch(self, chunk_ids: Sequence[int] | np.ndarray[Any, Any]) -> pd.DataFrame:
        """The rows of `chunks()` for some ids, in their order; ids that are gone have no row."""
        with self.opened.database.snapshot() as cursor:
            ids = np.asarray(chunk_ids, np.int64)
            return rows_of(cursor, self.layout, ids, list(self.opened.extra_cols))

    def counts(self) -> StoreCounts:
        if self.version == 1:
            sql = "SELECT count(DISTINCT origin) + count(*) FILTER (origin IS NULL), count(*) FROM chunks"
        else:
            sql = "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM embeddings)"
        with self.opened.database.reading() as cursor:
            row = cursor.execute(sql).fetchone()
        assert row is not None
        path = self.opened.database.path
        size = sum(p.stat().st_size for p in (Path(path), Path(path + ".wal")) if p.exists()) if path else 0
        return StoreCounts(int(row[0]), int(row[1]), self.dim, size)

    def vectors(self) -> VectorTable:
        """All vectors as one matrix, kept for the process until the next write."""
        return self.opened.cache.vectors(self.opened.database.snapshot)

    def postings(self) -> PostingsTable:
        """All postings by term, kept for the process until the next write. Chunks that another program wrote are
        indexed on the way, so that a search never misses them; `build_index` saves that work for the next time."""
        return self.opened.cache.postings(self.opened.database.snapshot)

    def close(self) -> None:
        """Lets go of the file; it is closed with the process's last store on it. May be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                release(self.opened.database, read_only=self.read_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.location!r}, name={self.name!r}, version={self.version}, dim={self.dim})"

    def _writable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.location} is closed; connect to it again")
        if self.read_only:
            raise StoreError(
                f"{self.location} is open for reading only; connect with read_only=False to change it"
            )
        adopt(self.opened, AnalyzerOptions().to_dict())

    def _remember(self, documents: Sequence[Prepared]) -> None:
        settings = next((d.settings for d in reversed(documents) if d.settings is not None), None)
        if settings is None:
            return
        text = json.dumps(settings.to_dict())
        if self.opened.database.shared.get("chunk_settings") == text:
            return
        with self.opened.database.writing() as cursor:
            cursor.execute("UPDATE ragnar_state SET chunk_settings = ?", [text])
        self.opened.database.shared["chunk_settings"] = text

    def _check_model(self) -> None:
        """Refuses a model other than the one that built the store."""
        assert self._embedder is not None
        given, stored = self._embedder.config, self.embed_config
        if self.dim and self._embedder.dim != self.dim:
            raise StoreError(
                f"{self.location} was built with {_label(stored)} ({self.dim} numbers a vector); "
                f"{self._embedder.label} gives {self._embedder.dim}. Open it with the model that built it, "
                "or connect without embed= and call reembed"
            )
        if stored is not None and _same_model(stored, given) is False:
            raise StoreError(
                f"{self.location} was built with {_label(stored)} ({self.dim} numbers a vector); "
                f"{_label(given)} ({self._embedder.dim}) is another model, whose vectors mean something else. "
                "Open it with the model that built it, or connect without embed= and call reembed"
            )


def exact_document(text: str, origin: str | None) -> MarkdownDocument:
    """A document whose text is exactly what the file holds, since ranges point into it."""
    document = MarkdownDocument(text, origin)
    if document.text != text:
        object.__setattr__(document, "text", text)
    return document


def _dimension(embedder: Embedder | None, size: int | None) -> int:
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        raise StoreError(f"embedding_size must be a whole number of 1 or more, not {size!r}")
    if embedder is None:
        return size or 0
    if size is not None and size != embedder.dim:
        raise StoreError(
            f"embedding_size is {size}, but {embedder.label} gives {embedder.dim} numbers; leave it out"
        )
    return embedder.dim


def _same_model(stored: Mapping[str, Any], given: Mapping[str, Any]) -> bool | None:
    """None where the file cannot say."""
    if stored.get("provider") in (None, "function") or given.get("provider") == "function":
        return (
            None
            if stored.get("provider") != given.get("provider")
            else stored.get("model") == given.get("model")
        )
    return (stored.get("provider"), stored.get("model")) == (given.get("provider"), given.get("model"))


def _label(config: Mapping[str, Any] | None) -> str:
    return "an unnamed model" if config is None else f"{config.get('model')} ({config.get('provider')})"


def _path(location: str | Path) -> str:
    return os.path.realpath(os.path.expanduser(str(location)))


def _check_overwrite(path: str, overwrite: bool) -> None:
    if not overwrite:
        raise StoreError(
            f"{path} exists; connect to it, choose another name, or pass overwrite=True to replace it"
        )
    if is_open(path):
        raise StoreError(f"{path} is open in this process; close it before it is overwritten")
    if not Path(path).exists():
        return
    database = acquire(path, read_only=True)
    try:
        opened(database)
    finally:
        release(database, read_only=True)


def _remove(path: str, *, only: bool = False) -> None:
    for name in (path,) if only else (path, path + ".wal"):
        Path(name).unlink(missing_ok=True)
