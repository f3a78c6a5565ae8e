"""Build: chunk, embed and index documents into one store file."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import streamlit as st

from pages.shared import building, workspace
from pages.shared.building import Estimate, ExtraColumn, Plan
from pages.shared.care import care
from pages.shared.jobs import Job, job_progress, manager, watch
from pages.shared.model_form import Choice, model_form
from pages.shared.models import cost_of
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import ChunkSettings, MarkdownDocument, RagnarError, StoreError

through_navigation()
header(
    "Build",
    "Documents are chunked, embedded and indexed into one DuckDB file. You can leave this page meanwhile.",
)
NEW = "A new store"


def form() -> None:
    documents = {entry.origin: entry.document for entry in workspace.shelf().entries()}
    settings = workspace.chunk_settings() or ChunkSettings.workbench()
    if (built := st.session_state.pop("build_target_next", None)) in workspace.store_names():
        st.session_state["build_target"] = built
    where, what = st.columns(2, gap="large")
    with where:
        target = st.selectbox(
            "Store", [NEW, *workspace.store_names()[1:]], key="build_target", persist_state="session"
        )
        name, title, version, choice = new_store() if target == NEW else (target, None, 2, None)
        if choice is None:
            existing(name)
    with what:
        chosen = st.multiselect("Documents", list(documents), list(documents), key="build_documents")
        chunk_line(settings)
        columns = extra_columns(name, target == NEW)
    if not documents:
        st.info("There are no documents to build from yet.", icon=":material/description:")
        st.page_link("pages/documents.py", label="Add documents", icon=":material/arrow_forward:")
        return
    picked = tuple(documents[origin] for origin in chosen)
    with workspace.page_errors():
        plan = Plan(name, target == NEW, picked, settings, title, version, columns)
        cost(picked, settings, choice, name)
        start(plan, choice)
    as_python(plan, choice)


def new_store() -> tuple[str, str | None, int, Choice]:
    name = st.text_input(
        "Name of the new store", "my-documents", key="build_name", persist_state="session"
    ).strip()
    choice = model_form()
    with st.popover("Title and schema", icon=":material/tune:"):
        title = st.text_input("Title, for people", key="build_title", persist_state="session").strip() or None
        version = st.selectbox(
            "Schema version",
            [2, 1],
            key="build_version",
            persist_state="session",
            help="2 keeps documents and ranges; 1 is ragnar's older flat table of chunks.",
        )
    return name, title, version, choice


def existing(name: str) -> None:
    with workspace.page_errors():
        store = workspace.stores().get(name)
        counts = store.counts()
        model = store.embedder.label
    st.caption(f"{counts.documents:,} documents · {counts.chunks:,} chunks · model {plain(model)}")
    st.caption("Documents with the same origin are replaced; unchanged ones are left alone and cost nothing.")


def chunk_line(settings: ChunkSettings) -> None:
    size = "unbounded" if settings.target_size is None else f"{settings.target_size:,}"
    st.markdown(f"Chunks of about **{size} {settings.unit}**, overlap **{settings.target_overlap:.0%}**")
    st.page_link("pages/chunking.py", label="Change on the Chunking page", icon=":material/content_cut:")


def extra_columns(name: str, new: bool) -> tuple[ExtraColumn, ...]:
    """Columns to filter by later: for a new store any, for one that is there the ones it has."""
    if not new:
        with workspace.page_errors():
            known = workspace.stores().get(name).extra_cols
        if not known:
            return ()
        st.caption("Values of the extra columns for these documents")
        values = {
            column: st.text_input(f"{column} ({kind})", key=f"extra_{column}")
            for column, kind in known.items()
        }
        return tuple(
            building.existing_column(column, known[column], value) for column, value in values.items()
        )
    with st.expander("Extra columns", icon=":material/view_column:"):
        st.caption(
            "A column that every chunk gets, to filter by when searching; with the value for these documents."
        )
        empty = pd.DataFrame(
            {"column": pd.Series(dtype=str), "type": pd.Series(dtype=str), "value": pd.Series(dtype=str)}
        )
        table = st.data_editor(
            empty,
            num_rows="dynamic",
            hide_index=True,
            width="stretch",
            key="build_columns",
            column_config={"type": st.column_config.SelectboxColumn(options=building.TYPES, default="text")},
        )
    rows = table.dropna(subset=["column"]).to_dict("records")
    return tuple(
        ExtraColumn(
            row["column"].strip(),
            row["type"] or "text",
            building.value_of(row["value"], row["type"] or "text", row["column"]),
        )
        for row in rows
        if row["column"].strip()
    )


@st.cache_data(show_spinner="Counting chunks …", max_entries=2000)
def _chunked(digest: str, settings: ChunkSettings, _text: str) -> tuple[int, int]:
    return building.chunked(_text, settings)


def cost(
    documents: tuple[MarkdownDocument, ...], settings: ChunkSettings, choice: Choice | None, name: str
) -> None:
    known = choice.cost if choice else cost_of(workspace.stores().get(name))
    made = building.estimate([_chunked(d.hash, settings, d.text) for d in documents], known)
    grid = st.grid(4, min_column_width=140)
    grid.metric("Documents", f"{len(documents):,}", border=True)
    grid.metric("Chunks", f"{made.chunks:,}", border=True)
    grid.metric(
        "Tokens, about",
        f"{made.tokens:,}",
        border=True,
        help="Characters of the chunks with their context over four: a rule of thumb for English.",
    )
    grid.metric(
        "Time, about" if not made.dollars else "Cost, about",
        _time_or_cost(made),
        border=True,
        help="From the speed measured on one 2-core machine. Unchanged chunks cost nothing.",
    )


def _time_or_cost(made: Estimate) -> str:
    if made.dollars:
        return f"${made.dollars:,.2f}" if made.dollars >= 0.01 else "under $0.01"
    return str(timedelta(seconds=round(made.seconds) + 1)) if made.seconds is not None else "not known"


def start(plan: Plan, choice: Choice | None) -> None:
    if any(job.key == f"build:{plan.name}" for job in manager().active("build")):
        st.info(f"“{plain(plan.name)}” is being built.", icon=":material/construction:")
        return
    try:
        taken = plan.create and bool(plan.name) and workspace.store_path(plan.name).exists()
    except StoreError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    problem = choice.problem if choice else None
    if problem:
        st.error(plain(problem), icon=":material/error:")
    if taken:
        st.warning(
            f"A store “{plain(plan.name)}” is there already: pick it in the list to add to it, or choose another name."
        )
    if not plan.name:
        st.warning("The new store needs a name.")
    if not plan.documents:
        st.warning("Choose at least one document.")
    blocked = bool(problem or taken or not plan.documents or not plan.name)
    if st.button("Build", type="primary", icon=":material/construction:", disabled=blocked):
        embedder = choice.make() if choice else None
        stores = workspace.stores()
        manager().start(
            "build",
            f"Building {plan.name}",
            f"build:{plan.name}",
            lambda job: building.build(job, plan, embedder, stores),
        )
        st.session_state["building"] = plan.name
        st.rerun()


def as_python(plan: Plan, choice: Choice | None) -> None:
    location = str(workspace.folder() / f"{plan.name or 'store'}.duckdb")
    opened = (
        f"Store.create({location!r}, embed_default())"
        if plan.create
        else f"Store.connect({location!r}, read_only=False)"
    )
    usual = ChunkSettings().to_dict()
    given = [f"{key}={value!r}" for key, value in plan.settings.to_dict().items() if value != usual[key]]
    ingest = f"store.ingest([document], settings=ChunkSettings({', '.join(given)}))"
    copy_as_python(
        "from ragnar_core import ChunkSettings, Store, embed_default, read_as_markdown\n\n"
        f'document = read_as_markdown("report.pdf")\nwith {opened} as store:\n    {ingest}\n'
    )


def runs() -> None:
    jobs = manager().jobs("build")
    name = st.session_state.get("building")
    if any(job.active for job in jobs):
        watch("build")
    elif name:
        del st.session_state["building"]
        if name in workspace.store_names():
            workspace.open_next(name)
            st.session_state["build_target_next"] = name
            st.rerun()
    newest = {job.key: job for job in reversed(jobs)}
    for job in jobs:
        if job is newest[job.key] and not job.active:
            outcome(job)


def outcome(job: Job) -> None:
    name = job.key.removeprefix("build:")
    with st.container(border=True):
        job_progress(job, key=f"job_{job.id}")
        summary = job.result
        if summary is not None:
            mark = "check_circle" if summary.ok else "warning"
            st.markdown(
                f":material/{mark}: **{plain(name)}**, {plain(building.sentence(summary))} ({job.seconds:.0f} s)"
            )
            for origin, reason in summary.failed[:50]:
                st.markdown(f":red[Not stored:] {plain(origin)}: {plain(reason)}")
            if summary.pending:
                st.caption("Build again to go on: what was embedded is kept and is not embedded twice.")
        with st.container(horizontal=True):
            if has_chunks(name) and st.button(
                "Compare in this store",
                key=f"open_{job.id}",
                icon=":material/compare_arrows:",
                type="primary",
            ):
                workspace.go("pages/compare.py", store=name)
            if st.button("Dismiss", key=f"dismiss_{job.id}"):
                for one in manager().jobs("build"):
                    if one.key == job.key and not one.active:
                        manager().forget(one)
                st.rerun()


def has_chunks(name: str) -> bool:
    try:
        return name in workspace.store_names() and workspace.stores().get(name).counts().chunks > 0
    except RagnarError:
        return False


runs()
form()
care(workspace.current_name())
