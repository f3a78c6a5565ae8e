from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from pages.shared import building, workspace
from pages.shared.building import Estimate, ExtraColumn, Plan
from pages.shared.jobs import Job
from pages.shared.models import cost_of, price_of
from ragnar_core import ChunkSettings, FunctionEmbedder, MarkdownDocument, Store, StoreError, retrieve_bm25
from ragnar_core.chunking.report import EmbeddingCost

SETTINGS = ChunkSettings(target_size=100, target_overlap=0.0)


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    opened = workspace.OpenStores()
    yield opened
    opened.close("mine")


def embedder() -> FunctionEmbedder:
    return FunctionEmbedder(lambda texts: np.ones((len(texts), 3), np.float32), dim=3)


def job() -> Job:
    return Job(1, "build", "Building", "build:mine")


def document(origin: str, text: str) -> MarkdownDocument:
    return MarkdownDocument(text, origin=origin)


def test_build_then_build_again(stores: workspace.OpenStores) -> None:
    first = Plan("mine", True, (document("a.md", "# A\n\nlobster"), document("b.md", "eel")), SETTINGS)
    summary = building.build(job(), first, embedder(), stores)
    assert (summary.inserted, summary.unchanged, summary.chunks_embedded) == (2, 0, 2)
    assert building.sentence(summary) == "documents: 2 new; 2 chunks embedded"
    assert workspace.store_names() == ["handbook", "mine"]

    again = Plan(
        "mine", False, (document("a.md", "# A\n\nlobster"), document("b.md", "smoked eel")), SETTINGS
    )
    summary = building.build(job(), again, None, stores)
    assert building.sentence(summary) == "documents: 1 replaced, 1 unchanged; 1 chunks embedded"
    assert retrieve_bm25(stores.get("mine"), "smoked")["origin"].tolist() == ["b.md"]


def test_progress_tells_documents_and_chunks(stores: workspace.OpenStores) -> None:
    work = job()
    first = Plan("mine", True, (document("a.md", "# A\n\nlobster"), document("b.md", "eel")), SETTINGS)
    building.build(work, first, embedder(), stores)
    assert (work.done, work.total, work.unit) == (2, 2, "documents")
    assert work.message.endswith(" · 2 chunks embedded, 2 written")


def test_a_failed_document_is_named_and_the_others_are_stored(stores: workspace.OpenStores) -> None:
    work = job()
    plan = Plan("mine", True, (document("empty.md", ""), document("b.md", "eel")), SETTINGS)
    summary = building.build(work, plan, embedder(), stores)
    assert summary.inserted == 1
    assert [origin for origin, _ in summary.failed] == ["empty.md"]
    assert work.problems == list(summary.failed)


def test_cancelled_before_it_began_leaves_everything_pending(stores: workspace.OpenStores) -> None:
    work = job()
    work.cancel.set()
    plan = Plan("mine", True, (document("a.md", "eel"),), SETTINGS)
    summary = building.build(work, plan, embedder(), stores)
    assert summary.cancelled
    assert summary.pending == ("a.md",)
    assert stores.get("mine").counts().documents == 0


def test_extra_columns_can_be_filtered_by(stores: workspace.OpenStores) -> None:
    columns = (ExtraColumn("topic", "text", "sea"), ExtraColumn("year", "integer", 2026))
    plan = Plan("mine", True, (document("a.md", "eel"),), SETTINGS, columns=columns)
    building.build(job(), plan, embedder(), stores)
    store = stores.get("mine")
    assert retrieve_bm25(store, "eel", filter={"year": 2026})["topic"].tolist() == ["sea"]
    assert len(retrieve_bm25(store, "eel", filter={"year": 2025})) == 0


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("sea", "text", "sea"),
        (" 7 ", "integer", 7),
        ("0.5", "number", 0.5),
        ("Yes", "boolean", True),
        ("2026-11-30", "date", date(2026, 11, 30)),
        ("", "integer", None),
        (None, "text", None),
    ],
)
def test_typed_values(text: str | None, kind: str, value: object) -> None:
    assert building.value_of(text, kind, "c") == value


@pytest.mark.parametrize(
    ("text", "kind"), [("x", "integer"), ("maybe", "boolean"), ("30.11.2026", "date"), ("1", "list")]
)
def test_a_value_of_another_type_is_refused(text: str, kind: str) -> None:
    with pytest.raises(StoreError, match="extra column 'c' is not of the type"):
        building.value_of(text, kind, "c")


def test_estimate() -> None:
    paid = EmbeddingCost("m", tokens_per_second=500, dollars_per_million=0.5)
    assert building.estimate([(2, 3000), (1, 1000)], paid) == Estimate(3, 4000, 1000, 2.0, 0.0005)
    assert building.estimate([], EmbeddingCost("m")) == Estimate(0, 0, 0, None, 0.0)


def test_sizes_in_tokens_are_counted_by_the_model_of_the_store(stores: workspace.OpenStores) -> None:
    settings = ChunkSettings(target_size=10, target_overlap=0.0, unit="tokens")
    text = "One sentence of words stands here. " * 20
    assert building.chunked(text, settings)[0] > 5
    plan = Plan(
        "mine", True, (document("a.md", text),), settings, columns=(ExtraColumn("topic", "text", "sea"),)
    )
    summary = building.build(job(), plan, embedder(), stores)
    assert summary.failed == ()
    assert summary.chunks > 5


def test_values_for_a_store_that_is_there_get_the_types_of_its_columns(stores: workspace.OpenStores) -> None:
    columns = (ExtraColumn("year", "integer", 2026), ExtraColumn("topic", "text", "sea"))
    building.build(
        job(), Plan("mine", True, (document("a.md", "eel"),), SETTINGS, columns=columns), embedder(), stores
    )
    known = stores.get("mine").extra_cols
    more = tuple(
        building.existing_column(name, known[name], value)
        for name, value in (("year", "2024"), ("topic", ""))
    )
    assert more == (ExtraColumn("year", "integer", 2024), ExtraColumn("topic", "text", None))
    summary = building.build(
        job(), Plan("mine", False, (document("b.md", "cod"),), SETTINGS, columns=more), None, stores
    )
    assert summary.failed == ()
    assert retrieve_bm25(stores.get("mine"), "cod")["year"].tolist() == [2024]
    with pytest.raises(StoreError, match="'year' is not of the type integer"):
        building.existing_column("year", "BIGINT", "soon")


def test_the_cost_of_a_store_that_is_there_is_that_of_its_model() -> None:
    with Store.connect(workspace.ROOT / "data" / "handbook.duckdb") as store:
        assert cost_of(store).tokens_per_second == 2_400
    with Store.create(":memory:", embedder()) as store:
        assert cost_of(store).tokens_per_second is None


def test_prices_go_by_the_name_of_the_service() -> None:
    assert price_of("text-embedding-3-small") == 0.02
    assert price_of("small") == 0.0


def test_store_names_are_checked(stores: workspace.OpenStores) -> None:
    for name in ("../x", "a b", "", "a/b", "ä"):
        with pytest.raises(StoreError, match="cannot be a store name"):
            workspace.store_path(name)
    with pytest.raises(StoreError, match="no store “gone” here"):
        stores.get("gone")
