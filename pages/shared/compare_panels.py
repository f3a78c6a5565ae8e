"""What stands around the Compare page's lists: queries, export, the missing passage, the same as Python."""

from __future__ import annotations

import re
import threading
from typing import Any

import streamlit as st

from pages.shared import compare_settings, results, workspace
from pages.shared.compare_queries import SavedQueries
from pages.shared.compare_queries import remember as remembered
from pages.shared.compare_settings import SIDES
from pages.shared.compare_stamp import stamp
from pages.shared.shell import plain
from ragnar_core import RagnarError, Store
from ragnar_core.retrieval import Absence, SearchSettings, search
from ragnar_core.retrieval.export import ResultList, results_csv, results_html

EXAMPLES = (
    "What happens to text that is too long for the model?",
    "HNSW_INDEX_SCAN returns too few rows",
    "Why is my search result missing a page of the PDF?",
)
ADDRESS: dict[str, Any] = {
    "q": "",
    "view": "Methods",
    "hybrid": False,
    "mode": "hybrid",
    "b_mode": "bm25",
    "b_store": "",
}
ADDRESS |= {side + name: default for side in SIDES for name, default in compare_settings.DEFAULTS.items()}
LISTED_DOCUMENTS = 500


@st.cache_resource(show_spinner=False, max_entries=8)
def warm(location: str, _store: Store) -> None:
    """Load the model and the store's tables while the person still reads the page; once a store."""
    threading.Thread(target=_warm, args=(_store,), daemon=True).start()


def _warm(store: Store) -> None:
    try:
        search(store, "warm", SearchSettings(top_k=1))
    except RagnarError:
        return  # The first search says it.


def invitation(sample: bool) -> None:
    """What to do on an empty page."""
    st.markdown(":gray[Results appear as you type." + (" For instance:]" if sample else "]"))
    if sample:
        with st.container(horizontal=True):
            for example in EXAMPLES:
                st.button(example, key=f"try_{example}", on_click=_ask, args=(example,))


def _ask(query: str) -> None:
    st.session_state["q"] = query


def remember(query: str) -> None:
    st.session_state["compare_history"] = remembered(st.session_state.get("compare_history", []), query)


