"""Looking after the open store: what is indexed, what is wrong with it, and the repairs."""

from __future__ import annotations

import streamlit as st

from pages.shared import workspace
from pages.shared.jobs import Job, job_progress, manager, watch
from pages.shared.shell import plain
from ragnar_core import Finding, Store

_MARKS = {"error": ":material/error:", "warning": ":material/warning:", "note": ":material/info:"}


def care(name: str) -> None:
    """The state of the store's indexes, and the doctor."""
    store = workspace.current_store()
    st.subheader(f"The open store: {plain(name)}", anchor=False)
    with workspace.page_errors():
        state, counts = store.index_state(), store.counts()
    grid = st.grid(4, min_column_width=140)
    grid.metric(
        "BM25",
        state.bm25,
        border=True,
        help="Written with every chunk; stale only after another program wrote.",
    )
    exact = state.ann in ("none", "absent", "damaged")
    grid.metric(
        "VSS",
        state.vss,
        border=True,
        help="Exact: whatever has a vector is found."
        if exact
        else f"Approximate, by a graph beside the store ({state.ann}); searches with a filter are exact.",
    )
    grid.metric("Size", f"{counts.bytes / 1e6:,.1f} MB", border=True)
    grid.metric("Schema", f"version {store.version}", border=True)
    if state.stale_chunks:
        st.warning(
            f"{state.stale_chunks:,} chunks were written by another program and are not in the BM25 index yet."
        )
    if state.missing_vectors:
        st.warning(f"{state.missing_vectors:,} chunks have no vector.")
    _work(store, name)
    _doctor(store, name)


def _work(store: Store, name: str) -> None:
    key = f"care:{name}"
    for job in manager().jobs("care"):
        if job.key == key:
            _job(job)
    if store.read_only:
        st.caption("This store is open for reading only, so nothing can be changed in it here.")
        return
    with st.container(horizontal=True):
        if st.button("Bring indexes up to date", icon=":material/refresh:"):
            _start(f"Indexing {name}", key, lambda job: store.build_index(progress=job.report))
        if st.button(
            "Index for R",
            icon=":material/output:",
            help="Builds ragnar’s own BM25 and HNSW indexes in the file. "
            "It is then for reading until R’s vector index is dropped again.",
        ):
            _start(
                f"Indexing {name} for R", key, lambda job: store.build_index(for_r=True, progress=job.report)
            )


def _start(title: str, key: str, work) -> None:
    manager().start("care", title, key, work)
    st.rerun()


def _job(job: Job) -> None:
    if job.active:
        watch("care")
        return
    job_progress(job, key=f"job_{job.id}")
    with st.container(horizontal=True, vertical_alignment="center"):
        if job.state == "done":
            st.markdown(f":material/check_circle: {plain(job.title)}: done in {job.seconds:.0f} s")
        if st.button("Dismiss", key=f"dismiss_{job.id}"):
            manager().forget(job)
            st.rerun()


def _doctor(store: Store, name: str) -> None:
    if st.button("Check this store", icon=":material/health_and_safety:"):
        with workspace.page_errors(), st.spinner("Checking …"):
            st.session_state["findings"] = (name, store.revision, store.check())
    checked = st.session_state.get("findings")
    if not checked or checked[0] != name:
        return
    findings: list[Finding] = checked[2]
    if not findings:
        st.success("Nothing is wrong with this store.", icon=":material/check_circle:")
    for number, finding in enumerate(findings):
        with st.container(border=True):
            st.markdown(f"{_MARKS[finding.severity]} {plain(finding.message)}")
            if finding.items:
                st.caption(plain(", ".join(map(str, finding.items[:20]))))
            if finding.repair and not store.read_only:
                st.caption(plain(finding.repair))
                if st.button("Repair", key=f"repair_{number}"):
                    st.session_state.pop("findings", None)
                    _start(
                        f"Repairing {name}",
                        f"care:{name}",
                        lambda job, finding=finding: store.repair(finding),
                    )
