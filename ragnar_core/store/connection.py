"""DuckDB connections: one a process and file, one cursor an operation, one writer at a time.

A connection object shared between threads mixes up their answers without an exception, and DuckDB refuses a second
connection to the same file with other settings. So every store of a process that points at the same file shares one
`Database`, which hands out a fresh cursor for each operation (a few microseconds).
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ragnar_core.errors import StoreError

STORAGE_VERSION = "v1.0.0"
MEMORY = ":memory:"

_HARDENING = (
    "enable_external_access = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    # A small threshold rewrites the last, half full row group again and again while documents arrive one by one.
    "wal_autocheckpoint = '256MB'",
    "enable_progress_bar = false",
)

_parsed: dict[str, Any] = {}
_registry: dict[str, Database] = {}
_registry_lock = threading.RLock()


class Database:
    """One open DuckDB file, shared by every store of this process that points at it."""

    def __init__(self, path: str | None, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.write_lock = threading.RLock()
        self.shared: dict[str, Any] = {}
        self.cursor_setup = ""
        self.readers = 0
        self.writers = 0
        # Nobody else writes to what is behind the connection.
        self.own = True
        # Even while nothing is being committed, and another number after each commit.
        self.commits = 0
        self._turn = threading.Condition()
        self._active = 0
        self._exclusive = False
        self._name = "the store in memory" if path is None else f"the store {path}"
        self._root: duckdb.DuckDBPyConnection | None = _open(path, read_only)

    @classmethod
    def around(cls, connection: duckdb.DuckDBPyConnection, name: str) -> Database:
        """A database over a connection that was made elsewhere (MotherDuck)."""
        made = cls(None, read_only=False)
        made._close_root()
        made._root, made._name = connection, name
        made.writers = 1
        made.own = False
        return made

    @contextlib.contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of one's own. What one statement sees is one committed state."""
        cursor = self._enter()
        try:
            yield cursor
        finally:
            self._leave(cursor)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor within a transaction: all its statements see the same committed state."""
        with self.reading() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield cursor
            finally:
                with contextlib.suppress(duckdb.Error):
                    cursor.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self, *, short: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor within a transaction that commits at the end and rolls back when anything was raised.

        `short` is for statements that only append a few rows: DuckDB's optimizer takes longer over them than they take.
        """
        with self.write_lock:
            if self.read_only:
                raise StoreError(
                    f"{self.name} is open for reading only; connect with read_only=False to change it"
                )
            cursor = self._enter()
            try:
                if short and self.path is not None:
                    cursor.execute("PRAGMA disable_optimizer")
                cursor.execute("BEGIN TRANSACTION")
                try:
                    yield cursor
                except BaseException:
                    with contextlib.suppress(duckdb.Error):
                        cursor.execute("ROLLBACK")
                    raise
                with self._committing():
                    cursor.execute("COMMIT")
            except duckdb.Error as error:
                raise StoreError(f"{self.name} was not changed: {first_line(error)}") from error
            finally:
                self._leave(cursor)

    @contextlib.contextmanager
    def unhardened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The file alone in a plain connection, with every other use of it waiting.

        For the one act that needs DuckDB's extensions: the ordinary connection has its settings locked.
        """
        with self.write_lock, self._alone(), self._committing():
            if self.path is None:
                raise StoreError("a store in memory cannot be handed to R; create it in a file")
            self._close_root()
            try:
                connection = _connect(self.path, read_only=False)
                try:
                    yield connection
                finally:
                    connection.close()
            finally:
                self._root = _open(self.path, self.read_only)

    def reopen(self, *, read_only: bool) -> None:
        """Changes between reading and writing while stores stay open; their next operation uses the new connection."""
        with self.write_lock, self._alone():
            if self.read_only == read_only or self.path is None:
                return
            self._close_root()
            try:
                self._root = _open(self.path, read_only)
                self.read_only = read_only
            except StoreError:
                self._root = _open(self.path, self.read_only)
                raise

    def close(self) -> None:
        with self.write_lock, self._alone():
            self._close_root()

    @property
    def name(self) -> str:
        return self._name

    def _enter(self) -> duckdb.DuckDBPyConnection:
        with self._turn:
            while self._exclusive:
                self._turn.wait()
            if self._root is None:
                raise StoreError(f"{self.name} is closed; connect to it again")
            self._active += 1
            cursor = self._root.cursor()
        if self.cursor_setup:
            try:
                # Temporary views belong to one cursor.
                cursor.execute(self.cursor_setup)
            except BaseException:
                self._leave(cursor)
                raise
        return cursor

    def _leave(self, cursor: duckdb.DuckDBPyConnection) -> None:
        try:
            cursor.close()
        finally:
            with self._turn:
                self._active -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def _committing(self) -> Iterator[None]:
        self.commits += 1
        try:
            yield
        finally:
            self.commits += 1

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self._turn:
            while self._exclusive or self._active:
                self._turn.wait()
            self._exclusive = True
        try:
            yield
        finally:
            with self._turn:
                self._exclusive = False
                self._turn.notify_all()

    def _close_root(self) -> None:
        if self._root is not None:
            self._root.close()
            self._root = None


def execute_parsed(
    cursor: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any]
) -> duckdb.DuckDBPyConnection:
    """`cursor.execute` for the few statements that every insert needs: each is parsed once a process."""
    statement = _parsed.get(sql)
    if statement is None:
        statement = _parsed[sql] = cursor.extract_statements(sql)[0]
    return cursor.execute(statement, values)


def acquire(path: str | None, *, read_only: bool) -> Database:
    """The process's database for a file; opens it, or turns it from reading to writing, when needed.

    Raises StoreError when another process holds the file (naming it), or when it is no DuckDB file.
    """
    if path is None:
        database = Database(None, read_only=False)
        database.writers = 1
        return database
    with _registry_lock:
        database_or_none = _registry.get(path)
        if database_or_none is None:
            database_or_none = _registry[path] = Database(path, read_only=read_only)
        elif database_or_none.read_only and not read_only:
            database_or_none.reopen(read_only=False)
        if read_only:
            database_or_none.readers += 1
        else:
            database_or_none.writers += 1
        return database_or_none


def release(database: Database, *, read_only: bool) -> None:
    """Gives a use back. The last use closes the file; the last writer leaves it open for reading only, so that
    other programs can read it as well."""
    with _registry_lock:
        if read_only:
            database.readers -= 1
        else:
            database.writers -= 1
        if database.readers + database.writers <= 0:
            if database.path is not None and _registry.get(database.path) is database:
                del _registry[database.path]
            database.close()
        elif database.writers == 0 and not database.read_only:
            database.reopen(read_only=True)


def is_open(path: str) -> bool:
    with _registry_lock:
        return path in _registry


def create_file(path: str) -> None:
    """An empty DuckDB file that DuckDB 1.0 and later (and so R's) can open."""
    connection = duckdb.connect(MEMORY)
    try:
        quoted = path.replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS made (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("DETACH made")
    except duckdb.Error as error:
        raise StoreError(f"{path} cannot be created: {first_line(error)}") from error
    finally:
        connection.close()


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def _open(path: str | None, read_only: bool) -> duckdb.DuckDBPyConnection:
    connection = _connect(path, read_only=read_only)
    # Handing the small statements of a write to a second thread costs more than half as much again as running them.
    one_thread = () if read_only or path is None else ("threads = 1",)
    for setting in (
        *_HARDENING,
        *one_thread,
        f"memory_limit = '{_memory_limit()}MB'",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def _connect(path: str | None, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    if path is None:
        return duckdb.connect(MEMORY)
    if not Path(path).exists():
        raise StoreError(f"there is no store at {path}; make one with Store.create")
    if not _may_be_duckdb(path):
        # DuckDB itself would open a CSV or Parquet file as a database of its own.
        raise StoreError(f"{path} is not a DuckDB file, and so no store; it was left as it is")
    try:
        return duckdb.connect(path, read_only=read_only)
    except duckdb.Error as error:
        raise StoreError(_explain(error, path)) from error


def _may_be_duckdb(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            head = file.read(12)
    except OSError:
        return True
    return not head or head[8:] == b"DUCK"


def _explain(error: duckdb.Error, path: str) -> str:
    message = str(error)
    if "lock" in message.lower():
        holder = re.search(r"held in (.+?) \(PID (\d+)\)", message)
        who = f"process {holder[2]} ({holder[1]})" if holder else "another process"
        return (
            f"{path} is in use by {who}, which has it open for writing (or for reading, if you want to write); "
            "close it there, or open a copy of the file"
        )
    if "not a valid DuckDB database" in message:
        return f"{path} is not a DuckDB file, so it is no store; choose another file"
    if (
        "newer version" in message
        or "storage version" in message.lower()
        or "serialization" in message.lower()
    ):
        return f"{path} was written by a newer DuckDB than {duckdb.__version__}, which is installed here; update duckdb"
    return f"{path} cannot be opened: {first_line(error)}"


def _memory_limit() -> int:
    """Megabytes DuckDB may use: half of the machine's, at least 512."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2048
    return max(512, total // 2 // 2**20)