def queries(query: str) -> None:
    with st.popover("Queries", icon=":material/history:", key="queries"):
        saved = SavedQueries(workspace.folder() / "queries.json")
        # In a form a name that was just typed arrives together with the click.
        with (
            st.form("save_search", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                "Save this search as",
                key="save_name",
                placeholder=query or "Type a query first",
                max_chars=120,
            )
            st.form_submit_button(
                "Save",
                key="save",
                disabled=not query,
                on_click=_save,
                args=(saved, query),
                icon=":material/bookmark_add:",
            )
        if trouble := st.session_state.pop("saved_trouble", None):
            st.error(plain(trouble))
        try:
            kept = saved.all()
        except RagnarError as error:
            st.error(plain(str(error)))
            kept = {}
        if kept:
            st.markdown("**Saved**")
        for at, (title, params) in enumerate(kept.items()):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.button(
                    plain(title),
                    key=f"saved_{at}",
                    on_click=_apply,
                    args=(params,),
                    type="tertiary",
                    width="stretch",
                    help=plain(f"{params.get('q', '')} · {params.get('store', workspace.SAMPLE)}"),
                )
                st.button(
                    "",
                    key=f"forget_{at}",
                    icon=":material/delete:",
                    type="tertiary",
                    help="Delete this saved search",
                    on_click=_forget,
                    args=(saved, title),
                )
        history = [one for one in st.session_state.get("compare_history", []) if one != query]
        if history:
            st.markdown("**Recent**")
        for at, one in enumerate(history):
            st.button(plain(one), key=f"recent_{at}", on_click=_ask, args=(one,), type="tertiary")


def _save(saved: SavedQueries, query: str) -> None:
    """Keep the search under the name that was typed, else under its query."""
    name = st.session_state["save_name"].strip() or query
    params = {key: st.session_state.get(key, default) for key, default in ADDRESS.items()}
    params = {key: value for key, value in params.items() if value != ADDRESS[key]}
    try:
        saved.save(name, {"store": workspace.current_name(), **params})
        st.session_state["save_name"] = ""
    except (RagnarError, OSError) as error:
        st.session_state["saved_trouble"] = f"It could not be saved: {error}"


def _forget(saved: SavedQueries, name: str) -> None:
    try:
        saved.remove(name)
    except (RagnarError, OSError) as error:
        st.session_state["saved_trouble"] = f"It could not be deleted: {error}"


def _apply(params: dict[str, Any]) -> None:
    """Set every setting as it was saved; a file that somebody edited can only set what the page knows."""
    for key, default in ADDRESS.items():
        given = params.get(key, default)
        wanted = given if _fits(key, given) else default
        if st.session_state.get(key, default) != wanted:
            st.session_state[key] = wanted
    name = params.get("store", workspace.SAMPLE)
    if name not in workspace.store_names():
        st.session_state["saved_trouble"] = (
            f"The store “{name}” of this search is not here; searched the open one."
        )
    elif name != workspace.current_name():
        workspace.open_next(name)
        st.session_state["compare_other_store"] = True


def _fits(key: str, given: Any) -> bool:
    choices = {
        "view": ("Methods", "A / B"),
        "mode": compare_settings.MODES,
        "b_mode": compare_settings.MODES,
        "b_store": ("", *workspace.store_names()),
        "hybrid": (True, False),
    }
    if key in choices:
        return isinstance(given, str | bool) and given in choices[key]
    return isinstance(given, str) if key == "q" else compare_settings.fits(key.removeprefix("b_"), given)


def wants_other_store() -> bool:
    return bool(st.session_state.pop("compare_other_store", False))


def export(query: str, columns: list[results.Column]) -> None:
    """Two downloads, made when they are asked for; `columns` is filled after the search."""
    with st.popover("Export", icon=":material/download:", key="export", disabled=not query):
        st.markdown(":gray[The lists as they are, with every score explained.]")
        name = "comparison-" + (re.sub(r"[^a-z0-9]+", "-", query.lower()).strip("-")[:60] or "results")
        st.download_button(
            "HTML page",
            lambda: results_html(_lists(columns)),
            f"{name}.html",
            "text/html",
            key="export_html",
            on_click="ignore",
            icon=":material/html:",
            width="stretch",
            help="One file that needs nothing else and runs no script.",
        )
        st.download_button(
            "CSV table",
            lambda: results_csv(_lists(columns)),
            f"{name}.csv",
            "text/csv",
            key="export_csv",
            on_click="ignore",
            icon=":material/table:",
            width="stretch",
        )


def _lists(columns: list[results.Column]) -> list[ResultList]:
    return [
        ResultList(one.title, one.store, one.store_name, one.query, one.settings, one.table)
        for one in columns
    ]


@st.cache_data(show_spinner=False, max_entries=16)
def _origins(version: str, _store: Store) -> list[str]:
    return sorted(str(origin) for origin in _store.documents()["origin"].dropna().unique())


@st.cache_data(show_spinner=False, max_entries=32)
def _chunks(version: str, origin: str, _store: Store) -> dict[int, str]:
    """Chunk ids of a document with a line about each."""
    documents = _store.documents()
    doc_id = documents.loc[documents["origin"] == origin, "doc_id"].iloc[0]
    chunks = _store.chunks(doc_id)
    return {
        int(row.chunk_id): f"{row.chunk_id}: {' '.join(row.text.split())[:60]}"
        for row in chunks.itertuples(index=False)
    }


def missing_passage(store: Store) -> tuple[str | None, int | None]:
    """The document, and perhaps the chunk, that somebody misses in the lists."""
    origins = _origins(stamp(store), store)
    st.markdown("**Why is a passage not here?**")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(origins) > LISTED_DOCUMENTS:
            part = st.text_input("Part of the document’s name", key="missing_part", live="400ms").lower()
            chosen = st.session_state.get("missing") or st.query_params.get("missing")
            found = [one for one in origins if part and part in one.lower()][:LISTED_DOCUMENTS]
            origins = [chosen, *found] if chosen in origins and chosen not in found else found
        origin = st.selectbox(
            "Document",
            origins,
            index=None,
            key="missing",
            bind="query-params",
            placeholder="Choose a document",
        )
        if origin is None:
            return None, None
        chunks = _chunks(stamp(store), origin, store)
        chunk = st.selectbox(
            "Chunk",
            list(chunks),
            index=None,
            key=f"missing_chunk_{origin}",
            format_func=chunks.__getitem__,
            placeholder="Its best one",
        )
    return origin, chunk


def absences(
    store: Store, columns: list[results.Column], origin: str | None, chunk: int | None
) -> list[Absence | None]:
    """One a column, and a sentence about each on the page."""
    if origin is None:
        return []
    found: list[Absence | None] = []
    for one in columns:
        own = one.store.location == store.location
        try:
            absence = (
                results.missing(one, chunk_id=chunk) if chunk and own else results.missing(one, origin=origin)
            )
        except RagnarError as error:
            found.append(None)
            st.caption(f"**{plain(one.title)}**: {plain(str(error))}")
            continue
        found.append(absence)
        which = (
            ""
            if chunk and own
            else f" (best of {absence.chunks} chunks)"
            if absence.chunks > 1
            else " (its only chunk)"
        )
        where = "is here" if results.is_here(absence) else "is not here"
        st.caption(
            f"**{plain(one.title)}**: chunk {absence.chunk_id}{which} {where}: {plain(absence.detail)}."
        )
    return found


def as_python(columns: list[results.Column], query: str) -> str:
    """The lines of ragnar_core that search the same."""
    calls = [one.settings.as_python(query) for one in columns]
    names = sorted({call.split("(")[0] for call in calls})
    lines = [f"from ragnar_core import Store, {', '.join(names)}"]
    if any("Selection(" in call for call in calls):
        lines.append("from ragnar_core.retrieval import Selection")
    last = None
    for one, call in zip(columns, calls, strict=True):
        if one.store.location != last:
            lines += ["", f"with Store.connect({str(one.store.location)!r}) as store:"]
            last = one.store.location
        lines.append(f"    print({call})")
    return "\n".join(lines) + "\n"
