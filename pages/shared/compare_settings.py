"""The Compare page's settings: widgets whose keys are the page's address, and what they make."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from ragnar_core.retrieval import SearchSettings, Selection
from ragnar_core.retrieval.hybrid import DEFAULT_WEIGHTS

DISTANCES = {
    "cosine_distance": "Cosine distance",
    "euclidean_distance": "Euclidean distance",
    "negative_inner_product": "Negative inner product",
}
MODES = {"vss": "VSS", "bm25": "BM25", "hybrid": "Hybrid", "union": "VSS or BM25 (retrieve)"}
FUSIONS = {"rrf": "Ranks (RRF)", "weighted_scores": "Scores", "convex": "Convex"}
FUSION_HELP = (
    "Ranks: only places count. Scores: the best candidate of each search counts 1, the last of VSS 0. Convex: "
    "cosines as they are, so that a clear lead in meaning counts more than a narrow one; with the default model the "
    "best of the three on four test sets."
)
CHOICES = {"distance": DISTANCES, "fusion": FUSIONS}
DEFAULTS: dict[str, Any] = {
    "top_k": 8,
    "distance": "cosine_distance",
    "bm25_k": 1.2,
    "bm25_b": 0.75,
    "all_words": False,
    "fusion": "rrf",
    "w_vss": None,
    "w_bm25": None,
    "rrf_k": 60.0,
    "merge": False,
    "drop_same": False,
    "per_doc": None,
    "mmr": None,
    "min_sim": None,
    "min_bm25": None,
    "filter": "",
}
LIMITS: dict[str, tuple[float, float, float]] = {
    "top_k": (1, 50, 1),
    "bm25_k": (0.0, 100.0, 0.1),
    "bm25_b": (0.0, 1.0, 0.05),
    "w_vss": (0.0, 100.0, 0.1),
    "w_bm25": (0.0, 100.0, 0.1),
    "rrf_k": (0.0, 10_000.0, 10.0),
    "per_doc": (1, 50, 1),
    "mmr": (0.0, 1.0, 0.1),
    "min_sim": (-1.0, 1.0, 0.05),
    "min_bm25": (0.0, 1000.0, 0.5),
}
SIDES = ("", "b_")


def value(name: str, side: str = "") -> Any:
    """The setting as it is now, drawn or not."""
    return st.session_state.get(side + name, DEFAULTS[name])


def changed(side: str = "") -> list[str]:
    """The settings (the filter apart) that are not at their defaults."""
    return [name for name in DEFAULTS if name != "filter" and differs(name, side)]


def differs(name: str, side: str = "") -> bool:
    """Whether a setting is not at its default; before a widget is drawn for the first time, the address knows."""
    if side + name not in st.session_state:
        given = read(name, st.query_params.get(side + name))
        return given is not None and bool(given != DEFAULTS[name])
    return bool(value(name, side) != DEFAULTS[name])


def mend_address() -> None:
    """Take out of the address what is no value of its setting, and start anew: Streamlit takes 2.5 for 2 and fails on an
    infinite whole number."""
    mended = False
    for key, name in ((side + name, name) for side in SIDES for name in DEFAULTS):
        new = key in st.query_params and key not in st.session_state
        if new and read(name, st.query_params[key]) is None:
            # What a widget is bound to may not be deleted, and is not read from the address again.
            with suppress(StreamlitAPIException):
                del st.query_params[key]
                mended = True
    if mended:
        st.rerun()


def read(name: str, written: str | None) -> Any:
    """A setting as the address writes it; None for what is no value of it."""
    if written is None:
        return None
    if name in LIMITS:
        try:
            number = float(written)
        except ValueError:
            return None
        if not math.isfinite(number):
            return None
        given = int(number) if isinstance(LIMITS[name][2], int) and number.is_integer() else number
        return given if fits(name, given) else None
    if isinstance(DEFAULTS[name], bool):
        return {"true": True, "false": False}.get(written.lower())
    if choices := CHOICES.get(name):
        return next((key for key, label in choices.items() if label == written), None)
    return written


def settings_for(mode: str, side: str = "") -> SearchSettings:
    """Raises RetrievalError or FilterError for a setting that cannot be."""
    given = {name: value(name, side) for name in DEFAULTS}
    selection = Selection(
        deoverlap=given["merge"],
        per_document=given["per_doc"],
        drop_duplicates=given["drop_same"],
        mmr=given["mmr"],
    )
    return SearchSettings(
        mode=mode,
        top_k=given["top_k"],
        method=given["distance"],
        k=given["bm25_k"],
        b=given["bm25_b"],
        conjunctive=given["all_words"],
        # A list that takes no weights is none the worse for wrong ones.
        weights=_weights(given["w_vss"], given["w_bm25"], given["fusion"]) if mode == "hybrid" else None,
        rrf_k=int(given["rrf_k"]) if float(given["rrf_k"]).is_integer() else given["rrf_k"],
        fusion=given["fusion"],
        filter=given["filter"].strip() or None,
        min_similarity=given["min_sim"],
        min_bm25=given["min_bm25"],
        deoverlap=given["merge"],
        selection=selection,
    )


def _weights(vss: float | None, bm25: float | None, fusion: str) -> tuple[float, float] | None:
    """None where neither is set: then the fusion's own are in force."""
    if vss is None and bm25 is None:
        return None
    own = DEFAULT_WEIGHTS[fusion]
    return own[0] if vss is None else vss, own[1] if bm25 is None else bm25


