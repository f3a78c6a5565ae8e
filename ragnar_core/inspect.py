"""Open the workbench on a store or on chunks: `python -m ragnar_core inspect STORE`,
`chunks_view(chunks)`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import webbrowser
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from ragnar_core.chunking import Chunks
from ragnar_core.documents import MarkdownDocument
from ragnar_core.errors import StoreError
from ragnar_core.store import Store

_ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 60.0


class View:
    """The workbench running on one store, at `url`. Close it when it is no longer needed; it ends with
    the program.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes], folder: Path | None) -> None:
        self.url = url
        self._process = process
        self._folder = folder

    def wait(self) -> int:
        """Wait until the server ends; its exit code."""
        try:
            return self._process.wait()
        finally:
            self.close()

    def close(self) -> None:
        """End the server. May be called twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "running" if self._process.poll() is None else "ended"
        return f"View({self.url!r}, {state})"


def inspect_store(store: str | Path | Store, *, port: int | None = None, browser: bool = True) -> View:
    """Open the Inspect page on a store.

    Args:
        store: the file of a store, or a Store (a store in memory cannot be opened by another process).
        port: of the local server; a free one by default.
        browser: show the page in the person's browser.

    Raises:
        StoreError: there is no store, it is open for writing in this process, or the app cannot be started.
    """
    if isinstance(store, Store):
        if not store.read_only:
            raise StoreError(
                f"{store.location} is open for writing here, so no other process can read it; close it first"
            )
        location = store.location
    else:
        if not isinstance(store, str | Path) or not str(store).strip():
            raise StoreError(f"inspect_store takes the path of a store, or a Store, not {store!r}")
        location = str(store)
        with Store.connect(location):
            pass
    path = Path(os.path.realpath(os.path.expanduser(location)))
    folder = Path(tempfile.mkdtemp(prefix="ragnar-inspect-"))
    name = re.sub(r"[^a-zA-Z0-9_-]+", "-", path.stem).strip("-") or "store"
    name = f"{name}-store" if name == "handbook" else name
    try:
        (folder / f"{name}.duckdb").symlink_to(path)
        return _serve(folder, name, port, browser)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def chunks_view(
    chunks: Chunks | pd.DataFrame | list[Chunks], *, port: int | None = None, browser: bool = True
) -> View:
    """Look through chunks that are in no store yet; searched by BM25, and by VSS where they have vectors.

    Args:
        chunks: of one document, a list of those, or a data frame as `Store.chunks`, the searches or
            `markdown_chunk(...).table` give it: a column text and maybe origin, context and embedding.
        port, browser: as in `inspect_store`.

    Raises:
        StoreError: there are no chunks, or they have no text.
    """
    folder = Path(tempfile.mkdtemp(prefix="ragnar-chunks-"))
    try:
        _write(folder / "chunks.duckdb", chunks)
        return _serve(folder, "chunks", port, browser)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def main(arguments: list[str]) -> int:
    """The command line; returns the exit code."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m ragnar_core", description="Ragnar Workbench")
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="open a store in the browser")
    inspect.add_argument("store", help="the file of a store (of this library, ragnar or raghilda)")
    inspect.add_argument("--port", type=int, help="port of the local server (default: a free one)")
    inspect.add_argument("--no-browser", action="store_true", help="only print the address")
    given = parser.parse_args(arguments)
    try:
        view = inspect_store(given.store, port=given.port, browser=not given.no_browser)
    except StoreError as error:
        print(f"{error}", file=sys.stderr)
        return 1
    print(f"{given.store} is open at {view.url}\nCtrl+C ends it.", flush=True)
    try:
        return view.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        view.close()


def _write(path: Path, chunks: Chunks | pd.DataFrame | list[Chunks]) -> None:
    several = [chunks] if isinstance(chunks, Chunks) else chunks
    if not isinstance(several, pd.DataFrame) and not _are_chunks(several):
        raise StoreError("chunks_view takes the chunks of markdown_chunk, a list of those, or a data frame")
    if not len(several) or (isinstance(several, list) and not sum(len(one) for one in several)):
        raise StoreError("there are no chunks to look at")
    if isinstance(several, pd.DataFrame):
        frame, vectors = _frame(several)
        size = None if vectors is None else int(vectors.shape[1])
        with Store.create(path, embedding_size=size, name="chunks") as store:
            store.insert(frame, vectors=vectors)
        return
    with Store.create(path, name="chunks") as store:
        for number, one in enumerate(several, 1):
            store.insert(_named(one, f"document {number}"))


def _are_chunks(several: object) -> bool:
    return isinstance(several, list) and all(isinstance(one, Chunks) for one in several)


def _named(chunks: Chunks, name: str) -> Chunks:
    if chunks.document.origin:
        return chunks
    document = MarkdownDocument(chunks.document.text, origin=name)
    return Chunks(document, chunks.settings, chunks.starts, chunks.ends, chunks.contexts, chunks.extra)


def _frame(
    table: pd.DataFrame,
) -> tuple[pd.DataFrame, np.ndarray[tuple[int, int], np.dtype[np.float32]] | None]:
    """The columns that make a store, and the vectors where each row has one of the same length."""
    if "text" not in table.columns:
        raise StoreError(
            f"the chunks have no column text (their columns: {', '.join(map(str, table.columns))})"
        )
    frame = table[[name for name in ("text", "origin", "context") if name in table.columns]].reset_index(
        drop=True
    )
    if "origin" not in frame.columns:
        frame = frame.assign(origin="chunks")
    vectors = None
    if "embedding" in table.columns:
        rows = [np.asarray(row, np.float32).ravel() for row in table["embedding"] if row is not None]
        if len(rows) == len(frame) and len({len(row) for row in rows}) == 1 and len(rows[0]):
            vectors = np.stack(rows)
    return frame, vectors


def _serve(folder: Path, name: str, port: int | None, browser: bool) -> View:
    app = _ROOT / "app.py"
    if not app.exists():
        raise StoreError(
            f"the app is not beside the library ({app} is missing); run this in a clone of the project"
        )
    port = port or _free_port()
    log = folder / "server.log"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
    command += ["--server.fileWatcherType", "none"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, "RAGNAR_HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    view = View(f"http://127.0.0.1:{port}/inspect?{urlencode({'store': name})}", process, folder)
    try:
        _wait(process, f"http://127.0.0.1:{port}/_stcore/health", log)
    except BaseException:
        view.close()
        raise
    if browser:
        webbrowser.open(view.url)
    return view


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            lines = log.read_text("utf-8", "replace").strip().splitlines()
            why = lines[-1] if lines else f"exit code {process.returncode}"
            raise StoreError(f"the app did not start: {why}")
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.05)
    raise StoreError(f"the app did not answer within {_PATIENCE:.0f} seconds; see {log}")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
