"""The Compare page as a whole, without a browser: its address, its settings, saved searches, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import compare_panels, compare_settings, results, workspace
from pages.shared.compare_queries import SavedQueries
from ragnar_core import FunctionEmbedder, Store
from ragnar_core.retrieval import SearchSettings

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("purr", "bark", "swim", "sing")
TEXTS = {
    "cats.md": "Cats purr. They purr and purr all day.",
    "dogs.md": "Dogs bark at cats that purr.",
    "fish.md": "Fish swim, and nobody hears them.",
    "birds.md": "Birds sing. Some birds swim as well.",
}
embedded: list[list[str]] = []


def count_words(texts: list[str]) -> np.ndarray:
    embedded.append(list(texts))
    return np.array(
        [[0.1 + len(re.findall(word, text.lower())) for word in WORDS] for text in texts], np.float32
    )


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Store]]:
    """Two stores of one's own, `zoo` and `pond`, open in the app."""
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    workspace.stores.clear()
    stores = {}
    for name, origins in (("zoo", list(TEXTS)), ("pond", ["fish.md"])):
        columns = {"year": int, "kind": str, "day": date}
        store = Store.create(
            tmp_path / f"{name}.duckdb", FunctionEmbedder(count_words, 4, "counts"), extra_cols=columns
        )
        for at, origin in enumerate(origins):
            row = {
                "origin": origin,
                "text": TEXTS[origin],
                "year": 2020 + at,
                "kind": "pet",
                "day": date(2020, 1, 1),
            }
            store.insert(pd.DataFrame([row]))
        workspace.stores().put(name, store)
        stores[name] = store
    yield stores
    workspace.stores.clear()
    for store in stores.values():
        store.close()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[list[results.Column]]:
    """The columns of each run, as the page hands them on to be drawn."""
    calls: list[list[results.Column]] = []
    draw = results.show

    def show(columns: list[results.Column], **rest) -> None:
        calls.append(columns)
        draw(columns, **rest)

    monkeypatch.setattr(results, "show", show)
    return calls


def page(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.query_params["store"] = "zoo"
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/compare.py")
    return app.run()


def wrong(app: AppTest) -> list[str]:
    return [error.value for error in [*app.error, *app.exception]]


def button(app: AppTest, label: str):
    return next(one for one in app.button if one.label == label)


def test_the_address_holds_query_and_settings(opened, shown) -> None:
    app = page(
        q="purr", hybrid="true", top_k="2", bm25_k="2.0", distance="Euclidean distance", filter="year >= 2021"
    )
    assert wrong(app) == []
    vss, hybrid, bm25 = shown[-1]
    assert [one.settings.mode for one in shown[-1]] == ["vss", "hybrid", "bm25"]
    assert (vss.settings.method, bm25.settings.k, hybrid.settings.top_k) == ("euclidean_distance", 2.0, 2)
    assert bm25.table["origin"].tolist() == ["dogs.md"]
    assert len(vss.passages) == 2


def labels(app: AppTest) -> list[str]:
    return [one.proto.popover.label for one in app.get("popover")]


def test_the_buttons_say_what_is_set_from_the_first_run_on(opened) -> None:
    assert labels(page(q="purr")) == ["Settings", "Filter", "Queries", "Export"]
    app = page(q="purr", top_k="2", bm25_k="2.0", filter="year >= 2021")
    assert labels(app) == ["Settings · 2", "Filter · on", "Queries", "Export"]
    app.run()
    assert labels(app) == ["Settings · 2", "Filter · on", "Queries", "Export"]
    app.button(key="reset").click().run()
    assert labels(app) == ["Settings", "Filter · on", "Queries", "Export"]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("top_k", "-5"), ("top_k", "0"), ("top_k", "51"), ("top_k", "abc"), ("top_k", "2.5"), ("top_k", "nan"),
        ("top_k", "1e400"), ("top_k", ""), ("top_k", "9" * 400), ("bm25_k", "-1"), ("bm25_k", "inf"), ("bm25_b", "1.5"),
        ("w_vss", "-0.1"), ("rrf_k", "-inf"), ("mmr", "7"), ("per_doc", "0"), ("min_sim", "-3"), ("min_bm25", "x"),
        ("distance", "Manhattan"), ("fusion", "3"), ("merge", "maybe"), ("all_words", "7"), ("drop_same", "yes"),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_setting_is_none(name: str, written: str) -> None:
    assert compare_settings.read(name, written) is None


def test_settings_as_the_address_writes_them() -> None:
    written = {
        "top_k": "12",
        "bm25_k": "2",
        "mmr": "0.5",
        "fusion": "Scores",
        "merge": "True",
        "filter": "a == 1",
    }
    assert {name: compare_settings.read(name, text) for name, text in written.items()} == {
        "top_k": 12,
        "bm25_k": 2.0,
        "mmr": 0.5,
        "fusion": "weighted_scores",
        "merge": True,
        "filter": "a == 1",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("top_k", "-5"),
        ("top_k", "abc"),
        ("top_k", "1e400"),
        ("b_top_k", "2.5"),
        ("bm25_b", "nan"),
        ("distance", "Manhattan"),
        ("merge", "maybe"),
    ],
)
def test_what_is_no_value_in_the_address_is_the_default(opened, shown, key: str, value: str) -> None:
    app = page(q="purr", view="A / B", mode="BM25", **{key: value})
    assert wrong(app) == []
    assert [one.settings for one in shown[-1]] == [
        SearchSettings(mode="bm25", top_k=8, deoverlap=False),
        SearchSettings(mode="bm25", top_k=8, deoverlap=False),
    ]
    assert "Settings · 1" not in labels(app)
    assert key not in app.query_params