def draw(side: str = "", *, can_merge: bool = True) -> None:
    """The settings (the filter apart), one tab a part of the search."""
    tabs = st.tabs(["List", "VSS", "BM25", "Hybrid"], key=f"{side}settings_tabs")
    with tabs[0]:
        _list(side, can_merge)
    for tab, group in zip(tabs[1:], (_vss, _bm25, _hybrid), strict=True):
        with tab:
            group(side)
    st.button(
        "Back to the defaults",
        key=f"{side}reset",
        on_click=reset,
        args=(side,),
        disabled=not changed(side),
        icon=":material/restart_alt:",
        type="tertiary",
    )


def reset(side: str = "") -> None:
    for name, default in DEFAULTS.items():
        if name != "filter":
            st.session_state[side + name] = default


def copy_side(source: str, target: str) -> None:
    for name in DEFAULTS:
        st.session_state[target + name] = value(name, source)


def fits(name: str, given: Any) -> bool:
    """Whether a setting can have this value; what is read from a file may be anything."""
    default = DEFAULTS[name]
    if name in LIMITS:
        low, high, step = LIMITS[name]
        whole = isinstance(step, int)
        number = isinstance(given, int if whole else int | float) and not isinstance(given, bool)
        return given is default or (number and low <= given <= high)
    choices = CHOICES.get(name)
    return given in choices if choices else type(given) is type(default)


def _number(
    name: str,
    side: str,
    label: str,
    help: str | None = None,
    placeholder: str = "off",
    *,
    disabled: bool = False,
) -> None:
    low, high, step = LIMITS[name]
    st.number_input(
        label,
        low,
        high,
        DEFAULTS[name],
        step,
        key=side + name,
        bind="query-params",
        help=help,
        persist_state="session",
        placeholder=placeholder if DEFAULTS[name] is None else None,
        disabled=disabled,
    )


def _list(side: str, can_merge: bool) -> None:
    grid = st.grid(2, min_column_width=112, vertical_alignment="bottom")
    with grid.cell():
        _number("top_k", side, "Top k", "How many passages each list shows.")
    with grid.cell():
        _number("per_doc", side, "Per document", "At most so many passages of one document.")
    with grid.cell():
        says = "Maximal marginal relevance: 1 is relevance only, lower avoids passages that are alike."
        _number("mmr", side, "Diversity (MMR)", says)
    with grid.cell():
        says = "Chunks that share characters become one passage; the list is refilled to top k."
        _toggle("merge", side, "Merge overlaps", says, disabled=not can_merge)
        _toggle(
            "drop_same", side, "Drop duplicates", "Leave out a chunk whose text a better one has already."
        )


