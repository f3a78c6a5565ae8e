from __future__ import annotations

import base64
import itertools
import re
import threading
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.shared import chunking_try, workspace
from pages.shared.chunking_documents import TunedDocument, packed
from pages.shared.chunking_state import Sides, fitted, sides_as_url, sides_from_url
from pages.shared.chunking_try import LiveIndex, VectorCache, embed_missing, results, vss
from pages.shared.components.chunk_text import Side
from pages.shared.jobs import Job
from ragnar_core import (
    ChunkSettings,
    FunctionEmbedder,
    MarkdownDocument,
    Shelf,
    Store,
    markdown_chunk,
    retrieve_bm25,
)
from ragnar_core.chunking.report import EmbeddingCost
from ragnar_core.store import Analyzer

APP = Path(__file__).resolve().parents[2] / "app.py"
TEXT = (
    "# Harbour\n\nThe harbour opens at six. Boats wait outside.\n\n## Fees\n\nA berth costs twelve a night.\n"
    * 8
)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page with one document on the shelf, as app.py would run it."""
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    st.cache_resource.clear()
    Shelf(tmp_path / ".documents").add(MarkdownDocument(TEXT, origin="harbour.md"))

    def start(settings: ChunkSettings | None = None, **query: str) -> AppTest:
        test = AppTest.from_file(str(APP), default_timeout=300).run()
        if settings:
            test.session_state["chunk_settings"] = settings
        test.switch_page("pages/chunking.py")
        for name, value in query.items():
            test.query_params[name] = value
        return test.run()

    yield start
    st.cache_resource.clear()


def python_line(test: AppTest) -> str:
    return next(code.value for code in test.code if "markdown_chunk" in code.value)


def test_size_and_overlap_come_from_the_url(app) -> None:
    test = app(size="700", overlap="25")
    assert not test.exception
    assert "target_size=700, target_overlap=0.25" in python_line(test)
    assert "others" not in python_line(test)


def test_two_settings_come_from_the_url(app) -> None:
    test = app(size="700", overlap="25", b_size="300", b_strategy="anchored")
    lines = python_line(test).splitlines()
    assert any(line.startswith("chunks = ") and "target_size=700" in line for line in lines)
    assert any(
        line.startswith("others = ") and "target_size=300" in line and "anchored" in line for line in lines
    )


def test_a_size_too_small_to_draw_is_raised(app) -> None:
    test = app(size="1", overlap="99.99")
    assert not test.exception
    (size,) = re.findall(r"target_size=(\d+)", python_line(test))
    assert int(size) >= 200 * len(TEXT) // 1000


def test_nonsense_in_the_url_leaves_the_defaults(app) -> None:
    test = app(size="huge", overlap="250", strategy="random")
    assert not test.exception
    assert "markdown_chunk(document, table_context=True, keep_whole=True)" in python_line(test)


def test_use_for_build_hands_the_settings_over(app) -> None:
    test = app(size="450", overlap="10", levels="1-2")
    assert "chunk_settings" not in test.session_state
    test.button(key="use_for_build").click().run()
    expected = ChunkSettings.workbench(target_size=450, target_overlap=0.1, segment_by_heading_levels=(1, 2))
    assert test.session_state["chunk_settings"] == expected
    assert test.button(key="use_for_build").disabled


def test_the_page_starts_with_what_build_uses(app) -> None:
    test = app(ChunkSettings(target_size=333))
    assert "markdown_chunk(document, target_size=333)" in python_line(test)
    assert test.button(key="use_for_build").disabled


def test_tokens_as_unit_say_how_they_are_counted(app) -> None:
    test = app(size="100", unit="tokens")
    assert not test.exception
    assert "embedder = embed_default()" in python_line(test)
    assert "count_tokens=embedder.count_tokens" in python_line(test)


def test_all_documents_are_counted_on_demand(app) -> None:
    test = app(size="200", overlap="0")
    assert not test.dataframe
    test.toggle(key="chunk_all").set_value(True).run()
    table = test.dataframe[0].value
    row = table[table["Document"] == "harbour.md"].iloc[0]
    expected = markdown_chunk(TEXT, **ChunkSettings.workbench(target_size=200, target_overlap=0).to_dict())
    assert row["Chunks"] == len(expected)
    assert row["Characters"] == len(expected.document)


SETTINGS = [
    ChunkSettings.workbench(),
    ChunkSettings(),
    ChunkSettings.workbench(target_size=None, max_snap_dist=0.0),
    ChunkSettings.workbench(
        target_size=123,
        target_overlap=0.125,
        max_snap_dist=77.0,
        segment_by_heading_levels=(2, 3),
        unit="tokens",
    ),
    ChunkSettings(context=False, strategy="anchored"),
]


NONSENSE = {
    "size": ["-5", "0", "abc", "2.5", "nan", ""],
    "overlap": ["-5", "100", "250", "abc", "nan", "inf", ""],
    "snap": ["abc", "nan", ""],
    "levels": ["a-b", "1.5"],
    "strategy": ["cleverly", ""],
    "unit": ["pages", ""],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in NONSENSE.items() for text in texts]
)
def test_what_is_no_setting_in_the_url_is_the_default(name: str, text: str) -> None:
    assert sides_from_url({name: text}) == Sides(ChunkSettings.workbench())
    b = Sides(ChunkSettings.workbench(target_size=500), ChunkSettings.workbench(target_size=900))
    assert (
        sides_from_url({"size": "500", "b_size": "900", **({f"b_{name}": text} if name != "size" else {})})
        == b
    )


@pytest.mark.parametrize(
    "url",
    [
        {"size": "-5", "overlap": "abc"},
        {"size": "9" * 400},
        {"size": "9" * 25},
        {"snap": "1e400"},
        {"snap": "-1", "levels": "0-7"},
    ],
)
def test_the_page_takes_any_url(app, url: dict[str, str]) -> None:
    test = app(**url)
    assert not test.exception
    assert not test.error
    assert "markdown_chunk(document" in python_line(test)


@pytest.mark.parametrize("a", SETTINGS)
@pytest.mark.parametrize("b", [None, *SETTINGS])
def test_sides_survive_the_url(a: ChunkSettings, b: ChunkSettings | None) -> None:
    assert sides_from_url(sides_as_url(Sides(a, b))) == Sides(a, b)


def test_the_url_names_only_what_is_not_usual() -> None:
    assert sides_as_url(Sides(ChunkSettings.workbench())) == {"size": "1600", "overlap": "50"}
    changed = ChunkSettings.workbench(max_snap_dist=40, keep_whole=False)
    assert sides_as_url(Sides(changed)) == {"size": "1600", "overlap": "50", "snap": "40", "whole": "0"}


def test_sides_survive_the_browser() -> None:
    sides = Sides(SETTINGS[0], SETTINGS[3], "b", 7)
    assert Sides.from_dict(sides.to_dict()) == sides
    assert sides.edited == SETTINGS[3]


def test_sizes_grow_where_a_document_would_fall_into_too_many_chunks() -> None:
    sides = Sides(ChunkSettings.workbench(target_size=5), ChunkSettings.workbench(target_size=50))
    grown, said = fitted(sides, 1_000_000)
    assert (grown.a.target_size, grown.b.target_size) == (40, 50)
    assert "raised to 40 characters" in said
    assert fitted(grown, 1_000_000) == (grown, None)
    assert fitted(Sides(ChunkSettings(target_size=None)), 10**9)[1] is None


def test_packed_positions() -> None:
    assert base64.b64decode(packed([0, 1, 255, 256, 766])) == bytes([0, 1, 254, 1, 255, 255, 0])
    assert packed([]) == ""


def test_a_side_on_its_way_to_the_browser() -> None:
    tuned = TunedDocument(MarkdownDocument("abcdefghij" * 4))
    settings = ChunkSettings(target_size=20, target_overlap=0, max_snap_dist=0)
    side = Side(tuned.report(settings, None), EmbeddingCost("x", None, 10, 1.0)).to_dict()
    assert (side["starts"], side["ends"], side["at"]) == (packed([0, 20]), packed([20, 40]), packed([20]))
    assert base64.b64decode(side["kinds"]) == bytes([8])
    assert (side["contexts"], side["context"], side["broken"]) == ([""], [0, 0], [])
    assert side["figures"]["chunks"] == 2
    assert side["figures"]["duplication"] == 1.0


def test_positions_for_the_browser_mark_wide_and_joined_characters() -> None:
    sent = TunedDocument(MarkdownDocument("a😀b 👨‍👩‍👧 e\u0301")).for_browser
    assert sent["length"] == 12
    assert sent["astral"] == packed([1, 4, 6, 8])
    assert sent["joined"] == packed([5, 6, 7, 8, 11])
    assert sent["suspicious"] == packed([5, 6, 7, 8, 11])


def test_live_bm25_equals_the_store(tmp_path: Path) -> None:
    chunks = markdown_chunk(MarkdownDocument(TEXT, origin="harbour.md"), target_size=120, target_overlap=0.25)
    index = LiveIndex(chunks, Analyzer())
    found = index.bm25("when does the harbour open, and what is a berth?", 5)

    embed = FunctionEmbedder(lambda texts: np.ones((len(texts), 2), np.float32), dim=2, name="ones")
    with Store.create(tmp_path / "s.duckdb", embed) as store:
        store.insert(chunks)
        expected = retrieve_bm25(store, "when does the harbour open, and what is a berth?", top_k=5)
    assert chunks.starts[found.rows].tolist() == expected["start"].tolist()
    assert found.values.tolist() == pytest.approx(expected["metric_value"].tolist(), abs=1e-12)


def test_results_carry_the_passage_and_its_matches() -> None:
    chunks = markdown_chunk("Boats 😀 wait.\n\nThe berths cost twelve.\n", target_size=16, target_overlap=0)
    index = LiveIndex(chunks, Analyzer())
    drawn = results("a", "BM25", "", index, index.bm25("berth", 3), "berth", "nothing")
    (passage,) = drawn.passages
    assert chunks.document.text[passage.at :].startswith("The berths")
    assert [passage.text[a:b] for a, b in passage.marks] == ["berths"]
    nothing = results("a", "BM25", "", index, index.bm25("zebra", 3), "zebra", "nothing")
    assert (nothing.passages, nothing.empty) == ([], "nothing")


def test_vector_cache_knows_what_is_missing() -> None:
    cache = VectorCache()
    assert cache.missing(["a", "b", "a", " "]) == ["a", "b"]
    cache.put(["b"], np.array([[1, 2]], np.float32))
    assert cache.missing(["a", "b"]) == ["a"]
    rows, vectors = cache.known(["a", "b", "b"])
    assert rows.tolist() == [1, 2]
    assert vectors.tolist() == [[1, 2], [1, 2]]


@pytest.fixture
def toy_model(monkeypatch: pytest.MonkeyPatch):
    """In place of the built-in model: one number a text, its length; keeps what it was given."""
    seen: list[list[str]] = []

    def embed(texts):
        seen.append(list(texts))
        return np.array([[len(text), 1] for text in texts], np.float32)

    model = FunctionEmbedder(embed, dim=2, name="toy")
    monkeypatch.setattr(chunking_try, "embed_default", lambda: model)
    chunking_try.vector_cache.clear()
    chunking_try.query_vector.clear()
    yield seen
    chunking_try.vector_cache.clear()
    chunking_try.query_vector.clear()


def indexes() -> list[LiveIndex]:
    """One document in two ways: chunks of one word, chunks of two."""
    text = "apple\n\nberth\n\ncrane\n\ndocks\n"
    return [
        LiveIndex(markdown_chunk(text, target_size=size, target_overlap=0), Analyzer()) for size in (7, 14)
    ]


def test_likely_passages_of_both_sides_are_embedded_first(toy_model) -> None:
    job = Job(1, "try", "t", "k")
    assert embed_missing(job, indexes(), "crane") == 6
    assert [text.split() for text in itertools.chain(*toy_model)][:3] == [
        ["crane"],
        ["crane", "docks"],
        ["apple"],
    ]
    assert (job.done, job.total) == (6, 6)
    assert embed_missing(job, indexes(), "crane") == 0


def test_a_cancelled_job_embeds_nothing_more(toy_model) -> None:
    job = Job(1, "try", "t", "k")
    job.cancel.set()
    assert embed_missing(job, indexes(), "crane") == 0
    assert toy_model == []


def test_vss_ranks_what_has_a_vector_by_now(toy_model) -> None:
    index = indexes()[0]
    assert (vss(index, "a", 3).known, vss(index, "a", 3).total) == (0, 4)
    chunking_try.vector_cache().put(index.texts[1:3], np.array([[1, 0], [0, 1]], np.float32))
    found = vss(index, "a", 3)
    assert (found.known, found.total) == (2, 4)
    assert found.ranking.rows.tolist() == [1, 2]


def test_vector_cache_is_safe_between_threads() -> None:
    cache, wrong = VectorCache(), []

    def work(name: str) -> None:
        for i in range(200):
            cache.put([f"{name}{i}"], np.full((1, 2), i, np.float32))
            _, vectors = cache.known([f"{name}{i}"])
            if vectors.tolist() != [[i, i]]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.missing(["a0", "b199", "c7"]) == []


def test_a_document_that_went_away_leaves_the_page_whole(app) -> None:
    test = app()
    assert test.selectbox(key="document").value == "harbour.md"
    test.selectbox(key="document").set_value("handbook/03-chunking.md").run()
    assert "handbook/03-chunking.md" in python_line(test)
    test.selectbox(key="document").set_value("harbour.md").run()
    workspace.shelf().remove("harbour.md")
    test.run()
    assert not test.exception
    assert "handbook/" in python_line(test)
