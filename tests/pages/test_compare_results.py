"""What the Compare page shows of a search: scores with their scale, moves, explanations, reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from pages.shared import results
from pages.shared.compare_empty import why_empty
from pages.shared.compare_queries import SavedQueries, remember
from pages.shared.compare_settings import note
from pages.shared.compare_why import opened_card
from pages.shared.components.rank_compare import Badge
from ragnar_core import FunctionEmbedder, MarkdownDocument, RagnarError, Store, markdown_chunk
from ragnar_core.retrieval import SearchSettings, Selection

WORDS = ("purr", "bark", "swim", "sing")
TEXTS = {
    "cats.md": "Cats purr. They purr and purr all day.",
    "dogs.md": "Dogs bark at cats that purr.",
    "fish.md": "Fish swim, and nobody hears them.",
    "birds.md": "Birds sing. Some birds swim as well.",
}


def count_words(texts: list[str]) -> np.ndarray:
    return np.array(
        [[0.1 + len(re.findall(word, text.lower())) for word in WORDS] for text in texts], np.float32
    )


@pytest.fixture(scope="module")
def animals() -> Iterator[Store]:
    """Chunks 1 to 4: cats, dogs, fish, birds; only the dogs are of 2021."""
    with Store.create(
        ":memory:", FunctionEmbedder(count_words, 4, "counts"), extra_cols={"year": int}
    ) as store:
        for origin, text in TEXTS.items():
            year = 2021 if origin == "dogs.md" else 2020
            store.insert(pd.DataFrame({"origin": [origin], "text": [text], "year": [year]}))
        yield store


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What `show` hands to the component."""
    calls: list[dict] = []
    monkeypatch.setattr(
        results, "rank_compare", lambda boards, **rest: calls.append({"boards": boards, **rest})
    )
    monkeypatch.setattr(results, "asked", lambda *_: None)
    return calls


def columns_of(store: Store, query: str, *modes: str, top_k: int = 3) -> list[results.Column]:
    return results.search(store, query, methods=modes, top_k=top_k)


def test_both_methods_with_scores_moves_and_figures(animals: Store, drawn: list[dict]) -> None:
    columns = columns_of(animals, "purr swim", "vss", "bm25", top_k=2)
    results.show(columns, query="purr swim", key="k", store="s", figures=True)
    vss, bm25 = drawn[0]["boards"]
    assert [(hit.rank, hit.origin, hit.score) for hit in vss.hits] == [
        ("1", "fish.md", "0.230"),
        ("2", "cats.md", "0.270"),
    ]
    assert [(hit.rank, hit.origin, hit.score) for hit in bm25.hits] == [
        ("1", "cats.md", "0.459"),
        ("2", "dogs.md", "0.334"),
    ]
    assert [hit.badges for hit in vss.hits] == [
        [Badge("only", "only here", "not in BM25")],
        [Badge("down", "▼ 1", "rank 1 in BM25")],
    ]
    assert [hit.badges[0].text for hit in bm25.hits] == ["▲ 1", "only here"]
    assert drawn[0]["links"] == [[[1, 1]]]
    assert drawn[0]["split"] == (1, 1, 1)
    assert [(figure.label, figure.value) for figure in drawn[0]["figures"][:3]] == [
        ("In both", "1 of 3"),
        ("Rank overlap", "0.45"),
        ("Kendall τ", "–"),
    ]


def test_hybrid_between_the_two_says_where_a_passage_stands_in_each(
    animals: Store, drawn: list[dict]
) -> None:
    results.show(columns_of(animals, "bark", "vss", "hybrid", "bm25"), query="bark", key="k", store="s")
    _, hybrid, bm25 = drawn[0]["boards"]
    assert [badge.text for badge in hybrid.hits[0].badges] == ["VSS =", "BM25 ="]
    assert [badge.text for badge in hybrid.hits[1].badges] == ["VSS =", "not in BM25"]
    assert bm25.hits[0].badges == [Badge("same", "Hybrid =", "also rank 1 in Hybrid")]
    assert len(drawn[0]["links"]) == 2