@pytest.mark.parametrize(
    ("name", "value"),
    [("view", "C"), ("mode", "x"), ("b_mode", "x"), ("hybrid", "x"), ("missing", "x"), ("b_store", "x")],
)
def test_what_is_no_choice_in_the_address_is_the_default(opened, shown, name: str, value: str) -> None:
    app = page(q="purr", **{"view": "A / B", name: value})
    assert wrong(app) == []
    titles = {"view": ["VSS", "BM25"]}.get(name, ["A · Hybrid", "B · BM25"])
    assert [one.title for one in shown[-1]] == titles
    assert [one.store_name for one in shown[-1]] == ["zoo", "zoo"]


def test_compare_and_inspect_keep_each_their_own_view_and_filter(opened) -> None:
    app = page(q="purr", view="A / B", filter="year >= 2021")
    app.switch_page("pages/inspect.py").run()
    assert (app.segmented_control(key="show").value, app.text_input(key="where").value) == ("Rendered", "")
    app.segmented_control(key="show").set_value("Raw").run()
    app.switch_page("pages/compare.py").run()
    assert app.segmented_control(key="view").value == "A / B"
    assert app.text_input(key="filter").value == "year >= 2021"
    app.switch_page("pages/inspect.py").run()
    assert app.segmented_control(key="show").value == "Raw"
    assert wrong(app) == []


def test_a_default_in_the_address_is_no_changed_setting(opened) -> None:
    app = page(q="purr", top_k="8", bm25_k="1.2", distance="Cosine distance", all_words="false", filter="")
    assert labels(app) == ["Settings", "Filter", "Queries", "Export"]


def test_two_stores_side_by_side(opened, shown) -> None:
    app = page(q="swim", view="A / B", b_store="pond", mode="BM25", b_top_k="1")
    assert wrong(app) == []
    left, right = shown[-1]
    assert (left.title, left.note, left.settings.top_k) == ("A · BM25", "zoo", 8)
    assert (right.title, right.note, right.settings.top_k) == ("B · BM25", "pond", 1)
    assert right.table["origin"].tolist() == ["fish.md"]


def test_two_settings_side_by_side_and_alike_again(opened, shown) -> None:
    app = page(q="purr", view="A / B", bm25_b="0.1", filter="year == 2020")
    left, right = shown[-1]
    assert (left.settings.b, right.settings.b) == (0.1, 0.75)
    button(app, "Same as A").click().run()
    assert wrong(app) == []
    left, right = shown[-1]
    assert (right.settings.b, right.settings.filter) == (0.1, "year == 2020")


def test_a_wrong_filter_is_a_sentence_that_names_the_columns(opened) -> None:
    app = page(q="purr", filter="yeer > 2000")
    assert len(app.exception) == 0
    assert len(app.error) == 1
    assert "did you mean year?" in re.sub(r"\\", "", app.error[0].value)


