"""The store: a handful of verbs over one DuckDB file."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import Embedder, as_embedder, embedder_from_config
from ragnar_core.errors import EmbedError, StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.analyzer import AnalyzerOptions
from ragnar_core.store.connection import MEMORY, Database, acquire, create_file, is_open, release
from ragnar_core.store.doctor import Finding, repair
from ragnar_core.store.index import IndexState, build_index, drop_hnsw, set_analyzer
from ragnar_core.store.ingest import BATCH, IngestProgress, IngestSummary, Item, Prepare, ingest
from ragnar_core.store.model import check_model, dimension
from ragnar_core.store.motherduck import connect_motherduck, is_motherduck
from ragnar_core.store.opened import Opened, adopt, opened
from ragnar_core.store.prepare import Input, Prepared, embed_missing, prepare
from ragnar_core.store.reading import StoreReader
from ragnar_core.store.reembed import reembed
from ragnar_core.store.schema import check_name, create_tables, extra_types
from ragnar_core.store.update import UpdateResult, update_documents
from ragnar_core.store.write import delete_documents, find_existing, write_documents

Embed = Embedder | Callable[..., Any] | Mapping[str, Any]
_numbers = itertools.count(1)


class Store(StoreReader):
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
            extra_cols: further columns of chunks, name -> type (Python's, or the name of DuckDB's), or a data frame whose
                columns to copy.
            name: letters, digits, _ and -; title: for people.
            overwrite: replace a store that is there; never another kind of file.
            analyzer: what counts as a word for BM25.

        Raises StoreError when the file exists, cannot be written or a setting is out of range.
        """
        if version not in (1, 2):
            raise StoreError(f"version must be 1 or 2, not {version!r}")
        embedder = None if embed is None else as_embedder(embed)
        dim = dimension(embedder, embedding_size)
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
        if not Path(path).parent.is_dir():
            raise StoreError(
                f"{path} cannot be created: there is no folder {Path(path).parent}; make it first"
            )
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
            _remove(path + ".ann", only=True)
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
                check_model(store.location, store.dim, store.embed_config, store.embedder)
        except BaseException:
            release(database, read_only=read_only)
            raise
        return store

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
                    said = f" (it says: {self.r_call})" if self.r_call else ""
                    raise EmbedError(
                        f"{self.location} does not say which model built it{said}; "
                        "pass the model as embed= to Store.connect"
                    )
                self._embedder = embedder_from_config(self.embed_config)
            return self._embedder

    def insert(self, chunks: Input, *, vectors: Any = None) -> None:
        """Adds documents. Takes the chunks of one (`markdown_chunk`), a list of those, or a data frame with a column
        text and maybe origin, context, start and end (as `chunks()` has them), hash, embedding and the extra columns (a
        document an origin). Other columns are left out.

        `vectors` float32 `(n, dim)`, or a list of these for a list of chunks, saves embedding. A call is one transaction:
        many documents at once go in faster than one by one, and all of them or none. Raises StoreError when an origin is
        in the store already or something does not fit, EmbedError when the model fails.
        """
        self._writable()
        documents = prepare(self, chunks, vectors)
        embed_missing(self, documents)
        write_documents(self, documents)
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

    def ingest(
        self,
        items: Iterable[Item],
        *,
        settings: ChunkSettings | None = None,
        prepare: Prepare | None = None,
        progress: Callable[[IngestProgress], None] | None = None,
        cancel: threading.Event | None = None,
        workers: int | None = None,
        on_error: str = "report",
        batch_size: int = BATCH,
    ) -> IngestSummary:
        """Brings many documents into the store: adds new ones, replaces changed ones, passes over those it has.

        Args:
            items: paths, URLs, documents or chunks; whatever else `prepare(item)` turns into a document or chunks.
            settings: how to cut documents.
            progress: called on this thread after every step.
            cancel: set it to stop; what is embedded by then is kept for the next run.
            workers: threads that read and cut.
            on_error: "report" goes on and lists the failure, "raise" raises it.
            batch_size: texts a call of the model, across documents.

        Each document is one transaction. Vectors of documents that could not be finished are kept in the file, so that
        running the ingest again embeds only what is missing. When the model fails for two documents in a row, the rest
        is left pending.
        """
        self._writable()
        if isinstance(items, str | Path | MarkdownDocument) or not isinstance(items, Iterable):
            raise StoreError(
                f"ingest takes a list of paths, URLs, documents or chunks, not {type(items).__name__}"
            )
        settings = settings or ChunkSettings()
        self._remember_settings(settings)
        return ingest(
            self,
            items,
            settings=settings,
            prepare_item=prepare,
            progress=progress,
            cancel=cancel,
            workers=workers,
            on_error=on_error,
            batch_size=batch_size,
        )

    def build_index(
        self,
        type: str | Sequence[str] = ("vss", "fts"),
        *,
        for_r: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> IndexState:
        """Brings indexes up to date: postings of chunks that another program wrote ("fts"), vectors that are missing
        ("vss"). With `for_r` also builds ragnar's own indexes in the file, so that R can search it at once; that needs
        DuckDB's extensions (StoreError says how to get them), and with "vss" the file cannot be written afterwards until
        `drop_hnsw`.

        Of 300,000 chunks or more "vss" also writes a graph for approximate search into `<store>.ann`, if usearch is
        installed (`docs/store.md`); `progress` counts its vectors as well. Building it anew takes in what was written
        since.

        A store that only this library writes needs none of it: every write keeps its postings and vectors.
        """
        self._writable()
        build_index(self, type, for_r, progress)
        return self.index_state()

    def drop_hnsw(self) -> tuple[str, ...]:
        """Takes R's vector indexes out of the file, which can be written again then. Returns their names.

        Vector search here does without them; `build_index(for_r=True)` builds them again.
        """
        self._open_for_writing()
        return drop_hnsw(self)

    def set_analyzer(
        self, options: AnalyzerOptions, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Changes what counts as a word for BM25 and indexes all chunks again, in one transaction."""
        self._writable()
        set_analyzer(self, options, progress)

    def reembed(
        self,
        embed: Embed,
        *,
        progress: Callable[[int, int], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> int:
        """Embeds every chunk with another model and makes it the store's; returns the number of chunks embedded.

        Searches use the old vectors until all new ones are there. A run that was stopped goes on where it was.
        """
        self._writable()
        embedder = as_embedder(embed)
        done = reembed(self, embedder, progress, cancel)
        with self._lock:
            self._embedder = embedder
        return done

    def repair(self, finding: Finding) -> None:
        """Does what a finding of `check` says in its `repair`. Raises StoreError when it says nothing."""
        self._open_for_writing()
        if finding.kind != "r_hnsw":
            self._writable()
        repair(self, finding)

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

    def _open_for_writing(self) -> None:
        if self._closed:
            raise StoreError(f"{self.location} is closed; connect to it again")
        if self.read_only:
            raise StoreError(
                f"{self.location} is open for reading only; connect with read_only=False to change it"
            )

    def _writable(self) -> None:
        self._open_for_writing()
        if self.opened.hnsw:
            raise StoreError(
                f"{self.location} holds R's vector index ({', '.join(self.opened.hnsw)}), which nothing here can "
                "keep up to date; drop_hnsw() takes it out (searches do without it, build_index(for_r=True) "
                "builds it again)"
            )
        adopt(self.opened, AnalyzerOptions().to_dict())

    def _remember(self, documents: Sequence[Prepared]) -> None:
        settings = next((d.settings for d in reversed(documents) if d.settings is not None), None)
        if settings is not None:
            self._remember_settings(settings)

    def _remember_settings(self, settings: ChunkSettings) -> None:
        text = json.dumps(settings.to_dict())
        if self.opened.database.shared.get("chunk_settings") == text:
            return
        with self.opened.database.writing() as cursor:
            cursor.execute("UPDATE ragnar_state SET chunk_settings = ?", [text])
        self.opened.database.shared["chunk_settings"] = text


def _path(location: str | Path) -> str:
    if not isinstance(location, str | Path) or not str(location).strip():
        raise StoreError(f'a store\'s location must be a path or ":memory:", not {location!r}')
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
