"""Chunking: move the sliders, see every cut in a real text, and see what it costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.shared import chunking_try, workspace
from pages.shared.chunking_documents import Source, TunedDocument, sources, token_counter, tune
from pages.shared.chunking_state import PRESETS, Sides, current_sides, fitted, keep_sides
from pages.shared.components.chunk_hits import Results, chunk_hits
from pages.shared.components.chunk_text import Side, carry_text, chunk_bench
from pages.shared.jobs import Job, job_progress, manager
from pages.shared.models import MODELS
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import ChunkSettings, RagnarError, default_available
from ragnar_core.chunking.report import ChunkReport, EmbeddingCost, differing_cuts

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BENCH = "chunk_bench"
BUILT_IN = next(iter(MODELS))  # the model whose tokenizer counts
EMBED_UNASKED = 120  # chunks; more are embedded when a person says so
EMBEDDED_A_SECOND = 6  # chunks of 1,600 characters, the built-in model on two cores
TOP = 3

through_navigation()
header("Chunking", "Move a slider: the text is cut anew as it moves. Two settings can stand side by side.")


def page() -> None:
    found = sources()
    if not found:
        st.info("There is nothing to chunk yet.", icon=":material/description:")
        st.page_link("pages/documents.py", label="Add documents", icon=":material/arrow_forward:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        origin = st.selectbox(
            "Document", list(found), key="document", bind="query-params", persist_state="session"
        )
        model = st.selectbox(
            "Counted and priced for", list(MODELS), key="chunk_model", persist_state="session", width=300,
            help="Its token limit, speed and list price. Tokens are those of the built-in model's tokenizer.",
        )  # fmt: skip
    with workspace.page_errors():
        tuned = tune(found[origin])
    carry_text(tuned, key="chunk_text")
    bench(tuned, MODELS[model], found)


@st.fragment
def bench(tuned: TunedDocument, cost: EmbeddingCost, found: dict[str, Source]) -> None:
    sides, problem = fitted(current_sides(), len(tuned.document))
    if problem:
        keep_sides(sides)
    problem = st.session_state.pop("chunk_problem", problem)
    with workspace.page_errors():
        reports = [tuned.report(settings, cost.token_limit) for settings in (sides.a, sides.b) if settings]
    chunk_bench(
        tuned,
        sides.to_dict(),
        [Side(report, cost) for report in reports],
        counted=cost is MODELS[BUILT_IN] and token_counter() is not None,
        key=BENCH,
        on_wish=take_wish,
        presets={name: settings.to_dict() for name, settings in PRESETS.items()},
        difference=differing_cuts(*reports) if len(reports) == 2 else None,
        problem=problem,
    )
    use_for_build(sides)
    st.subheader("Try it", anchor=False)
    try_it(tuned, sides, reports)
    whole_collection(found, sides.edited, cost)
    copy_as_python(python_lines(tuned.document.origin or "document.md", sides))


def take_wish() -> None:
    """A person changed a control in the browser."""
    wish = (st.session_state.get(BENCH) or {}).get("wish")
    if not wish:
        return
    try:
        keep_sides(Sides.from_dict(wish))
    except RagnarError as error:
        st.session_state["chunk_problem"] = str(error)
        keep_sides(replace(current_sides(), seq=int(wish.get("seq", 0))))


def use_for_build(sides: Sides) -> None:
    """The settings that are edited become those of the Build page, when the person says so."""
    name = f"Use {sides.edit.upper()} for Build" if sides.b else "Use for Build"
    in_use = workspace.chunk_settings()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            name,
            key="use_for_build",
            type="primary",
            icon=":material/check:",
            disabled=in_use == sides.edited,
            on_click=workspace.keep_chunk_settings,
            args=(sides.edited,),
        )
        if in_use == sides.edited:
            label = "Build uses these settings. Go on to Build"
            st.page_link("pages/build.py", label=label, icon=":material/arrow_forward:")
        else:
            now = described(in_use) if in_use else "the app's own settings"
            st.caption(f"Build now uses {plain(now)}.")


def described(settings: ChunkSettings) -> str:
    """Settings in a few words."""
    size = (
        "chunks of any size" if settings.target_size is None else f"{settings.target_size:,} {settings.unit}"
    )
    words = [size, f"{settings.target_overlap:.0%} overlap"]
    if settings.segment_by_heading_levels:
        words.append(f"cut at headings {', '.join(map(str, settings.segment_by_heading_levels))}")
    if settings.strategy != "ragnar":
        words.append(settings.strategy)
    return ", ".join(words)


# --- a query against this document --------------------------------------------------------------------------------


def try_it(tuned: TunedDocument, sides: Sides, reports: list[ChunkReport]) -> None:
    """One query, the best passages of A and of B. BM25 at once; vectors come in from a job."""
    query = st.text_input(
        "A question to this document", key="chunk_query", type="search", live="250ms", persist_state="session",
        placeholder="Ask something that this document answers: the best passage moves with the sliders",
    )  # fmt: skip
    query = (query or "").strip()
    if not query:
        stop_embedding()
        return
    with workspace.page_errors():
        indexes = [
            chunking_try.live_index(tuned.id, json.dumps(settings.to_dict()), report.chunks)
            for settings, report in zip(filter(None, (sides.a, sides.b)), reports, strict=True)
        ]
    problem = default_available()
    if problem:
        stop_embedding()
    job = None if problem else embedding(tuned, indexes, query)
    draw = st.fragment(answers, run_every=1.0) if job else answers
    draw(tuned, indexes, query, problem, job)


def answers(
    tuned: TunedDocument,
    indexes: list[chunking_try.LiveIndex],
    query: str,
    problem: str | None,
    job: Job | None,
) -> None:
    """Passages of each side; again every second while vectors come in."""
    if job:
        if not job.active:
            st.rerun()
        job_progress(job, key="chunk_try_job")
    with workspace.page_errors():
        sides = list(zip("ab", indexes, strict=False))
        drawn = [bm25_results(side, index, query) for side, index in sides]
        drawn += [vss_results(side, index, query, problem) for side, index in sides]
    chunk_hits(drawn, document_id=tuned.id, columns=2, key="chunk_hits")


def bm25_results(side: str, index: chunking_try.LiveIndex, query: str) -> Results:
    empty = "No chunk holds a word of this query. BM25 matches words, not meanings."
    return chunking_try.results(
        side, "BM25", "score, higher is better", index, index.bm25(query, TOP), query, empty
    )


def vss_results(side: str, index: chunking_try.LiveIndex, query: str, problem: str | None) -> Results:
    if problem:
        return Results(side, "VSS", "", [], problem)
    found = chunking_try.vss(index, query, TOP)
    part = "" if found.known == found.total else f"{found.known:,} of {found.total:,} chunks · "
    empty = "No chunk has a vector yet." if found.total else "This document has no chunks."
    return chunking_try.results(side, "VSS", f"{part}cosine similarity", index, found.ranking, query, empty)


def embedding(tuned: TunedDocument, indexes: list[chunking_try.LiveIndex], query: str) -> Job | None:
    """The job at work that gives these chunks their vectors, started if there is need; None when there is none."""
    texts = [text for index in indexes for text in index.texts]
    missing = chunking_try.vector_cache().missing(texts)
    key = f"try:{tuned.id}:{hash(tuple(texts))}"
    stop_embedding(but=key)
    for job in manager().jobs("try"):
        if job.key == key and job.active:
            return job
        if job.key == key and job.state == "failed":
            st.warning(plain(job.error or "Embedding failed."), icon=":material/error:")
            st.button("Try again", key="chunk_embed_again", on_click=manager().forget, args=(job,))
            return None
        if not job.active:
            manager().forget(job)
    if not missing:
        return None

    def start() -> Job:
        st.session_state["try_job"] = key
        title = f"Embedding {len(missing):,} chunks"
        return manager().start("try", title, key, lambda job: chunking_try.embed_missing(job, indexes, query))

    if len(missing) <= EMBED_UNASKED:
        return start()
    seconds = len(missing) / EMBEDDED_A_SECOND
    label = f"Search by meaning too: embed {len(missing):,} chunks here (about {duration(seconds)})"
    st.button(label, key="chunk_embed", icon=":material/hub:", on_click=start)
    return None


def stop_embedding(but: str | None = None) -> None:
    """Cancel this session's job when its chunks are no longer the ones on the page."""
    key = st.session_state.get("try_job")
    if key and key != but:
        for job in manager().active("try"):
            if job.key == key:
                job.cancel.set()
        st.session_state["try_job"] = None