def test_scales_and_directions_are_named() -> None:
    assert results.metric(SearchSettings(mode="vss")) == "cosine distance, 0 to 2, lower is nearer"
    assert results.metric(SearchSettings(mode="vss", method="negative_inner_product")) == (
        "negative inner product, lower is nearer"
    )
    assert results.metric(SearchSettings(mode="bm25")) == "BM25 score, from 0, higher is better"
    assert results.metric(SearchSettings()) == "fused ranks, up to 0.0328, higher is better"
    assert (
        results.metric(SearchSettings(weights=(2, 1), rrf_k=9))
        == "fused ranks, up to 0.3000, higher is better"
    )


@pytest.mark.parametrize(
    ("settings", "values", "shares"),
    [
        (SearchSettings(mode="vss"), [0.2, 0.4, 0.8], [1.0, 0.5, 0.25]),
        (SearchSettings(mode="vss"), [0.0, 0.5], [1.0, 0.0]),
        (SearchSettings(mode="vss", method="negative_inner_product"), [-4.0, -1.0, 2.0], [1.0, 0.25, 0.0]),
        (SearchSettings(mode="bm25"), [8.0, 2.0], [1.0, 0.25]),
        (SearchSettings(mode="union"), [0.2], [None]),
        (SearchSettings(mode="bm25"), [], []),
    ],
)
def test_bars_are_shares_of_the_best(
    settings: SearchSettings, values: list[float], shares: list[float]
) -> None:
    assert results._shares(values, settings) == shares


def test_explanation_of_a_card_adds_up(animals: Store) -> None:
    columns = columns_of(animals, "purr swim", "bm25", "vss")
    card = opened_card(columns, "0:1", with_sentences=False)
    assert card is not None
    assert card.text == TEXTS["cats.md"]
    assert [card.text[start:end] for start, end in card.marks] == ["purr", "purr", "purr"]
    assert [part.title.split(":")[0] for part in card.parts] == ["BM25", "VSS", "In the other lists"]
    words = card.parts[0]
    assert [row[:3] for row in words.rows] == [["purr", "3", "2"], ["swim", "0", "2"]]
    adds = sum(float(row[-1]) for row in words.rows)
    assert float(words.total[-1]) == pytest.approx(adds, abs=1e-4)
    assert float(words.total[-1]) == pytest.approx(columns[0].table["metric_value"][0], abs=1e-4)
    assert words.bars == [1.0, 0.0]
    assert card.parts[2].lines == ["VSS: it is result 2."]


def test_explanation_of_fusion_is_arithmetic(animals: Store) -> None:
    card = opened_card(columns_of(animals, "bark", "hybrid"), "0:2", with_sentences=False)
    assert card is not None
    assert card.parts[0].lines[0] == "VSS 1 / (60 + 1) + BM25 1 / (60 + 1) = 0.03279"


def test_nearest_sentences_are_utf16_ranges() -> None:
    text = "The 🐈 and the 🐈. Cats purr 🐈. Fish swim."
    with Store.create(":memory:", FunctionEmbedder(count_words, 4, "counts")) as store:
        store.insert(pd.DataFrame({"origin": ["a"], "text": [text]}))
        card = opened_card(columns_of(store, "purr", "vss"), "0:1", with_sentences=True)
    assert card is not None
    assert card.sentences is not None
    start, end, similarity = card.sentences[0]
    encoded = text.encode("utf-16-le")
    assert encoded[int(start) * 2 : int(end) * 2].decode("utf-16-le") == "Cats purr 🐈."
    assert similarity == pytest.approx(1.0, abs=1e-3)
    assert len(card.sentences) == 3


def test_a_card_that_is_gone_opens_nothing(animals: Store) -> None:
    columns = columns_of(animals, "purr", "bm25")
    assert opened_card(columns, "3:1", with_sentences=False) is None
    assert opened_card(columns, "nonsense", with_sentences=False) is None
    gone = opened_card(columns, "0:999", with_sentences=False)
    assert gone is not None
    assert gone.parts[0].title == "This passage cannot be explained"


def test_a_missing_passage_stands_below_the_list_with_its_rank_and_the_reason(
    animals: Store, drawn: list[dict]
) -> None:
    columns = columns_of(animals, "purr", "vss", "bm25", top_k=1)
    lost = [results.missing(one, origin="dogs.md") for one in columns]
    results.show(columns, query="purr", key="k", store="s", lost=lost)
    vss, bm25 = (board.lost for board in drawn[0]["boards"])
    assert (vss.rank, vss.reason) == ("2", "Not here: VSS rank 2; the list ends at 1.")
    assert (bm25.rank, bm25.reason) == ("2", "Not here: BM25 rank 2; the list ends at 1.")


