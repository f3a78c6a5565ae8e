"""Build: chunk, embed and index documents into one store file."""

from __future__ import annotations

from datetime import timedelta

import streamlit as st

from pages.shared import workspace
from pages.shared.jobs import Job, job_progress, manager
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import (
    ChunkSettings,
    MarkdownDocument,
    Store,
    default_available,
    embed_default,
    embed_static,
    markdown_chunk,
)

through_navigation()
header(
    "Build",
    "Documents are chunked, embedded and indexed into one DuckDB file. You can leave this page meanwhile.",
)

MODELS = {
    "bge-small-en-v1.5 (built in)": embed_default,
    "wordllama (built in, fast, less exact)": embed_static,
}
# Measured on one 2-core machine: chunks of 1,600 characters a second.
SPEED = {"bge-small-en-v1.5 (built in)": 6.0, "wordllama (built in, fast, less exact)": 1400.0}


def build(job: Job, name: str, model: str, documents: list[MarkdownDocument], settings: ChunkSettings):
    path = workspace.store_path(name)
    job.report(0, len(documents), "opening the store")
    if path.exists():
        store = workspace.stores().get(name)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        store = Store.create(path, MODELS[model](), name=name)
        workspace.stores().put(name, store)
    return store.ingest(documents, settings=settings, progress=job.report, cancel=job.cancel)


def form() -> None:
    shelf = workspace.shelf()
    documents = {entry.origin: entry.document for entry in shelf.entries()}
    own = workspace.store_names()[1:]
    settings: ChunkSettings = st.session_state.get("chunk_settings") or ChunkSettings()

    where, what = st.columns(2, gap="large")
    with where:
        target = st.selectbox("Store", ["New store", *own], key="build_target", persist_state="session")
        if target == "New store":
            name = st.text_input(
                "Name of the new store", "my-documents", key="build_name", persist_state="session"
            ).strip()
            model = st.selectbox("Embedding model", list(MODELS), key="build_model", persist_state="session")
        else:
            name, model = target, None
            st.caption(f"Model of this store: {plain(workspace.stores().get(name).embedder.label)}")
    with what:
        chosen = st.multiselect("Documents", list(documents), list(documents), key="build_documents")
        st.markdown(
            f"Chunks: target **{settings.target_size:,}** characters, overlap **{settings.target_overlap:.0%}**"
        )
        st.page_link("pages/chunking.py", label="Change on the Chunking page", icon=":material/content_cut:")
    if not documents:
        st.info("There are no documents to build from yet.", icon=":material/description:")
        st.page_link("pages/documents.py", label="Add documents", icon=":material/arrow_forward:")
        return

    with workspace.page_errors():
        taken = target == "New store" and workspace.store_path(name).exists()
        picked = [documents[origin] for origin in chosen]
        count, characters = chunk_count(tuple((d.hash, d.text) for d in picked), settings)
        speed = SPEED.get(model or "", 6.0)
        st.markdown(
            f"**{count:,} chunks** from {len(picked):,} documents, about {characters // 4:,} tokens to embed, "
            f"about {timedelta(seconds=round(count / speed) + 1)} on a machine like the one it was measured on."
        )
        problem = default_available() if model and model.startswith("bge") else None
        if problem:
            st.error(plain(problem), icon=":material/error:")
        if taken:
            st.warning(
                f"A store “{plain(name)}” is there already. Pick it in the list to add to it, or choose another name."
            )
        if st.button(
            "Build",
            type="primary",
            icon=":material/construction:",
            disabled=bool(problem or taken or not picked or not name),
        ):
            manager().start(
                "build",
                f"Building {name}",
                f"build:{name}",
                lambda job: build(job, name, model or "", picked, settings),
            )
            st.session_state["building"] = name
            st.rerun()
    copy_as_python(
        "from ragnar_core import Store, embed_default, read_as_markdown\n\n"
        f"with Store.create({str(workspace.store_path(name) if name else 'store.duckdb')!r}, embed_default()) as store:\n"
        '    store.ingest([read_as_markdown("report.pdf")])\n'
    )


@st.cache_data(show_spinner="Counting chunks …", max_entries=20)
def chunk_count(texts: tuple[tuple[str, str], ...], settings: ChunkSettings) -> tuple[int, int]:
    """How many chunks, and how many characters go to the model with them."""
    chunks = characters = 0
    for _, text in texts:
        made = markdown_chunk(text, **settings.to_dict())
        chunks += len(made)
        characters += int((made.table["end"] - made.table["start"]).sum())
    return chunks, characters


def runs() -> None:
    jobs = manager().jobs("build")
    if any(job.active for job in jobs):
        running()
    for job in jobs:
        if job.active:
            continue
        job_progress(job, key=f"job_{job.id}")
        if job.state in ("done", "cancelled"):
            outcome(job)


def outcome(job: Job) -> None:
    name, summary = job.key.removeprefix("build:"), job.result
    with st.container(border=True):
        st.markdown(f":material/check_circle: **{plain(name)}**: {plain(str(summary))} ({job.seconds:.0f} s)")
        for origin, reason in summary.failed:
            st.markdown(f":red[Not stored:] {plain(origin)}: {plain(reason)}")
        with st.container(horizontal=True):
            if st.button(
                "Compare in this store",
                key=f"open_{job.id}",
                icon=":material/compare_arrows:",
                type="primary",
            ):
                workspace.open_next(name)
                st.switch_page("pages/compare.py", query_params={"store": name})
            if st.button("Dismiss", key=f"dismiss_{job.id}"):
                manager().forget(job)
                st.rerun()


@st.fragment(run_every=0.5)
def running() -> None:
    active = manager().active("build")
    if not active:
        if (name := st.session_state.pop("building", None)) and name in workspace.store_names():
            workspace.open_next(name)
        st.rerun()
    for job in active:
        job_progress(job, key=f"job_{job.id}")


runs()
form()
