"""Every public name answers a wrong first argument with a sentence, or takes it as its docstring says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ragnar_core
from ragnar_core import (
    Boundaries,
    ChunkSettings,
    CrawlError,
    CrawlSettings,
    DocumentError,
    EmbedError,
    FetchSettings,
    Filter,
    FunctionEmbedder,
    Limits,
    RagnarError,
    ReadOptions,
    RetrievalError,
    SearchSettings,
    Selection,
    Store,
    explain,
    find_links,
    fit_tokens,
    nearest_sentences,
    search,
    search_ids,
    why_not,
)

# Values that the library hands out; nobody makes them, so that nothing is checked.
HANDED_OUT = {
    "ReadReport", "Links", "CrawlProgress", "CrawlResult", "CrawlState", "Boundaries", "Chunks", "Cuts", "ModelCheck",
    "EmbedReport", "StoreCounts", "UpdateResult", "IngestProgress", "IngestSummary", "IndexState", "Finding", "Written",
}  # fmt: skip
# Made by their class methods, or only to be derived from.
MADE_OTHERWISE = {"Store", "Embedder"}
WITHOUT_ARGUMENT = {"PROVIDERS", "embed_default", "embed_static", "default_available", "static_available"}
ERRORS = {
    name
    for name in ragnar_core.__all__
    if isinstance(getattr(ragnar_core, name), type) and issubclass(getattr(ragnar_core, name), Exception)
}
SWEPT = [
    name
    for name in ragnar_core.__all__
    if name not in HANDED_OUT | MADE_OTHERWISE | WITHOUT_ARGUMENT | ERRORS
]
TABLE = pd.DataFrame({"chunk_id": [1], "doc_id": [1], "start": [0], "end": [1], "text": ["a"]})
REST: dict[str, tuple[Any, ...]] = {
    "read_bytes": ("a.md",),
    **dict.fromkeys(("retrieve", "retrieve_vss", "retrieve_bm25", "retrieve_hybrid"), ("query",)),
    "chunks_deoverlap": (TABLE,),
    **dict.fromkeys(("search", "search_ids", "why_not"), ("query", SearchSettings())),
    "search_batch": (["query"], SearchSettings()),
    "count_matching": (None,),
    "explain": ("query", 1),
    "nearest_sentences": ("query", "A text."),
    "compare_results": (TABLE,),
    "fit_tokens": (100,),
}
NAMED: dict[str, dict[str, Any]] = {
    "why_not": {"chunk_id": 1},
    "inspect_store": {"browser": False},
    "chunks_view": {"browser": False},
}


class Odd:
    """Nothing that any function could take."""


WRONG = [None, -1, 2.5, b"\xff", [None], Odd()]
TAKEN: dict[str, list[Any]] = {
    "read_bytes": [b"\xff"],
    "ReadOptions": [None],
    "ChunkSettings": [None],
    "segment_text": [[None]],
    "chunk_text": [[None]],
    "chunk_segments": [[None]],
    "Analyzer": [None],
}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name in SWEPT for wrong in WRONG if wrong not in TAKEN.get(name, [])],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_a_wrong_first_argument_is_answered_with_a_sentence(name: str, wrong: Any) -> None:
    with pytest.raises(RagnarError) as told:
        getattr(ragnar_core, name)(wrong, *REST.get(name, ()), **NAMED.get(name, {}))
    assert len(str(told.value).split()) >= 4


@pytest.mark.parametrize(
    "made", [Store.create, Store.connect, Boundaries.of, Filter.parse, SearchSettings.from_dict], ids=str
)
@pytest.mark.parametrize("wrong", [-1, 2.5, [None], Odd()], ids=lambda wrong: type(wrong).__name__)
def test_so_do_the_methods_that_make_things(made: Callable[[Any], Any], wrong: Any) -> None:
    with pytest.raises(RagnarError) as told:
        made(wrong)
    assert len(str(told.value).split()) >= 4


def test_every_public_name_is_swept_or_has_a_reason() -> None:
    known = HANDED_OUT | MADE_OTHERWISE | WITHOUT_ARGUMENT | ERRORS
    assert known <= set(ragnar_core.__all__)
    assert set(REST) | set(NAMED) | set(TAKEN) <= set(SWEPT)
    assert len(SWEPT) > 55


@pytest.fixture(scope="module")
def store():
    with Store.create(":memory:", FunctionEmbedder(lambda texts: np.ones((len(texts), 2)), dim=2)) as made:
        made.insert(pd.DataFrame({"origin": ["a"], "text": ["eel"]}))
        yield made


@pytest.mark.parametrize("wrong", [None, 5, Odd()], ids=lambda wrong: type(wrong).__name__)
def test_further_arguments_of_the_searches(store: Store, wrong: Any) -> None:
    settings = SearchSettings()
    for call in (search, search_ids):
        with pytest.raises(RetrievalError, match="settings must be SearchSettings"):
            call(store, "eel", wrong)
    with pytest.raises(RetrievalError, match="settings must be SearchSettings"):
        why_not(store, "eel", wrong, chunk_id=1)
    for query in (lambda: search_ids(store, wrong, settings), lambda: explain(store, wrong, 1)):
        with pytest.raises(RetrievalError, match="the query must be a text"):
            query()
    with pytest.raises(RetrievalError, match="the query must be a text"):
        why_not(store, wrong, settings, chunk_id=1)
    with pytest.raises(RetrievalError, match="the text to look for sentences in must be a text"):
        nearest_sentences(store, "eel", wrong)


@pytest.mark.parametrize("wrong", [None, "1", 1.5, True])
def test_a_chunk_is_named_by_its_number(store: Store, wrong: Any) -> None:
    with pytest.raises(RetrievalError, match="chunk_id must be the number of a chunk"):
        explain(store, "eel", wrong)


@pytest.mark.parametrize("wrong", [None, 0, -1, 2.5, "5", True])
def test_a_number_of_tokens_is_a_whole_number(wrong: Any) -> None:
    with pytest.raises(RetrievalError, match="max_tokens must be a whole number"):
        fit_tokens(TABLE, wrong)


@pytest.mark.parametrize("wrong", [-1, None, "5", float("nan"), True])
@pytest.mark.parametrize(
    "name",
    ["max_depth", "max_pages", "max_seconds", "concurrency", "per_host", "delay", "retries", "max_queries"],
)
def test_numbers_of_a_crawl_are_in_range(name: str, wrong: Any) -> None:
    with pytest.raises(CrawlError, match=rf"{name} must be a (whole )?number of [01] or more, not "):
        CrawlSettings(**{name: wrong})


def test_other_settings_of_a_crawl() -> None:
    with pytest.raises(CrawlError, match="scope must be 'children' or 'site', not 'all'"):
        CrawlSettings(scope="all")
    with pytest.raises(CrawlError, match="include must be a tuple of patterns"):
        CrawlSettings(include="*/guide/*")  # type: ignore[arg-type]
    with pytest.raises(CrawlError, match="fetch must be FetchSettings"):
        CrawlSettings(fetch=None)  # type: ignore[arg-type]
    with pytest.raises(CrawlError, match="concurrency must be a whole number of 1 or more, not 0"):
        CrawlSettings(concurrency=0)
    assert CrawlSettings(max_seconds=float("inf"), delay=0.5, retries=0).retries == 0


@pytest.mark.parametrize("name", ["timeout", "total_timeout", "max_bytes", "max_redirects"])
def test_numbers_of_a_fetch_are_in_range(name: str) -> None:
    with pytest.raises(CrawlError, match=rf"{name} must be a (whole )?number of 0 or more, not -1"):
        FetchSettings(**{name: -1})


@pytest.mark.parametrize(
    "name", ["file_bytes", "unpacked_bytes", "entry_bytes", "ratio", "entries", "depth", "pages"]
)
def test_limits_are_in_range(name: str) -> None:
    with pytest.raises(DocumentError, match=rf"{name} must be a whole number of 0 or more, not -1"):
        Limits(**{name: -1})


@pytest.mark.parametrize("name", ["depth", "max_pages", "concurrency"])
def test_numbers_of_a_search_for_links_are_in_range(name: str) -> None:
    with pytest.raises(CrawlError, match=rf"{name} must be a whole number of [01] or more, not -1"):
        find_links("<a href='b.html'>b</a>", **{name: -1})


HUGE = 10**400


@pytest.mark.parametrize(
    ("made", "name"),
    [
        *[(SearchSettings, name) for name in ("k", "b", "rrf_k", "min_similarity", "min_bm25")],
        *[(ChunkSettings, name) for name in ("target_size", "target_overlap", "max_snap_dist")],
        *[(CrawlSettings, name) for name in ("max_seconds", "delay", "max_pages")],
        (FetchSettings, "timeout"),
        (Limits, "file_bytes"),
        (Selection, "mmr"),
    ],
)
def test_a_number_too_large_for_any_machine_is_refused(made: Callable[..., Any], name: str) -> None:
    for number in (HUGE, -HUGE):
        with pytest.raises(RagnarError, match=name):
            made(**{name: number})
    with pytest.raises(RetrievalError, match="weights must be two numbers"):
        SearchSettings(weights=(HUGE, 1))


def test_options_of_reading() -> None:
    assert ReadOptions(html_extract_selectors="main").html_extract_selectors == ("main",)  # type: ignore[arg-type]
    assert ReadOptions(html_zap_selectors=None).html_zap_selectors == ()  # type: ignore[arg-type]
    with pytest.raises(DocumentError, match="limits must be Limits"):
        ReadOptions(limits=None)  # type: ignore[arg-type]


def test_models_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbedError, match="OpenAI needs the name of a model, not 5"):
        ragnar_core.embed_openai(5)  # type: ignore[arg-type]
    with pytest.raises(EmbedError, match=r"A configuration is a dict as Embedder.config gives it"):
        ragnar_core.embedder_from_config(None)  # type: ignore[arg-type]
