"""The stores that can be opened here, the one handle the process holds on each, and the shelf of documents."""

from __future__ import annotations

import json
import os
import re
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import streamlit as st

from pages.shared.reading import Crawls
from pages.shared.shell import plain
from ragnar_core import ChunkSettings, RagnarError, Shelf, Store, StoreError
from ragnar_core.documents.shelf import write_whole

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "handbook"
_SAMPLE_FILE = ROOT / "data" / "handbook.duckdb"
_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def folder() -> Path:
    """Where people's own stores live: RAGNAR_HOME, or `stores/` beside the app."""
    return Path(os.environ.get("RAGNAR_HOME") or ROOT / "stores")


def store_names() -> list[str]:
    """The sample first, then every store file in the folder, by name."""
    own = sorted(p.stem for p in folder().glob("*.duckdb") if _NAME.fullmatch(p.stem) and p.stem != SAMPLE)
    return [SAMPLE, *own]


def store_path(name: str) -> Path:
    """The file of a store. Raises StoreError for a name that is not letters, digits, `_` and `-`."""
    if name == SAMPLE:
        return _SAMPLE_FILE
    if not _NAME.fullmatch(name):
        raise StoreError(f"“{name}” cannot be a store name: use letters, digits, “_” and “-” only.")
    return folder() / f"{name}.duckdb"


class OpenStores:
    """One handle a file and process, shared by all browser sessions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[Path, Store] = {}

    def get(self, name: str) -> Store:
        path = store_path(name)
        with self._lock:
            if path not in self._stores:
                if not path.exists():
                    raise StoreError(_missing(name))
                self._stores[path] = _connect(path, read_only=name == SAMPLE)
            return self._stores[path]

    def put(self, name: str, store: Store) -> None:
        with self._lock:
            self._stores[store_path(name)] = store

    def close(self, name: str) -> None:
        with self._lock:
            store = self._stores.pop(store_path(name), None)
        if store is not None:
            store.close()


def _connect(path: Path, *, read_only: bool) -> Store:
    """For writing where that is possible; a store of raghilda or a file without write permission for reading."""
    if read_only:
        return Store.connect(path, read_only=True)
    try:
        return Store.connect(path, read_only=False)
    except StoreError as for_writing:
        try:
            return Store.connect(path, read_only=True)
        except StoreError:
            raise for_writing from None


def _missing(name: str) -> str:
    if name == SAMPLE:
        return "The sample store is not there. Build it: python scripts/build_sample_store.py"
    return f"There is no store “{name}” here. Pick another one, or build it on the Build page."


@st.cache_resource(show_spinner=False)
def stores() -> OpenStores:
    return OpenStores()


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    return Shelf(folder() / ".documents")


@st.cache_resource(show_spinner=False)
def crawls() -> Crawls:
    return Crawls(folder() / ".documents" / "crawls")


def chunk_settings() -> ChunkSettings | None:
    """What "Use for Build" chose last, also before a reload; None when nothing was chosen yet."""
    if "chunk_settings" not in st.session_state:
        try:
            kept = json.loads(_settings_file().read_text("utf-8"))
            if not isinstance(kept, dict):
                return None
            st.session_state["chunk_settings"] = ChunkSettings.from_dict(kept)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
    return st.session_state["chunk_settings"]


def keep_chunk_settings(settings: ChunkSettings) -> None:
    st.session_state["chunk_settings"] = settings
    write_whole(_settings_file(), json.dumps(settings.to_dict()).encode())


def _settings_file() -> Path:
    return folder() / ".chunk-settings.json"


def current_name() -> str:
    """The name of the store chosen in the sidebar."""
    return st.session_state.get("store") or SAMPLE


def open_next(name: str) -> None:
    """Make `name` the open store from the next run on (the picker's own key cannot be set once it is drawn)."""
    st.session_state["open_next"] = name


def go(page: str, *, store: str | None = None, **params: str) -> NoReturn:
    """Open another page with `params` in its URL, on `store` or the one that is open.

    `st.switch_page` refuses to touch parameters that widgets are bound to, so the store goes through the picker.
    """
    open_next(store or current_name())
    st.switch_page(page, query_params=params)


@contextmanager
def page_errors() -> Iterator[None]:
    """Show what went wrong as a sentence on the page, and stop the page there."""
    try:
        yield
    except RagnarError as error:
        st.error(plain(str(error)), icon=":material/error:")
        st.stop()
    except Exception as error:
        show_fault(error)
        st.stop()


def show_fault(error: Exception) -> None:
    """A fault of the program: a sentence for the person, the traceback for the report."""
    said = f"This page met a fault of the program ({type(error).__name__}). Please report it with the details below."
    st.error(said, icon=":material/error:")
    with st.expander("Details to report"):
        st.code("".join(traceback.format_exception(error)), language=None)


def current_store() -> Store:
    """The open store; on trouble the page shows why and stops."""
    with page_errors():
        return stores().get(current_name())
    raise AssertionError  # st.stop() does not return
