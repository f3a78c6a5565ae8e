"""Documents: files, text and URLs become Markdown, each with a report of its reading."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.shared import workspace
from pages.shared.jobs import Job, job_progress, manager
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import MarkdownDocument, RagnarError, read_as_markdown, read_bytes

through_navigation()
header("Documents", "Files, text and URLs become Markdown here. Nothing is chunked or embedded yet.")
shelf = workspace.shelf()
TYPES = ["md", "markdown", "txt", "html", "htm", "pdf", "docx", "pptx", "xlsx", "xls", "csv", "json", "xml", "epub",
         "zip", "msg", "ipynb", "rst"]  # fmt: skip


def read_all(job: Job, sources: list[tuple[str, bytes | None]]) -> int:
    """Read each source (name and bytes, or a URL without) onto the shelf; failures go to `job.problems`."""
    read = 0
    for number, (name, data) in enumerate(sources):
        if job.cancel.is_set():
            break
        job.report(number, len(sources), name)
        try:
            document = read_as_markdown(name) if data is None else read_bytes(data, name, origin=name)
            shelf.add(document)
            read += 1
        except RagnarError as error:
            job.problems.append(f"{name}: {error}")
        job.report(number + 1, len(sources))
    return read


def start_reading(sources: list[tuple[str, bytes | None]]) -> None:
    title = sources[0][0] if len(sources) == 1 else f"{len(sources)} documents"
    key = "read:" + "\n".join(name for name, _ in sources)
    manager().start("read", f"Reading {title}", key, lambda job: read_all(job, sources))


def add() -> None:
    files, text, urls = st.tabs(["Files", "Paste text", "URLs"])
    with files:
        turn = st.session_state.setdefault("upload_turn", 0)
        chosen = st.file_uploader(
            "Files", TYPES, accept_multiple_files=True, key=f"files_{turn}", label_visibility="collapsed",
        )  # fmt: skip
        if chosen:
            start_reading([(file.name, file.getvalue()) for file in chosen])
            st.session_state["upload_turn"] = turn + 1
            st.rerun()
    with text, st.form("paste", border=False, clear_on_submit=True):
        name = st.text_input("Name", placeholder="notes.md")
        body = st.text_area("Text", height=160, placeholder="Markdown or plain text")
        if st.form_submit_button("Add text", icon=":material/add:"):
            if body.strip():
                with workspace.page_errors():
                    shelf.add(MarkdownDocument(body, origin=name.strip() or f"pasted-{len(shelf) + 1}.md"))
                st.rerun()
            st.warning("There is no text to add yet.")
    with urls, st.form("urls", border=False, clear_on_submit=True):
        lines = st.text_area("URLs, one a line", height=160, placeholder="https://example.org/guide")
        if st.form_submit_button("Read URLs", icon=":material/download:"):
            wanted = [line.strip() for line in lines.splitlines() if line.strip()]
            wrong = [url for url in wanted if not url.lower().startswith(("http://", "https://"))]
            if wrong:
                st.error(f"Only http:// and https:// addresses can be read here, not “{plain(wrong[0])}”.")
            elif wanted:
                start_reading([(url, None) for url in wanted])
                st.rerun()


def queue() -> None:
    jobs = manager().jobs("read")
    if any(job.active for job in jobs):
        reading()
    for job in jobs:
        if job.active:
            continue
        job_progress(job, key=f"job_{job.id}")
        if job.problems:
            with st.container(border=True):
                st.markdown(f":material/error: **Not read: {len(job.problems)} of {job.total}**")
                for problem in job.problems:
                    st.markdown(plain(problem))
                if st.button("Dismiss", key=f"dismiss_{job.id}"):
                    manager().forget(job)
                    st.rerun()


@st.fragment(run_every=0.5)
def reading() -> None:
    active = manager().active("read")
    if not active:
        st.rerun()
    for job in active:
        job_progress(job, key=f"job_{job.id}")


def table() -> None:
    entries = shelf.entries()
    if not entries:
        st.info(
            "No documents yet. Drop some above, or explore the sample store on the Compare page first.",
            icon=":material/description:",
        )
        return
    st.subheader(f"{len(entries):,} documents", anchor=False)
    rows = pd.DataFrame(
        {
            "document": [entry.origin for entry in entries],
            "characters": [len(entry.document.text) for entry in entries],
            "pages": [entry.document.report.pages if entry.document.report else None for entry in entries],
            "read with": [entry.document.report.converter if entry.document.report else "as it is" for entry in entries],
            "to look at": [
                " ".join(entry.document.report.problems) if entry.document.report else "" for entry in entries
            ],
        }
    )
    st.dataframe(rows, hide_index=True, width="stretch", column_config={"pages": st.column_config.NumberColumn(width="small")})
    origins = [entry.origin for entry in entries]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox("Look at", origins, key="look_at", persist_state="session")
        if st.button("Remove it", icon=":material/delete:"):
            shelf.remove(chosen)
            st.rerun()
        if st.button("Remove all", icon=":material/delete_sweep:"):
            for origin in origins:
                shelf.remove(origin)
            st.rerun()
        st.page_link("pages/build.py", label="Build a store from these", icon=":material/arrow_forward:")
    document = shelf.get(chosen)
    if document is not None:
        preview(document)


def preview(document: MarkdownDocument) -> None:
    facts, text = st.columns([1, 2], gap="medium")
    with facts, st.container(border=True):
        st.markdown("**How it was read**")
        report = document.report
        facts_of = {"Characters": f"{len(document.text):,}"}
        if report is not None:
            facts_of |= {
                "Read with": report.converter,
                "Encoding": report.encoding or "",
                "Size": f"{report.bytes:,} bytes" if report.bytes else "",
                "Pages": str(report.pages or ""),
                "Title": report.title or "",
            }
        for name, value in facts_of.items():
            if value:
                st.markdown(f":gray[{name}] {plain(value)}")
        for problem in report.problems if report else []:
            st.warning(plain(problem))
    with text:
        st.code(document.text[:20_000], language=None, wrap_lines=True, height=420)
        if len(document.text) > 20_000:
            st.caption(f"The first 20,000 of {len(document.text):,} characters.")


add()
queue()
table()
copy_as_python('from ragnar_core import read_as_markdown\n\ndocument = read_as_markdown("report.pdf")\nprint(document.report.problems)\n')
