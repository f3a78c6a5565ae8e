"""The Map page without a browser: what reaches the canvas, and what it says of stores that are hard to draw."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import map_layouts
from pages.shared.components.map_points import packed
from pages.shared.map_colours import attribute, by_group, by_scale
from ragnar_core import Chunks, MarkdownDocument, RetrievalError, Store, embed_static
from ragnar_core.retrieval.layout import Layout

PAGE = Path(__file__).resolve().parents[2] / "pages" / "map.py"
EQUAL = np.tile(np.array([[0.6, 0.8, 0]], np.float32), (12, 1))


def unpacked(message: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    size = int.from_bytes(message[:4], "little")
    header = json.loads(message[4 : 4 + size])
    xy = np.frombuffer(message, "<f4", header["n"] * 2, 4 + size).reshape(-1, 2)
    return header, xy, np.frombuffer(message, np.uint8, header["n"], 4 + size + 8 * header["n"])


@pytest.fixture
def open_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    monkeypatch.setattr(
        map_layouts, "umap_layout", lambda unit, near, cancel: Layout("umap", -unit[:, :2].copy())
    )

    def run(
        vectors: np.ndarray | None, texts: list[str] | None = None, embed: Any = None, **url: str
    ) -> AppTest:
        n = len(texts) if texts else 0 if vectors is None else len(vectors)
        size = None if vectors is None else vectors.shape[1]
        with Store.create(
            tmp_path / "points.duckdb",
            embed,
            embedding_size=size,
            name="points",
            extra_cols={"kind": "VARCHAR"},
        ) as store:
            if n:
                zero = [] if vectors is None else (np.flatnonzero(~vectors.any(axis=1)) + 1).tolist()
                frame = pd.DataFrame({"text": texts or [f"chunk number {i}" for i in range(n)]})
                frame = frame.assign(
                    origin=[f"d{3 * i // n}.md" for i in range(n)],
                    kind=["even", "odd"] * (n // 2) + ["even"] * (n % 2),
                )
                store.insert(
                    frame,
                    vectors=None if vectors is None else np.where(vectors.any(axis=1)[:, None], vectors, 1),
                )
        # Vectors that this library would refuse, but another program can write.
        with duckdb.connect(str(tmp_path / "points.duckdb")) as file:
            for chunk_id in zero if n else []:
                file.execute("UPDATE embeddings SET embedding = NULL WHERE chunk_id = ?", [chunk_id])
        app = AppTest.from_file(str(PAGE), default_timeout=300)
        app.session_state["shell"] = True
        app.session_state["store"] = "points"
        for name, value in url.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    return run


def canvas(app: AppTest) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    proto = next(e.proto for e in app.get("bidi_component") if e.proto.component_name == "ragnar_map_points")
    return unpacked(proto.bytes)


def given(app: AppTest, component: str) -> dict[str, Any]:
    proto = next(e.proto for e in app.get("bidi_component") if e.proto.component_name == component)
    return json.loads(proto.json)


def said(app: AppTest) -> str:
    parts = [*app.caption, *app.info, *app.warning, *app.error]
    return " ".join(part.value for part in parts).replace("\\", "")


@pytest.mark.parametrize("name", ["list", "colour", "layout"])
def test_what_is_no_choice_in_the_address_is_the_default(open_map, name: str) -> None:
    app = open_map(np.eye(4, dtype=np.float32)[:3], **{name: "nonsense"})
    assert not app.error
    assert app.session_state["list"] == "Hits"
    assert app.session_state["colour"] == "By document"
    assert app.session_state["layout"] == "PCA"


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (1, "1 chunk. One point: it stands in the middle."),
        (2, "2 chunks. 2 points: their distances are exact, there is nothing to leave out."),
        (3, "3 chunks. 3 points: their distances are exact, there is nothing to leave out."),
    ],
)
def test_a_few_points(open_map, n: int, sentence: str) -> None:
    app = open_map(np.eye(4, dtype=np.float32)[:n])
    header, xy, _ = canvas(app)
    assert (header["n"], xy.shape) == (n, (n, 2))
    assert np.isfinite(xy).all()
    assert sentence in said(app)


def test_umap_of_a_few_points_says_why_it_is_pca(open_map) -> None:
    app = open_map(np.eye(4, dtype=np.float32), layout="UMAP")
    assert "UMAP needs 10 chunks whose vectors differ; this is PCA." in said(app)
    assert canvas(app)[0]["layout"] == "pca"


def test_umap_comes_when_its_job_is_done_and_is_kept(open_map, tmp_path: Path) -> None:
    app = open_map(np.eye(12, 14, dtype=np.float32), layout="UMAP")
    end = time.monotonic() + 120
    while not list(tmp_path.glob(".layouts/points-umap-*.npz")) and time.monotonic() < end:
        time.sleep(0.02)
    app.run()
    header, xy, _ = canvas(app)
    assert header["layout"] == "umap"
    assert xy[:2].tolist() == [[-1, 0], [0, -1]]
    assert "UMAP: who is near whom counts" in said(app)


def test_a_umap_that_failed_says_why_and_leaves_pca(open_map, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(unit, near, cancel):
        raise RetrievalError("UMAP could not run (numba is broken); use the PCA layout")

    monkeypatch.setattr(map_layouts, "umap_layout", fail)
    app = open_map(np.eye(13, 14, dtype=np.float32), layout="UMAP")
    end = time.monotonic() + 120
    while not app.warning and time.monotonic() < end:
        time.sleep(0.05)
        app.run()
    assert (
        app.warning[0].value.replace("\\", "") == "UMAP could not run (numba is broken); use the PCA layout"
    )
    assert canvas(app)[0]["layout"] == "pca"
    assert app.button(key="umap_again").label == "Try again"


def test_equal_vectors(open_map) -> None:
    app = open_map(EQUAL)
    header, xy, _ = canvas(app)
    assert header["layout"] == "spiral"
    assert len(np.unique(xy, axis=0)) == 12
    assert "All vectors are equal" in said(app)


def test_bad_vectors_are_left_out_and_said(open_map) -> None:
    vectors = np.vstack((np.eye(5, 6), np.zeros((2, 6)))).astype(np.float32)
    app = open_map(vectors)
    assert canvas(app)[0]["n"] == 5
    assert "Left out: 2 without a vector or with one of zeros." in said(app)


def test_nothing_to_place(open_map) -> None:
    assert "was made for BM25 only" in said(open_map(None, ["words"]))


def test_only_zero_vectors(open_map) -> None:
    app = open_map(np.zeros((3, 4), np.float32))
    assert "No chunk of this store has a vector that can be placed: Left out: 3" in said(app)


def test_an_empty_store_leads_to_build(open_map, monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[str] = []
    monkeypatch.setattr("streamlit.page_link", lambda page, **options: links.append(page))
    app = open_map(np.zeros((0, 4), np.float32))
    assert links == ["pages/build.py"]
    assert app.info[0].value == "This store holds no chunks yet: there is nothing to map."


TEXTS = [
    "apples and pears",
    "a pear tree",
    "the rocket engine",
    "rocket fuel burns",
    "an apple a day",
    "engines and fuel",
] * 2


def test_the_query_stands_with_its_hits(open_map) -> None:
    app = open_map(None, TEXTS, embed_static(), star="rocket", colour="By score")
    header, _, code = canvas(app)
    overlay = given(app, "ragnar_map_overlay")
    assert len(overlay["hits"]) == 10
    assert {TEXTS[row] for row in overlay["hits"][:4]} == {"the rocket engine", "rocket fuel burns"}
    assert np.isfinite(overlay["star"]).all()
    assert header["title"] == "Similarity to the query"
    assert code[overlay["hits"][0]] == code.max() == 255
    hits = given(app, "ragnar_passage_list")
    assert [row["origin"] for row in hits["rows"]] == [f"d{row // 4}.md" for row in overlay["hits"]]


def test_colours_by_document_and_attribute(open_map) -> None:
    header, _, code = canvas(open_map(None, TEXTS, embed_static()))
    assert (header["title"], header["names"], header["counts"]) == (
        "Document",
        ["d0.md", "d1.md", "d2.md"],
        [4, 4, 4],
    )
    assert code.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_colours_by_attribute(open_map) -> None:
    header, _, _ = canvas(open_map(None, TEXTS, embed_static(), colour="By kind"))
    assert (header["title"], header["names"]) == ("kind", ["even", "odd"])


def test_clusters_are_named(open_map) -> None:
    header, _, _ = canvas(open_map(None, TEXTS, embed_static(), colour="By cluster"))
    assert header["title"] == "Cluster"
    assert sum(header["counts"]) == 12
    assert all(name.startswith(f"{i} · ") for i, name in enumerate(header["names"], 1))
    words = {word for name in header["names"] for word in name.split(" · ")[1].split(", ")}
    assert "rocket" in words
    assert words <= set(" ".join(TEXTS).split())


def test_near_duplicates_and_outliers_are_listed(open_map) -> None:
    app = open_map(None, TEXTS, embed_static(), list="Duplicates")
    rows = given(app, "ragnar_passage_list")
    assert rows["summary"] == "6 groups, 12 chunks"
    assert rows["rows"][0]["group"] == "1 · 2 chunks, similarity 1.000"
    assert rows["rows"][0]["text"] == rows["rows"][1]["text"]
    app.segmented_control(key="list").set_value("Outliers").run()
    rows = given(app, "ragnar_passage_list")
    assert len(rows["rows"]) == 12
    assert [float(row["score"]) for row in rows["rows"]] == sorted(
        float(row["score"]) for row in rows["rows"]
    )


def test_chunks_that_overlap_are_no_duplicates(tmp_path: Path, open_map) -> None:
    app = open_map(np.eye(2, 4, dtype=np.float32), list="Duplicates")
    document = MarkdownDocument("A walrus sleeps on ice.", "long.md")
    overlapping = Chunks(document, None, np.array([0, 8]), np.array([16, 23]), ["", ""])
    apart = Chunks(replace(document, origin="apart.md"), None, np.array([0, 9]), np.array([8, 23]), ["", ""])
    with Store.connect(tmp_path / "points.duckdb", read_only=False) as store:
        store.insert(overlapping, vectors=np.tile(np.array([[0, 0, 1, 0]], np.float32), (2, 1)))
        store.insert(apart, vectors=np.tile(np.array([[0, 0, 0, 1]], np.float32), (2, 1)))
    app.run()
    rows = given(app, "ragnar_passage_list")["rows"]
    assert canvas(app)[0]["n"] == 6
    assert [(row["origin"], row["text"]) for row in rows] == [
        ("apart.md", "A walrus"),
        ("apart.md", "sleeps on ice."),
    ]


def test_a_large_map_sends_a_passage_only_when_it_is_pointed_at(open_map) -> None:
    rng = np.random.default_rng(0)
    app = open_map(rng.normal(size=(3001, 4)).astype(np.float32))
    assert canvas(app)[0]["texts"] == {}
    app.session_state["map_hover"] = 2000
    app.run()
    assert given(app, "ragnar_map_overlay")["texts"] == {"2000": ["d1.md · chunk 2001", "chunk number 2000"]}


def test_a_query_without_a_known_model_says_so(open_map) -> None:
    app = open_map(np.eye(4, dtype=np.float32), star="rocket")
    assert "which model built it" in said(app)
    assert canvas(app)[0]["n"] == 4


def test_texts_of_documents_reach_the_browser_as_data_only(open_map) -> None:
    app = open_map(np.eye(4, dtype=np.float32), ["<img src=x onerror=alert(1)>", "$x$", ":red[y]", "plain"])
    header, _, _ = canvas(app)
    assert header["texts"]["0"] == ["d0.md · chunk 1", "<img src=x onerror=alert(1)>"]


def test_a_message_keeps_typed_arrays() -> None:
    xy = np.array([[1.5, -2], [3, 4]], np.float32)
    header, back, code = unpacked(packed({"title": "é"}, xy, np.array([7, 255], np.uint8)))
    assert (header, back.tolist(), code.tolist()) == ({"title": "é", "n": 2}, xy.tolist(), [7, 255])


def test_a_large_map_is_a_small_message() -> None:
    message = packed({}, np.zeros((100_000, 2), np.float32), np.zeros(100_000, np.uint8))
    assert len(message) < 910_000


def test_groups_beyond_the_palette_are_one() -> None:
    values = [name for i, name in enumerate("abcdefghijklmno") for _ in range(20 - i)] + [None]
    found = by_group("Document", values)
    assert found.names == [*"abcdefghijk", "5 others"]
    assert found.counts[-1] == 9 + 8 + 7 + 6 + 1
    assert found.code[-1] == 11


def test_scales_bear_missing_equal_and_infinite_values() -> None:
    found = by_scale("n", [1.0, None, 3.0, np.inf])
    assert found.code.tolist() == [0, 0, 255, 0]
    assert by_scale("n", [2, 2, 2]).code.tolist() == [128, 128, 128]
    assert by_scale("n", [None, None]).low == "no values"


def test_an_attribute_is_a_scale_only_with_many_numbers() -> None:
    assert attribute("year", pd.Series(range(100))).names == []
    assert attribute("year", pd.Series([2020, 2021] * 20)).names == ["2020", "2021"]
    assert attribute("flag", pd.Series([True, False, None], dtype="boolean")).names == [
        "True",
        "False",
        "no value",
    ]