def test_a_passage_that_is_there_is_not_drawn_twice(animals: Store, drawn: list[dict]) -> None:
    columns = columns_of(animals, "purr", "bm25")
    results.show(
        columns, query="purr", key="k", store="s", lost=[results.missing(columns[0], origin="cats.md")]
    )
    assert drawn[0]["boards"][0].lost is None


@pytest.mark.parametrize(
    ("query", "settings", "says"),
    [
        ("zebra", {}, "No chunk contains “zebra”. BM25 matches words, not meanings"),
        ("?! …", {}, "This query has only marks or stop words, which are not indexed."),
        ("purr sing", {"conjunctive": True}, "Each word occurs, but no chunk contains all of them."),
        ("purr zebra", {"conjunctive": True}, "All words must occur, and no chunk contains “zebra”."),
        (
            "purr",
            {"filter": "year == 1999"},
            "The words occur, but not in a chunk that passes the filter: year is 1999.",
        ),
        ("purr", {"min_bm25": 50}, "Chunks match, but none scores 50 or more."),
    ],
)
def test_empty_bm25_lists_say_why(animals: Store, query: str, settings: dict, says: str) -> None:
    one = results.column(animals, query, SearchSettings(mode="bm25", **settings))
    assert one.passages == []
    assert one.empty.startswith(says)


def test_empty_vss_lists_say_why(animals: Store) -> None:
    filtered = results.column(animals, "purr", SearchSettings(mode="vss", filter="year == 1999"))
    assert filtered.empty == "No chunk passes the filter: year is 1999. Loosen it, or clear it."
    strict = results.column(animals, "zebra", SearchSettings(mode="vss", min_similarity=0.99))
    assert strict.empty == "No chunk reaches the similarity of 0.99. Lower it in the settings."


def test_an_empty_store_says_so() -> None:
    with Store.create(":memory:", FunctionEmbedder(count_words, 4, "counts")) as store:
        assert why_empty(store, "purr", SearchSettings(mode="vss")).startswith(
            "The store holds no chunks yet."
        )


def test_without_a_model_bm25_still_answers_and_explains(tmp_path, drawn: list[dict]) -> None:
    path = tmp_path / "orphan.duckdb"
    with Store.create(path, FunctionEmbedder(count_words, 4, "counts")) as store:
        store.insert(pd.DataFrame({"origin": ["cats.md"], "text": [TEXTS["cats.md"]]}))
    with Store.connect(path) as store:
        columns = columns_of(store, "purr", "vss", "bm25")
        results.show(columns, query="purr", key="k", store="s", figures=True)
        card = opened_card(columns, "1:1", with_sentences=False)
    vss, bm25 = drawn[0]["boards"]
    assert vss.hits == []
    assert vss.empty.startswith("This store was built with the Python function 'counts'")
    assert [hit.badges for hit in bm25.hits] == [[Badge("only", "only here", "not in VSS")]]
    assert card is not None
    assert card.text == TEXTS["cats.md"]
    assert [part.title.split(":")[0] for part in card.parts] == ["BM25", "VSS", "In the other lists"]
    assert card.parts[1].lines == [vss.empty]


def test_a_store_for_words_only_explains_them(drawn: list[dict]) -> None:
    with Store.create(":memory:", None) as store:
        store.insert(pd.DataFrame({"origin": ["cats.md"], "text": [TEXTS["cats.md"]]}))
        columns = columns_of(store, "purr", "vss", "bm25")
        card = opened_card(columns, "1:1", with_sentences=False)
        lost = [results.missing(one, origin="cats.md") for one in columns]
        results.show(columns, query="purr", key="k", store="s", lost=lost)
    assert card is not None
    words, vss, elsewhere = card.parts
    assert words.rows[0][:3] == ["purr", "3", "1"]
    assert "has no vectors" in vss.lines[0]
    assert elsewhere.lines == [f"VSS: {columns[0].empty}"]
    assert [(one.reason, results.is_here(one)) for one in lost] == [("no model", False), ("in results", True)]
    assert drawn[0]["boards"][0].lost.reason.startswith("Not here: the query cannot be embedded: ")