def test_a_list_that_cannot_be_is_a_sentence_and_leaves_the_others(opened, shown) -> None:
    app = page(q="purr", hybrid="true", w_vss="0", w_bm25="0")
    assert len(app.exception) == 0
    said = re.sub(r"\\", "", app.error[0].value)
    assert said.startswith("Hybrid: ")
    assert "weights must be 0 or more and not both 0" in said
    assert [one.title for one in shown[-1]] == ["VSS", "BM25"]
    assert shown[-1][1].table["origin"].tolist() == ["cats.md", "dogs.md"]
    app.segmented_control(key="view").set_value("A / B").run()
    assert len(app.exception) == 0
    assert re.sub(r"\\", "", app.error[0].value).startswith("A · Hybrid: ")
    assert [one.title for one in shown[-1]] == ["B · BM25"]


@pytest.mark.parametrize(("fusion", "disabled"), [("Ranks (RRF)", False), ("Scores", True), ("Convex", True)])
def test_the_constant_of_rrf_is_set_only_where_ranks_are_fused(opened, fusion: str, disabled: bool) -> None:
    app = page(q="purr", fusion=fusion, rrf_k="30")
    assert app.number_input(key="rrf_k").disabled is disabled
    assert app.number_input(key="rrf_k").value == 30
    assert wrong(app) == []


@pytest.mark.parametrize(
    ("address", "fusion", "weights"),
    [
        ({}, "rrf", (1, 1)),
        ({"fusion": "Convex"}, "convex", (9, 1)),
        ({"fusion": "Convex", "w_bm25": "3"}, "convex", (9, 3)),
        ({"fusion": "Scores", "w_vss": "2"}, "weighted_scores", (2, 1)),
    ],
)
def test_a_fusion_brings_its_own_weights(opened, shown, address, fusion, weights) -> None:
    assert wrong(page(q="purr", hybrid="true", **address)) == []
    settings = next(column.settings for column in shown[-1] if column.settings.mode == "hybrid")
    assert (settings.fusion, settings.fusion_weights) == (fusion, weights)


def test_an_empty_page_searches_nothing_and_invites(opened, shown) -> None:
    app = page()
    assert wrong(app) == []
    assert shown[-1] == []
    assert any("Results appear as you type." in one.value for one in app.markdown)


def test_typing_embeds_the_query_and_nothing_else(opened, shown) -> None:
    app = page(q="purr")
    before = opened["zoo"].revision
    embedded.clear()
    for query in ("s", "sw", "swim"):
        app.text_input(key="q").set_value(query).run()
    assert embedded == [["s"], ["sw"], ["swim"]]
    assert shown[-1][0].table["origin"][0] == "fish.md"
    assert opened["zoo"].revision == before


def test_the_filter_form_writes_the_text(opened, shown) -> None:
    app = page(q="purr")
    app.selectbox(key="f_column").set_value("kind").run()
    app.multiselect(key="f_value_kind_is one of").set_value(["pet"]).run()
    button(app, "Add to the filter").click().run()
    app.selectbox(key="f_column").set_value("year").run()
    app.number_input(key="f_value_year_is at least").set_value(2021).run()
    button(app, "Add to the filter").click().run()
    assert app.text_input(key="filter").value == 'kind in ["pet"] and year >= 2021'
    assert any("3 of 4 chunks pass" in one.value for one in app.caption)
    assert shown[-1][1].table["origin"].tolist() == ["dogs.md"]
    app.button(key="drop_1").click().run()
    assert app.text_input(key="filter").value == 'kind in ["pet"]'
    app.selectbox(key="f_column").set_value("day").run()
    app.selectbox(key="f_operator_date").set_value("is at most").run()
    button(app, "Add to the filter").click().run()
    assert app.text_input(key="filter").value == 'kind in ["pet"] and day <= "2020-01-01"'
    assert any("4 of 4 chunks pass" in one.value for one in app.caption)
    assert wrong(app) == []


def test_searches_are_saved_and_forgotten(opened, tmp_path) -> None:
    app = page(q="purr", top_k="2", all_words="true")
    app.text_input(key="save_name").set_value("*my* cats")
    app.button(key="save").click().run()
    kept = {"store": "zoo", "q": "purr", "top_k": 2, "all_words": True}
    assert SavedQueries(tmp_path / "queries.json").all() == {"*my* cats": kept}
    assert app.button(key="saved_0").label == "\\*my\\* cats"
    app.button(key="forget_0").click().run()
    assert SavedQueries(tmp_path / "queries.json").all() == {}
    assert wrong(app) == []


