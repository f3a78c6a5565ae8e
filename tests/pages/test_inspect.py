"""The Inspect page without a browser: what it lists, what it says, and what is in its URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared.shell import plain
from ragnar_core import ChunkSettings, MarkdownDocument, Store, embed_static, markdown_chunk

PAGE = Path(__file__).resolve().parents[2] / "pages" / "inspect.py"
GUIDE = (
    "# Guide\n\n" + "The walrus sleeps on ice. " * 12 + "\n\n## Diet\n\n" + "It eats clams and snails. " * 12
)
NOTES = "# Notes\n\nA short note on clams :red[x] and $5."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    settings = {"target_size": 200}
    with Store.create(
        folder / "zoo.duckdb", embed_static(), name="zoo", extra_cols={"kind": "VARCHAR"}
    ) as store:
        for text, origin in ((GUIDE, "https://example.org/guide.md"), (NOTES, "javascript:alert(1)")):
            chunks = markdown_chunk(MarkdownDocument(text, origin), **settings)
            store.insert(chunks.with_columns(kind=origin[:5]))
    Store.create(folder / "empty.duckdb", embed_static(), name="empty").close()
    with Store.create(folder / "many.duckdb", name="many") as store:
        texts = [f"item {i} of many" for i in range(250)]
        store.insert(pd.DataFrame({"text": texts, "origin": [f"d{i // 50}" for i in range(250)]}))
    with Store.create(folder / "flat.duckdb", name="flat", version=1) as store:
        store.insert(pd.DataFrame({"text": ["first walrus", "second seal"], "origin": ["a.md", "a.md"]}))
    raghilda(folder / "strange.duckdb")
    return folder


def raghilda(path: Path) -> None:
    with duckdb.connect(str(path)) as file:
        file.execute("CREATE TABLE documents (doc_id VARCHAR, origin VARCHAR, text VARCHAR)")
        file.execute(
            "CREATE TABLE embeddings (doc_id VARCHAR, chunk_id INTEGER, start_index INTEGER, end_index INTEGER, "
            "context VARCHAR, embedding FLOAT[3])"
        )
        file.execute("CREATE TABLE metadata (name VARCHAR, title VARCHAR, embed_config VARCHAR)")
        file.execute("INSERT INTO metadata VALUES ('strange', NULL, NULL)")
        file.execute("INSERT INTO documents VALUES ('d1', 'seal.md', 'A seal barks. A walrus sings.')")
        file.execute(
            "INSERT INTO embeddings VALUES ('d1', 1, 0, 13, NULL, [1, 0, 0]), ('d1', 2, 14, 29, NULL, [0, 1, 0])"
        )


@pytest.fixture
def open_inspect(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGNAR_HOME", str(home))

    def run(store: str = "zoo", **url: str) -> AppTest:
        app = AppTest.from_file(str(PAGE), default_timeout=300)
        app.session_state["shell"] = True
        app.session_state["store"] = store
        for name, value in url.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    return run


def drawn(app: AppTest, component: str) -> list[dict[str, Any]]:
    """What components of a kind were given."""
    protos = [element.proto for element in app.get("bidi_component")]
    return [json.loads(proto.json) for proto in protos if proto.component_name == component]


def listed(app: AppTest) -> dict[str, Any]:
    return drawn(app, "ragnar_passage_list")[0]


def facts(app: AppTest) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def test_without_a_query_all_chunks_stand_in_their_order(open_inspect) -> None:
    app = open_inspect()
    shown = listed(app)
    assert [row["id"] for row in shown["rows"]] == list(range(1, len(shown["rows"]) + 1))
    assert shown["summary"] == f"Showing {len(shown['rows'])} of {len(shown['rows'])} chunks"
    assert shown["chosen"] == 1
    assert shown["rows"][0]["group"] == "https://example.org/guide.md"
    assert shown["address"] == {"chunk": "1"}


def test_pages_of_a_hundred(open_inspect) -> None:
    shown = listed(open_inspect("many", chunk="130"))
    assert shown["summary"] == "Showing 101–200 of 250 chunks"
    assert (shown["earlier"], shown["later"], shown["chosen"]) == (True, True, 130)
    assert [row["id"] for row in shown["rows"]] == list(range(101, 201))


def test_bm25_marks_the_words_it_found(open_inspect) -> None:
    shown = listed(open_inspect(find="clam"))
    assert shown["rows"]
    for row in shown["rows"]:
        assert {row["text"][start:end].lower() for start, end in row["marks"]} == {"clams"}
        assert row["score"].startswith("score ")


def test_vss_lists_every_chunk_and_hybrid_both(open_inspect) -> None:
    by_meaning = listed(open_inspect(find="what do they eat", by="VSS"))
    count = len(by_meaning["rows"])
    assert by_meaning["summary"] == f"Showing {count} of {count} chunks, best first"
    distances = [float(row["score"].removeprefix("distance ")) for row in by_meaning["rows"]]
    assert distances == sorted(distances)
    assert {row["id"] for row in listed(open_inspect(find="clams", by="Hybrid"))["rows"]} == {
        row["id"] for row in by_meaning["rows"]
    }


def test_filter_and_document_narrow_list_and_search(open_inspect) -> None:
    notes = listed(open_inspect(doc="javascript:alert(1)"))
    assert {row["group"] for row in notes["rows"]} == {"javascript:alert(1)"}
    both = listed(open_inspect(find="clams", where='kind == "https"'))
    assert {row["origin"] for row in both["rows"]} == {"https://example.org/guide.md"}
    assert listed(open_inspect(where="start > 100000"))["empty"] == "No chunk passes the filter."


def test_a_filter_that_is_wrong_says_so_and_keeps_the_page(open_inspect) -> None:
    app = open_inspect(where="colour == 3")
    assert "colour" in app.error[0].value
    assert app.get("expander")


def test_a_query_without_results_says_what_to_try(open_inspect) -> None:
    shown = listed(open_inspect(find="zeppelin"))
    assert shown["rows"] == []
    assert shown["empty"] == "Nothing found. BM25 matches words: try other words, VSS, or a wider filter."


def test_the_chunk_of_the_url_is_shown_though_the_search_lacks_it(open_inspect) -> None:
    app = open_inspect(find="walrus", chunk="4", show="Raw")
    assert 4 not in [row["id"] for row in listed(app)["rows"]]
    assert listed(app)["chosen"] is None
    assert any("does not find this passage" in caption.value for caption in app.caption)
    assert "eats clams" in drawn(app, "ragnar_passage_view")[0]["text"]


@pytest.mark.parametrize(
    ("chunk", "sentence"),
    [
        ("99999", "There is no chunk 99999 in this store: the first one is shown."),
        ("123456789012345678", "There is no chunk 123456789012345678 in this store: the first one is shown."),
        ("9" * 40, f"“{'9' * 40}” is not the number of a chunk: the first one is shown."),
        ("-1", "“-1” is not the number of a chunk: the first one is shown."),
        ("²", "“²” is not the number of a chunk: the first one is shown."),
        ("<b>x", "“<b>x” is not the number of a chunk: the first one is shown."),
    ],
)
def test_a_chunk_that_is_not_there_is_said_and_gives_the_first(
    open_inspect, chunk: str, sentence: str
) -> None:
    app = open_inspect(chunk=chunk)
    assert listed(app)["chosen"] == 1
    assert [one.value for one in app.warning] == [plain(sentence)]
    app.run()
    assert [one.value for one in app.warning] == [plain(sentence)]
    app.text_input(key="find").set_value("walrus").run()
    assert [one.value for one in app.warning] == []


def test_a_document_that_is_not_there_is_said_and_gives_all(open_inspect) -> None:
    app = open_inspect(doc="gone.md", chunk="0")
    assert app.selectbox(key="doc").value == "All documents"
    assert [one.value for one in app.warning] == [
        plain(
            "There is no document “gone.md” in this store: all are shown. "
            "There is no chunk 0 in this store: the first one is shown."
        )
    ]
    assert list(open_inspect(doc="All documents", chunk="2").warning) == []


def test_the_choice_stays_with_its_chunk_and_goes_with_it(open_inspect) -> None:
    app = open_inspect(find="clams")
    ids = [row["id"] for row in listed(app)["rows"]]
    app.session_state["inspect_selected"] = ids[2]
    app.segmented_control(key="show").set_value("Raw").run()
    assert listed(app)["chosen"] == ids[2]
    app.text_input(key="find").set_value("walrus").run()
    again = [row["id"] for row in listed(app)["rows"]]
    assert ids[2] not in again
    assert listed(app)["chosen"] == again[0]


def test_another_store_begins_at_its_first_chunk(open_inspect) -> None:
    app = open_inspect(chunk="3")
    app.session_state["store"] = "many"
    app.run()
    assert listed(app)["chosen"] == 1


def test_only_web_origins_are_links(open_inspect) -> None:
    first = [element.value for element in open_inspect(chunk="1").markdown]
    assert any("](<https://example.org/guide.md>)" in text for text in first)
    last = [element.value for element in open_inspect(doc="javascript:alert(1)").markdown]
    assert any("javascript\\:\u2060alert\\(1\\)" in text for text in last)
    assert not any("](<" in text for text in last)


def test_the_chunk_in_its_document_with_neighbours_and_overlaps(open_inspect, home: Path) -> None:
    app = open_inspect(chunk="2", show="In document")
    window = drawn(app, "ragnar_doc_context")[0]
    with Store.connect(home / "zoo.duckdb") as store:
        table = store.chunks(1)
        text = store.document(1).text
    assert window["text"] == text
    assert [chunk[0] for chunk in window["chunks"]] == table["chunk_id"].tolist()
    own = next(chunk for chunk in window["chunks"] if chunk[0] == 2)
    assert text[own[1] : own[2]] == table["text"][1]
    before = table["end"][0] - table["start"][1]
    behind = table["end"][1] - table["start"][2]
    assert f"<dd>{before:,} · {behind:,}</dd>" in facts(app)


def test_nearest_lists_the_others_with_what_they_share(open_inspect) -> None:
    app = open_inspect(chunk="2", show="Nearest")
    near = drawn(app, "ragnar_passage_list")[1]
    assert 2 not in [row["id"] for row in near["rows"]]
    likeness = [float(row["score"]) for row in near["rows"]]
    assert likeness == sorted(likeness, reverse=True)
    assert any(row["note"].startswith("shares ") for row in near["rows"])


def test_history_names_settings_model_and_layout(open_inspect) -> None:
    said = facts(open_inspect(chunk="1", show="History"))
    assert ChunkSettings(target_size=200).as_python() in said.replace("&quot;", '"')
    assert "wordllama" in said
    assert "ragnar, version 2" in said


def test_a_store_of_chunks_alone_shows_them_in_a_row(open_inspect) -> None:
    app = open_inspect("flat", show="In document")
    window = drawn(app, "ragnar_doc_context")[0]
    assert window["text"] == "first walrus\n\nsecond seal"
    assert window["chunks"] == [[1, 0, 12], [2, 14, 25]]
    assert any("keeps chunks only" in caption.value for caption in app.caption)


def test_a_raghilda_store_opens_for_reading(open_inspect) -> None:
    app = open_inspect("strange", find="walrus", show="In document")
    assert [row["id"] for row in listed(app)["rows"]] == [2]
    assert drawn(app, "ragnar_doc_context")[0]["text"] == "A seal barks. A walrus sings."


def test_vss_without_a_known_model_says_so(open_inspect) -> None:
    app = open_inspect("strange", find="walrus", by="VSS")
    assert "which model built it" in app.error[0].value.replace("\\", "")


def test_an_empty_store_leads_to_build(open_inspect, monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[str] = []
    monkeypatch.setattr("streamlit.page_link", lambda page, **options: links.append(page))
    app = open_inspect("empty")
    assert links == ["pages/build.py"]
    assert app.info[0].value == "This store holds no chunks yet: there is nothing to look through."
    assert not app.get("bidi_component")


def test_copy_as_python_runs(open_inspect, home: Path, capsys: pytest.CaptureFixture) -> None:
    app = open_inspect(find="clams", where="start >= 0")
    exec(compile(app.code[0].value, "copied", "exec"), {})
    assert "metric_value" in capsys.readouterr().out


def test_a_chunk_without_a_vector_is_near_to_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_inspect
) -> None:
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    with Store.create(tmp_path / "zeros.duckdb", embedding_size=3, name="zeros") as store:
        store.insert(
            pd.DataFrame({"text": ["a", "b"], "origin": ["x", "y"]}), vectors=np.eye(2, 3, dtype=np.float32)
        )
    with duckdb.connect(str(tmp_path / "zeros.duckdb")) as file:
        file.execute("UPDATE embeddings SET embedding = [0, 0, 0] WHERE chunk_id = 1")
    app = open_inspect("zeros", show="Nearest")
    assert app.info[0].value == "This chunk has no vector, so it is near to none."