def test_merged_passages_lead_with_the_chunk_that_ranks_them(animals: Store) -> None:
    document = MarkdownDocument("One cat may purr. " * 6 + "It will bark. " * 6, "both.md")
    with Store.create(":memory:", FunctionEmbedder(count_words, 4, "counts")) as store:
        store.insert(markdown_chunk(document, target_size=60, target_overlap=0.5))
        settings = SearchSettings(mode="bm25", top_k=5, selection=Selection(deoverlap=True))
        one = results.column(store, "bark", settings)
        values = one.table["metric_value"][0]
        assert len(one.passages[0]) > 1
        assert one.passages[0][0] == one.table["chunk_id"][0][values.index(max(values))]
        card = opened_card([one], f"0:{one.passages[0][0]}", with_sentences=False)
    assert card is not None
    assert "merged" in card.facts


def test_the_union_shows_both_scores_and_explains_both(animals: Store, drawn: list[dict]) -> None:
    columns = columns_of(animals, "purr swim", "union", top_k=1)
    results.show(columns, query="purr swim", key="k", store="s")
    board = drawn[0]["boards"][0]
    assert [(hit.origin, hit.score, hit.share) for hit in board.hits] == [
        ("cats.md", "– · 0.46", None),
        ("fish.md", "0.230 · –", None),
    ]
    card = opened_card(columns, "0:3", with_sentences=False)
    assert card is not None
    assert [part.title.split(":")[0] for part in card.parts] == ["VSS", "BM25"]


def test_chunks_without_positions_are_shown(drawn: list[dict]) -> None:
    """Stores of version 1 do not know where in its document a chunk stood."""
    with Store.create(":memory:", FunctionEmbedder(count_words, 4, "counts"), version=1) as store:
        store.insert(pd.DataFrame({"origin": list(TEXTS), "text": list(TEXTS.values())}))
        columns = columns_of(store, "purr", "vss", "bm25")
        results.show(columns, query="purr", key="k", store="s", figures=True)
        card = opened_card(columns, "1:1", with_sentences=False)
    assert [hit.origin for hit in drawn[0]["boards"][1].hits] == ["cats.md", "dogs.md"]
    assert card is not None
    assert card.facts == "chunk 1 · 38 characters long"


def test_stores_of_different_chunk_sizes_are_joined_by_place() -> None:
    document = MarkdownDocument("Cats purr. " * 40 + "Dogs bark. " * 40, "both.md")
    found = []
    for size in (100, 400):
        store = Store.create(":memory:", FunctionEmbedder(count_words, 4, "counts"))
        store.insert(markdown_chunk(document, target_size=size, target_overlap=0))
        found.append(results.column(store, "bark", SearchSettings(mode="bm25", top_k=1)))
    between = results.compare_results(found[0].table, found[1].table, match="range")
    assert between.overlap == 1
    for one in found:
        one.store.close()


def test_history_keeps_what_was_meant_not_what_was_typed_on_the_way() -> None:
    history: list[str] = []
    for query in ("h", "how", "how many", "how", "what", "what for"):
        history = remember(history, query)
    assert history == ["what for", "how many"]
    assert remember(history, "how many") == ["how many", "what for"]
    assert remember(history, "") == history


def test_saved_queries_are_kept_replaced_and_removed(tmp_path) -> None:
    saved = SavedQueries(tmp_path / "queries.json")
    assert saved.all() == {}
    saved.save("cats", {"q": "purr"})
    saved.save("dögs", {"q": "bark", "top_k": 4})
    saved.save("cats", {"q": "purr loudly"})
    assert list(saved.all().items()) == [("cats", {"q": "purr loudly"}), ("dögs", {"q": "bark", "top_k": 4})]
    saved.remove("cats")
    assert list(saved.all()) == ["dögs"]
    (tmp_path / "queries.json").write_text("[1]")
    with pytest.raises(RagnarError, match="cannot be read"):
        saved.all()


def test_heads_note_only_what_differs_and_has_an_effect() -> None:
    assert note(SearchSettings(mode="vss", k=2.0)) == ""
    assert note(SearchSettings(mode="bm25", k=2.0, conjunctive=True)) == "k 2, b 0.75 · all words"
    assert note(SearchSettings(weights=(2, 1), rrf_k=10, min_similarity=0.5)) == (
        "VSS 2 : BM25 1 · RRF k 10 · similarity ≥ 0.5"
    )