def _toggle(name: str, side: str, label: str, help: str, *, disabled: bool = False) -> None:
    st.toggle(
        label, key=side + name, bind="query-params", persist_state="session", help=help, disabled=disabled
    )


def _vss(side: str) -> None:
    st.selectbox(
        "Distance",
        list(DISTANCES),
        key=side + "distance",
        format_func=DISTANCES.__getitem__,
        bind="query-params",
        persist_state="session",
    )
    _number("min_sim", side, "Least similarity", "Cosine similarity, whichever distance ranks.")


def _bm25(side: str) -> None:
    grid = st.grid(2, min_column_width=112, vertical_alignment="bottom")
    with grid.cell():
        _number("bm25_k", side, "k: repetition", "How much a second occurrence adds; 0: nothing.")
    with grid.cell():
        _number("bm25_b", side, "b: length", "How much a long chunk is discounted; 0: not at all.")
    with grid.cell():
        _number("min_bm25", side, "Least score")
    with grid.cell():
        _toggle("all_words", side, "All words", "Only chunks that contain every word of the query.")


def _hybrid(side: str) -> None:
    st.selectbox(
        "Fuse by",
        list(FUSIONS),
        key=side + "fusion",
        format_func=FUSIONS.__getitem__,
        help=FUSION_HELP,
        bind="query-params",
        persist_state="session",
    )
    fusion = value("fusion", side)
    own = DEFAULT_WEIGHTS[fusion]
    grid = st.grid(2, min_column_width=112)
    with grid.cell():
        _number("w_vss", side, "Weight of VSS", placeholder=f"{own[0]:g}")
    with grid.cell():
        _number("w_bm25", side, "Weight of BM25", placeholder=f"{own[1]:g}")
    with grid.cell():
        of_no_effect = not SearchSettings(fusion=fusion).applies("rrf_k")
        says = "The larger, the less the first ranks stand out; only where ranks are fused."
        _number("rrf_k", side, "RRF k", says, disabled=of_no_effect)


def note(settings: SearchSettings) -> str:
    """What is not at its default and has an effect, for the head of a column."""
    said: list[str] = []
    if settings.applies("k") and (settings.k, settings.b) != (1.2, 0.75):
        said.append(f"k {settings.k:g}, b {settings.b:g}")
    if settings.applies("conjunctive") and settings.conjunctive:
        said.append("all words")
    if settings.mode == "hybrid":
        if settings.fusion != "rrf":
            said.append(FUSIONS[settings.fusion].lower())
        if settings.weights:
            said.append(f"VSS {settings.weights[0]:g} : BM25 {settings.weights[1]:g}")
        if settings.fusion == "rrf" and settings.rrf_k != 60:
            said.append(f"RRF k {settings.rrf_k:g}")
        if settings.method != "cosine_distance":
            said.append(DISTANCES[settings.method].lower())
    if settings.applies("min_similarity") and settings.min_similarity:
        said.append(f"similarity ≥ {settings.min_similarity:g}")
    if settings.applies("min_bm25") and settings.min_bm25:
        said.append(f"BM25 ≥ {settings.min_bm25:g}")
    chosen = settings.selection
    if settings.deoverlap and (settings.mode == "union" or chosen.deoverlap):
        said.append("overlaps merged")
    if settings.mode != "union":
        said += [f"{chosen.per_document} per document"] if chosen.per_document else []
        said += ["no duplicates"] if chosen.drop_duplicates else []
        said += [f"MMR {chosen.mmr:g}"] if chosen.mmr is not None else []
    return " · ".join(said)
