"""Documents: files, folders, text, URLs and whole sites become Markdown, each with a report of its reading."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.shared import reading, workspace
from pages.shared.documents_view import document_view
from pages.shared.jobs import Job, job_progress, manager, watch
from pages.shared.reading import Selectors, Source
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import MarkdownDocument

through_navigation()
header("Documents", "Files, pages and sites become Markdown here. Nothing is chunked or embedded yet.")
shelf = workspace.shelf()
TYPES = [
    "md",
    "markdown",
    "txt",
    "rst",
    "html",
    "htm",
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "xls",
    "csv",
    "tsv",
    "json",
    "xml",
    "epub",
    "zip",
    "eml",
    "msg",
    "ipynb",
]


def start_reading(sources: list[Source]) -> None:
    title = sources[0].name if len(sources) == 1 else f"{len(sources):,} documents"
    key = "read:" + "\n".join(source.name for source in sources)
    selectors = _selectors()
    manager().start(
        "read", f"Reading {title}", key, lambda job: reading.read_all(job, sources, shelf, selectors)
    )


def _selectors() -> Selectors:
    state = st.session_state
    return Selectors(
        reading.split_selectors(state.get("extract", "main")),
        reading.split_selectors(state.get("zap", "nav")),
    )


def add() -> None:
    tabs = st.tabs(["Files", "Folder", "Text", "Path", "URLs", "Crawl a site"], key="add_tab")
    with tabs[0]:
        upload("Files", several=True)
    with tabs[1]:
        upload("Folder", several="directory")
    with tabs[2]:
        paste()
    with tabs[3]:
        path()
    with tabs[4]:
        urls()
    with tabs[5]:
        crawl_form()
    with st.expander("How HTML is read", icon=":material/html:"):
        keep, drop = st.columns(2)
        keep.text_input(
            "Keep (CSS selectors)",
            "main",
            key="extract",
            persist_state="session",
            help="The first match of each is kept; a page without a match is kept whole.",
        )
        drop.text_input("Remove (CSS selectors)", "nav", key="zap", persist_state="session")


def upload(what: str, several: bool | str) -> None:
    turn = st.session_state.setdefault(f"turn_{what}", 0)
    chosen = st.file_uploader(
        what, TYPES, accept_multiple_files=several, key=f"{what}_{turn}", label_visibility="collapsed"
    )
    if chosen:
        start_reading([Source(file.name, file.getvalue()) for file in chosen])
        st.session_state[f"turn_{what}"] = turn + 1
        st.rerun()


def paste() -> None:
    with st.form("paste", border=False, clear_on_submit=True):
        name = st.text_input("Name", placeholder="notes.md")
        body = st.text_area("Text", height=160, placeholder="Markdown or plain text")
        if not st.form_submit_button("Add text", icon=":material/add:"):
            return
    if not body.strip():
        st.warning("There is no text to add yet.")
        return
    with workspace.page_errors():
        shelf.add(MarkdownDocument(body, origin=name.strip() or f"pasted-{len(shelf) + 1}.md"))
    st.rerun()


def path() -> None:
    root = reading.allowed_root()
    with st.form("path", border=False):
        given = st.text_input(
            "File or folder on the server",
            placeholder="docs/handbook",
            help=f"Below {root}; RAGNAR_ROOT names another folder.",
        )
        if not st.form_submit_button("Read", icon=":material/folder_open:") or not given.strip():
            return
    with workspace.page_errors():
        start_reading([Source(str(file)) for file in reading.files_below(given.strip(), root, TYPES)])
    st.rerun()


def urls() -> None:
    with st.form("urls", border=False, clear_on_submit=True):
        lines = st.text_area("URLs, one a line", height=130, placeholder="https://example.org/guide")
        if not st.form_submit_button("Read URLs", icon=":material/download:"):
            return
    wanted = list(dict.fromkeys(line.strip() for line in lines.splitlines() if line.strip()))
    wrong = [url for url in wanted if not url.lower().startswith(("http://", "https://"))]
    if wrong:
        st.error(f"Only http:// and https:// addresses can be read here, not “{plain(wrong[0])}”.")
    elif wanted:
        start_reading([Source(url) for url in wanted])
        st.rerun()


def crawl_form() -> None:
    with st.form("crawl", border=False):
        start = st.text_input("Start at", placeholder="https://example.org/docs/", key="crawl_start").strip()
        grid = st.grid(4, min_column_width=150)
        scope = grid.selectbox(
            "Scope",
            ["children", "site"],
            format_func={"children": "This folder and below", "site": "The whole host"}.get,
        )
        most = grid.number_input("At most pages", 1, 20_000, 200)
        depth = grid.number_input("Levels of links", 0, 20, 5)
        with grid.cell():
            documents = st.checkbox("PDF and Office files too", value=True)
            sitemap = st.checkbox("Pages of the sitemap too")
        include, exclude = st.columns(2)
        wanted = include.text_input("Only addresses like", placeholder="*/guide/*, */reference/*")
        unwanted = exclude.text_input("No addresses like", placeholder="*/archive/*")
        pressed = st.form_submit_button("Crawl", icon=":material/travel_explore:")
    if not pressed or not start:
        return
    if not start.lower().startswith(("http://", "https://")):
        st.error(f"A crawl starts at an http:// or https:// address, not “{plain(start)}”.")
        return
    settings = reading.crawl_settings(
        scope=scope,
        max_pages=int(most),
        max_depth=int(depth),
        include=wanted,
        exclude=unwanted,
        documents=documents,
        sitemap=sitemap,
        selectors=_selectors(),
    )
    start_crawl(start, settings, "new")


def start_crawl(start: str, settings, mode: str) -> None:
    crawls = workspace.crawls()
    job = manager().start(
        "read",
        f"Crawling {start}",
        f"crawl:{start}",
        lambda job: reading.crawl_site(job, start, settings, shelf, crawls, mode),
    )
    job.retry = settings
    st.rerun()


def queue() -> None:
    jobs = manager().jobs("read")
    if any(job.active for job in jobs):
        watch("read")
    for job in jobs:
        if not job.active:
            finished(job)


def finished(job: Job) -> None:
    crawled = job.key.startswith("crawl:")
    if job.state == "done" and not crawled and not job.problems:
        manager().forget(job)
        return
    with st.container(border=True):
        job_progress(job, key=f"job_{job.id}")
        if crawled and job.result is not None:
            _crawl_outcome(job)
        elif job.problems:
            st.markdown(
                f":material/error: **{plain(job.title)}: {len(job.problems):,} of {job.total:,} not read**"
            )
        if job.problems:
            problems(job.problems)
        _after(job, crawled)


def problems(found: list[tuple[str, str]]) -> None:
    """What was not read and why: whole sentences while they are few, a table when they are many."""
    if len(found) <= 12:
        for what, why in found:
            st.markdown(f":gray[{plain(what)}]  \n{plain(why.removeprefix(what).strip(' :'))}")
    else:
        st.dataframe(
            pd.DataFrame(found, columns=["what", "why"]), hide_index=True, width="stretch", height=320
        )


def _remove(origins: list[str]) -> None:
    for origin in origins:
        shelf.remove(origin)
    st.rerun()


def _crawl_outcome(job: Job) -> None:
    result = job.result
    kinds = pd.Series(result.changes).value_counts().to_dict()
    said = [f"{count:,} {kind}" for kind, count in kinds.items()]
    said += [f"{len(result.vanished):,} vanished"] * bool(result.vanished)
    said += [f"{len(result.duplicates):,} left out as copies"] * bool(result.duplicates)
    said += [f"{sum(result.skipped.values()):,} of a kind that is not read"] * bool(result.skipped)
    st.markdown(
        f":material/travel_explore: **{plain(job.title)}**: {', '.join(said) or 'nothing new'} ({job.seconds:.0f} s)"
    )
    for reason in filter(
        None, [result.stopped, *(f"{name}: {where}" for name, where in result.limits.items())]
    ):
        st.caption(plain(reason))
    if result.vanished:
        st.caption("Vanished: " + plain(", ".join(result.vanished[:20])))


def _after(job: Job, crawled: bool) -> None:
    with st.container(horizontal=True):
        if crawled:
            start = job.key.removeprefix("crawl:")
            state = workspace.crawls().load(start)
            if (
                state is not None
                and not state.is_complete
                and st.button("Go on", key=f"on_{job.id}", icon=":material/play_arrow:")
            ):
                _again(job, start, "resume")
            if job.problems and st.button(
                "Try the failed ones again", key=f"retry_{job.id}", icon=":material/refresh:"
            ):
                _again(job, start, "retry")
            if state is not None and st.button(
                "Look for changes", key=f"changes_{job.id}", icon=":material/update:"
            ):
                _again(job, start, "changes")
        elif job.retry and st.button("Try again", key=f"retry_{job.id}", icon=":material/refresh:"):
            manager().forget(job)
            start_reading(job.retry)
            st.rerun()
        if st.button("Dismiss", key=f"dismiss_{job.id}"):
            manager().forget(job)
            st.rerun()


def _again(job: Job, start: str, mode: str) -> None:
    manager().forget(job)
    start_crawl(start, job.retry, mode)


def table() -> None:
    entries = shelf.entries()
    for problem in shelf.problems:
        st.warning(plain(problem))
    if not entries:
        st.info(
            "No documents yet. Drop some above, or explore the sample store on the Compare page first.",
            icon=":material/description:",
        )
        return
    reports = [entry.document.report for entry in entries]
    rows = pd.DataFrame(
        {
            "document": [entry.origin for entry in entries],
            "to look at": [" ".join(report.problems) if report else "" for report in reports],
            "characters": [len(entry.document) for entry in entries],
            "pages": [f"{report.pages:,}" if report and report.pages else "" for report in reports],
            "read with": [report.converter if report else "as it is" for report in reports],
        }
    )
    troubled = int((rows["to look at"] != "").sum())
    characters = int(rows["characters"].sum())
    st.subheader(f"{len(entries):,} documents", anchor=False)
    st.caption(f"{characters:,} characters" + (f" · {troubled:,} to look at" if troubled else ""))
    picked = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=min(420, 36 * (len(rows) + 1) + 2),
        key="documents_table",
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        column_config={
            "document": st.column_config.TextColumn(width="medium"),
            "characters": st.column_config.NumberColumn(format="localized", width="small"),
            "pages": st.column_config.TextColumn(width="small"),
            "read with": st.column_config.TextColumn(width="small"),
            "to look at": st.column_config.TextColumn(width="medium"),
        },
    )
    chosen_rows = [entries[row].origin for row in picked.selection.rows]
    with st.container(horizontal=True, vertical_alignment="center"):
        if chosen_rows:
            if st.button(f"Remove {len(chosen_rows):,} ticked", icon=":material/delete:"):
                _remove(chosen_rows)
        else:
            with st.popover("Remove all", icon=":material/delete:"):
                st.markdown(
                    f"All {len(entries):,} documents are removed here. Stores built from them stay as they are."
                )
                if st.button("Remove them", type="primary"):
                    _remove([entry.origin for entry in entries])
        st.page_link("pages/chunking.py", label="Tune the chunks", icon=":material/content_cut:")
        st.page_link("pages/build.py", label="Build a store", icon=":material/construction:")
    origins = [entry.origin for entry in entries]
    cells = picked.selection.cells
    if cells and st.session_state.get("seen_cell") != cells[0]:
        st.session_state["look_at"] = origins[cells[0][0]]
        st.session_state["seen_cell"] = cells[0]
    if st.session_state.get("look_at") not in origins:
        st.session_state["look_at"] = origins[0]
    chosen = st.selectbox("Look at", origins, key="look_at", persist_state="session")
    document = shelf.get(chosen)
    if document is not None:
        document_view(document, shelf, _selectors())


add()
queue()
table()
copy_as_python(
    "from ragnar_core import CrawlSettings, crawl, read_as_markdown\n\n"
    'document = read_as_markdown("report.pdf")\nprint(document.report.problems)\n\n'
    'site = crawl("https://example.org/docs/", CrawlSettings(max_pages=200))\nprint(len(site.documents), site.problems)\n'
)
