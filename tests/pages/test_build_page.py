"""What the Build page says of builds that have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import building, workspace
from pages.shared.building import Plan
from pages.shared.jobs import Job, manager
from ragnar_core import ChunkSettings, FunctionEmbedder, MarkdownDocument, Store, StoreError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    workspace.stores.clear()
    manager.clear()
    yield
    workspace.stores().close("mine")
    workspace.stores.clear()
    manager.clear()


def run(work: Callable[[Job], Any]) -> None:
    """A build of the store `mine` from its start to its end."""
    job = manager().start("build", "Building mine", "build:mine", work)
    end = time.monotonic() + 30
    while job.active:
        assert time.monotonic() < end
        time.sleep(0.01)


def fail(job: Job) -> None:
    raise StoreError("the model is away")


def embedder() -> FunctionEmbedder:
    return FunctionEmbedder(lambda texts: np.ones((len(texts), 3), np.float32), dim=3)


def succeed(job: Job) -> Any:
    create = "mine" not in workspace.store_names()
    documents = (MarkdownDocument("eel", origin="a.md"),)
    plan = Plan("mine", create, documents, ChunkSettings(target_size=100))
    return building.build(job, plan, embedder() if create else None, workspace.stores())


def page() -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.switch_page("pages/build.py")
    app.run()
    assert not app.exception
    return app


def notices(app: AppTest) -> list[str]:
    """The outcomes of builds, without Markdown's escapes."""
    shown = [one.value.replace("\\", "") for one in [*app.error, *app.markdown]]
    return [text for text in shown if text.startswith("Building mine failed") or "**mine**" in text]


def offers(app: AppTest) -> int:
    return [one.label for one in app.button].count("Compare in this store")


def test_a_build_that_succeeded_replaces_the_notice_of_one_that_failed_before() -> None:
    run(fail)
    run(succeed)
    app = page()
    said = notices(app)
    assert len(said) == 1
    assert "documents: 1 new; 1 chunks embedded" in said[0]
    assert offers(app) == 1
    next(one for one in app.button if one.label == "Dismiss").click().run()
    assert (notices(app), offers(app)) == ([], 0)
    assert manager().jobs("build") == []


def test_a_failed_build_offers_to_compare_only_in_a_store_with_chunks(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "mine.duckdb", embedder())
    workspace.stores().put("mine", store)
    run(fail)
    app = page()
    assert (notices(app), offers(app)) == (["Building mine failed: the model is away"], 0)
    run(succeed)
    run(fail)
    app = page()
    assert (notices(app), offers(app)) == (["Building mine failed: the model is away"], 1)
