"""Comparisons as files: a CSV table and a self-contained HTML page."""

from __future__ import annotations

import csv
import io
import re
from datetime import datetime
from html.parser import HTMLParser

import pytest

from ragnar_core.chunking import markdown_chunk
from ragnar_core.documents import MarkdownDocument
from ragnar_core.retrieval import SearchSettings, Selection, explain, search
from ragnar_core.retrieval.export import ResultList, chunks_of, results_csv, results_html

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)> "apple" </pre> & 🍎'


def lists_of(store, query: str, *settings: SearchSettings) -> list[ResultList]:
    return [
        ResultList(one.mode.upper(), store, "fruit", query, one, search(store, query, one))
        for one in settings
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


def test_csv_has_a_row_for_each_passage(fruit) -> None:
    lists = lists_of(
        fruit, "apple banana", SearchSettings(mode="vss", top_k=2), SearchSettings(mode="bm25", top_k=3)
    )
    rows = list(csv.DictReader(io.StringIO(results_csv(lists))))
    assert [(row["list"], row["rank"], row["metric"]) for row in rows] == [
        ("VSS", "1", "cosine_distance"),
        ("VSS", "2", "cosine_distance"),
        ("BM25", "1", "bm25"),
        ("BM25", "2", "bm25"),
        ("BM25", "3", "bm25"),
    ]
    assert rows[2]["text"] == lists[1].table["text"][0]
    assert float(rows[2]["score"]) == pytest.approx(lists[1].table["metric_value"][0])
    assert rows[0]["settings"] == '{"mode": "vss", "top_k": 2}'


def test_csv_never_starts_a_formula(make_store) -> None:
    store = make_store({"=cmd()": ["=1+1 apple", "-apple", "apple"]})
    rows = list(
        csv.DictReader(io.StringIO(results_csv(lists_of(store, "apple", SearchSettings(mode="bm25")))))
    )
    assert {row["origin"] for row in rows} == {"'=cmd()"}
    assert sorted(row["text"] for row in rows) == ["'-apple", "'=1+1 apple", "apple"]


def test_html_is_inert_and_shows_hostile_text_as_it_is(make_store) -> None:
    store = make_store({'<b onclick="x()">evil</b>.md': [HOSTILE]})
    html = results_html(lists_of(store, '"apple" <script>', SearchSettings(mode="bm25"), SearchSettings()))
    tags = parsed(html)
    names = {name for name, _ in tags.seen}
    assert not names & {"script", "img", "iframe", "link", "object", "a", "form"}
    assert not [
        key for _, attrs in tags.seen for key in attrs if key.startswith("on") or key in ("src", "href")
    ]
    assert HOSTILE in tags.text
    assert "http" not in re.sub(r"http-equiv", "", html)
    assert "default-src 'none'" in html


def test_html_explains_every_score(fruit) -> None:
    lists = lists_of(fruit, "apple fig", SearchSettings(top_k=4), SearchSettings(mode="bm25", top_k=4))
    html = results_html(lists, made=datetime(2024, 2, 3, 4, 5))
    assert "Comparison made with Ragnar Workbench, 2024-02-03 04:05." in html
    assert html.count("<summary>Why</summary>") == 8
    assert html.count("Fusion: VSS ") == 4
    for score in lists[1].table["metric_value"]:
        assert f"<td>{score:.4f}</td>" in html


def test_html_draws_a_line_for_each_shared_passage(fruit) -> None:
    same = SearchSettings(mode="bm25", top_k=5)
    html = results_html(lists_of(fruit, "apple", same, same))
    assert html.count("<path ") == 5
    assert "5 in both, rank overlap 1.00, Kendall τ 1.00" in html


def test_empty_lists_and_merged_passages_are_written(fruit, make_store) -> None:
    empty = results_html(lists_of(fruit, "zebra", SearchSettings(mode="bm25")))
    assert "Nothing was found." in empty
    assert results_html([]).startswith("<!doctype html>")
    assert results_csv([]).startswith("query,list,store,rank,score,metric")
    merged = SearchSettings(mode="bm25", top_k=2, selection=Selection(deoverlap=True))
    rows = list(csv.DictReader(io.StringIO(results_csv(lists_of(fruit, "apple", merged)))))
    assert len(rows) == 2
    assert all(re.fullmatch(r"\d+( \d+)*", row["chunk_id"]) for row in rows)


@pytest.mark.parametrize("mode", ["vss", "bm25", "hybrid", "union"])
def test_a_merged_passage_is_explained_by_its_best_chunk_and_says_so(make_store, mode: str) -> None:
    store = make_store({})
    words = "Banana split and apple here. " * 3 + "Fig and apple, fig and apple, apple. Hazel and apple. " * 2
    store.insert(markdown_chunk(MarkdownDocument(words, "d"), target_size=60, target_overlap=0.5))
    merge = Selection(deoverlap=True)
    settings = SearchSettings(mode=mode, top_k=4, selection=merge)
    (one,) = lists_of(store, "apple fig", settings)
    row = one.table.to_dict("records")[0]
    assert len(row["chunk_id"]) > 1
    best, *rest = chunks_of(row, settings)
    assert sorted([best, *rest]) == sorted(row["chunk_id"])
    assert best != row["chunk_id"][0]
    plain = search(store, "apple fig", SearchSettings(mode="vss" if mode == "union" else mode, top_k=20))
    ranked = [number for number in plain["chunk_id"] if number in row["chunk_id"]]
    assert best == ranked[0]
    text = parsed(results_html([one])).text
    others = ", ".join(map(str, sorted(rest)))
    assert f"The numbers are of chunk {best}, the best here; merged with it: {others}." in text
    why = explain(store, "apple fig", best, settings)
    assert f"BM25: {why.bm25.score:.4f}, rank {why.bm25.rank}" in text


def test_of_a_union_without_distances_the_best_chunk_is_that_of_the_words() -> None:
    row = {"chunk_id": [4, 5, 6], "cosine_distance": [float("nan")] * 3, "bm25": [0.5, 2.0, float("nan")]}
    assert chunks_of(row, SearchSettings(mode="union")) == [5, 4, 6]
    row["cosine_distance"] = [0.4, float("nan"), 0.3]
    assert chunks_of(row, SearchSettings(mode="union")) == [6, 4, 5]


def test_html_of_words_alone_says_why_vss_is_missing(without_model) -> None:
    html = results_html(lists_of(without_model, "apple", SearchSettings(mode="bm25")))
    assert html.count("VSS: not explained.") == 2
    assert html.count("<p>BM25: ") == 2