def test_a_store_built_anew_in_the_same_place_is_not_mistaken_for_the_old_one(opened, tmp_path) -> None:
    app = page(q="purr")
    assert list(app.selectbox(key="missing").options) == ["birds.md", "cats.md", "dogs.md", "fish.md"]
    workspace.stores().close("zoo")
    made = FunctionEmbedder(count_words, 4, "counts")
    store = Store.create(tmp_path / "zoo.duckdb", made, extra_cols={"year": int}, overwrite=True)
    for at in range(4):
        store.insert(pd.DataFrame([{"origin": f"new-{at}.md", "text": "Purr.", "year": at}]))
    workspace.stores().put("zoo", store)
    opened["zoo"] = store
    app.run()
    assert list(app.selectbox(key="missing").options) == ["new-0.md", "new-1.md", "new-2.md", "new-3.md"]


def test_saved_searches_bring_back_store_and_settings(opened, shown, tmp_path) -> None:
    kept = {"store": "pond", "q": "swim", "top_k": 2, "all_words": True, "bm25_k": "no number", "other": 1}
    SavedQueries(tmp_path / "queries.json").save("fish", kept)
    app = page(q="purr", bm25_b="0.5")
    app.button(key="saved_0").click().run()
    assert wrong(app) == []
    last = shown[-1][1]
    assert last.query == "swim"
    assert app.session_state["open_next"] == "pond"  # the sidebar, not part of this run, takes it from there
    assert last.settings == SearchSettings(mode="bm25", top_k=2, conjunctive=True, deoverlap=False)


def test_a_saved_search_whose_store_is_gone_says_so(opened, shown, tmp_path) -> None:
    SavedQueries(tmp_path / "queries.json").save(
        "lost", {"store": "gone", "q": "swim", "top_k": 999, "b_store": "gone"}
    )
    app = page(q="purr")
    app.button(key="saved_0").click().run()
    assert len(app.exception) == 0
    assert "The store “gone” of this search is not here" in app.error[0].value
    assert (shown[-1][0].query, shown[-1][0].settings.top_k) == ("swim", 8)


def test_recent_queries_can_be_asked_again(opened, shown) -> None:
    app = page(q="purr")
    app.text_input(key="q").set_value("swim").run()
    app.button(key="recent_0").click().run()
    assert shown[-1][0].query == "purr"


def test_a_missing_document_gets_its_reason(opened, shown) -> None:
    app = page(q="purr", missing="fish.md", top_k="1")
    said = [re.sub(r"\\", "", one.value) for one in app.caption]
    assert any(
        "**BM25**: chunk 3 (its only chunk) is not here: it holds none of the query's terms." in one
        for one in said
    )
    assert any(
        "**VSS**: chunk 3 (its only chunk) is not here: VSS rank 4; the list ends at 1." in one
        for one in said
    )
    assert wrong(app) == []


def test_among_very_many_documents_one_is_found_by_part_of_its_name(opened, monkeypatch) -> None:
    monkeypatch.setattr(compare_panels, "LISTED_DOCUMENTS", 2)
    app = page(q="purr")
    assert list(app.selectbox(key="missing").options) == []
    app.text_input(key="missing_part").set_value("IS").run()
    assert list(app.selectbox(key="missing").options) == ["fish.md"]
    assert wrong(app) == []
    assert page(q="purr", missing="dogs.md").selectbox(key="missing").value == "dogs.md"


def test_the_same_as_python_runs(opened, capsys) -> None:
    app = page(q="purr", merge="true", top_k="2")
    code = app.code[0].value
    assert "retrieve_vss(store, 'purr', top_k=2, selection=Selection(deoverlap=True" in code
    opened["zoo"].close()
    code = code.replace("Store.connect(", "connect(")
    made = FunctionEmbedder(count_words, 4, "counts")
    exec(compile(code, "copied", "exec"), {"connect": lambda path: Store.connect(path, embed=made)})
    assert "cats.md" in capsys.readouterr().out