# --- all documents --------------------------------------------------------------------------------------------------


def whole_collection(found: dict[str, Source], settings: ChunkSettings, cost: EmbeddingCost) -> None:
    """The same settings for every document, one row each."""
    with st.expander(f"All {len(found):,} documents with these settings", icon=":material/table_rows:"):
        if not st.toggle(
            "Chunk them all", key="chunk_all", help="Tokens are counted too; this can take some seconds."
        ):
            st.caption("Chunks, tokens, broken tables and cost of the whole collection, before you build it.")
            return
        rows, lengths = collection(tuple(found.values()), collection_stamp(), settings, cost)
        table = pd.DataFrame(rows)
        tokens = int(table["Tokens"].sum()) if len(table) else 0
        seconds = cost.seconds(tokens)
        time = "" if seconds is None else f", about {duration(seconds)} of embedding"
        price = f", ${cost.dollars(tokens):.2f}" if cost.dollars_per_million else ""
        st.markdown(f"**{table['Chunks'].sum():,} chunks, {tokens:,} tokens**{time}{price}")
        st.plotly_chart(
            _lengths(lengths, cost), key="chunk_collection_lengths", config={"displayModeBar": False}
        )
        st.dataframe(
            table, hide_index=True, key="chunk_collection",
            column_config={
                "Duplication": st.column_config.NumberColumn(format="%.2f×"),
                "Inside a sentence": st.column_config.NumberColumn(format="%d %%", help="Part of the cuts"),
            },
        )  # fmt: skip


