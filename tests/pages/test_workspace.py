from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ragnar_core import ChunkSettings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGNAR_HOME", str(tmp_path))
    return tmp_path


def keep(settings: dict) -> None:
    from pages.shared import workspace
    from ragnar_core import ChunkSettings

    workspace.keep_chunk_settings(ChunkSettings.from_dict(settings))


def read_back() -> None:
    import streamlit as st

    from pages.shared import workspace

    st.session_state["seen"] = workspace.chunk_settings()


@pytest.mark.parametrize(
    "settings",
    [
        ChunkSettings(target_size=600, strategy="anchored"),
        ChunkSettings(target_size=None),
        ChunkSettings.workbench(),
    ],
)
def test_settings_for_build_outlive_the_session(settings: ChunkSettings) -> None:
    AppTest.from_function(keep, args=(settings.to_dict(),), default_timeout=300).run()
    again = AppTest.from_function(read_back, default_timeout=300).run()
    assert again.session_state["seen"] == settings


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"target_size": "big"}'])
def test_settings_that_cannot_be_read_back_are_none(home: Path, damage: str) -> None:
    (home / ".chunk-settings.json").write_text(damage)
    app = AppTest.from_function(read_back, default_timeout=300).run()
    assert not app.exception
    assert app.session_state["seen"] is None


def test_start_says_what_build_will_use_also_without_a_size() -> None:
    app = AppTest.from_function(
        keep, args=(ChunkSettings(target_size=None).to_dict(),), default_timeout=300
    ).run()
    assert not app.exception
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300).run()
    assert not app.exception
    assert not [error.value for error in app.error]