def collection_stamp() -> tuple[object, ...]:
    """Changes when a document does."""
    store = workspace.current_store()
    return store.revision, *(entry.added for entry in workspace.shelf().entries())


@st.cache_data(max_entries=8, show_spinner="Chunking all documents …")
def collection(
    all_sources: tuple[Source, ...], stamp: tuple[object, ...], settings: ChunkSettings, cost: EmbeddingCost
) -> tuple[list[dict[str, object]], np.ndarray]:
    """A row of figures a document, and the tokens of every chunk."""
    rows: list[dict[str, object]] = []
    lengths: list[np.ndarray] = []
    for source in all_sources:
        report = tune(source).report(settings, cost.token_limit)
        lengths.append(report.tokens)
        rows.append(
            {
                "Document": source.origin,
                "Characters": len(report.chunks.document),
                "Chunks": len(report.chunks),
                "Tokens": report.tokens_total,
                "Too long": len(report.too_long),
                "Duplication": report.duplication,
                "Inside a sentence": round(100 * report.inside_sentence),
                "Broken tables": len(report.broken("table")),
                "Broken code": len(report.broken("code")),
            }
        )
    return rows, np.concatenate(lengths) if lengths else np.zeros(0, np.int64)


def _lengths(tokens: np.ndarray, cost: EmbeddingCost) -> Figure:
    """Lengths of all chunks of the collection, with what the model reads."""
    import plotly.graph_objects as go  # slow to import, and seldom needed

    figure = go.Figure(
        go.Histogram(
            x=tokens, nbinsx=60, marker_color="#14a394", hovertemplate="%{x} tokens: %{y}<extra></extra>"
        )
    )
    if cost.token_limit and len(tokens) and tokens.max() > cost.token_limit * 0.6:
        figure.add_vline(
            cost.token_limit,
            line={"color": "#dc2626", "dash": "dot"},
            annotation_text=f"the model reads {cost.token_limit:,}",
        )
    figure.update_layout(
        height=210,
        margin={"l": 0, "r": 0, "t": 24, "b": 0},
        bargap=0.06,
        xaxis_title="tokens a chunk",
        yaxis_title="chunks",
    )
    return figure


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def python_lines(origin: str, sides: Sides) -> str:
    names = ["markdown_chunk", "read_as_markdown"]
    tokens = any(settings and settings.unit == "tokens" for settings in (sides.a, sides.b))
    lines = [f"document = read_as_markdown({origin!r})"]
    if tokens:
        names.insert(0, "embed_default")
        lines.append("embedder = embed_default()")
    lines.append(f"chunks = {sides.a.as_python()}")
    if sides.b:
        lines.append(f"others = {sides.b.as_python()}")
    lines.append("print(chunks.table)")
    return f"from ragnar_core import {', '.join(names)}\n\n" + "\n".join(lines) + "\n"


page()
