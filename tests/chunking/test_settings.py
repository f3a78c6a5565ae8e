"""Chunk settings: what is allowed, and how they travel."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from ragnar_core.chunking import ChunkSettings
from ragnar_core.errors import ChunkError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"target_size": 0}, r"target_size must be a whole number of at least 1.*not 0\."),
        ({"target_size": -5}, "target_size must be a whole number of at least 1.*not -5"),
        ({"target_size": 40.5}, "target_size.*not 40.5"),
        ({"target_size": "40"}, "target_size.*not '40'"),
        ({"target_size": math.nan}, "target_size.*not nan"),
        ({"target_size": True}, "target_size.*not True"),
        ({"target_overlap": -0.1}, r"target_overlap must be at least 0 and less than 1, not -0\.1"),
        (
            {"target_size": 10, "target_overlap": 12},
            "not 12. It is a fraction of target_size=10, not a length",
        ),
        ({"target_size": 10, "target_overlap": 1}, "target_overlap=1 with target_size=10 leaves no stride"),
        ({"target_overlap": math.nan}, "target_overlap.*not nan"),
        ({"target_overlap": "half"}, "target_overlap.*not 'half'"),
        ({"max_snap_dist": math.nan}, "max_snap_dist must be a number of characters.*not nan"),
        ({"max_snap_dist": "far"}, "max_snap_dist.*not 'far'"),
        ({"segment_by_heading_levels": "h1"}, "heading levels from 1 to 6.*not 'h1'"),
        ({"segment_by_heading_levels": (1.5,)}, "heading levels from 1 to 6"),
        ({"strategy": "semantic"}, "strategy must be one of ragnar, anchored, not 'semantic'"),
        ({"unit": "words"}, "unit must be one of characters, tokens, not 'words'"),
    ],
)
def test_out_of_range(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ChunkError, match=message):
        ChunkSettings(**setting)


def test_settings_are_tidied() -> None:
    settings = ChunkSettings(
        target_size=math.inf,
        target_overlap=0,
        segment_by_heading_levels=[3, 1, 3],  # type: ignore[arg-type]
    )
    assert settings.target_size is None
    assert settings.target_overlap == 0.0
    assert settings.segment_by_heading_levels == (1, 3)
    assert ChunkSettings(segment_by_heading_levels=2).segment_by_heading_levels == (2,)  # type: ignore[arg-type]
    assert ChunkSettings(target_size=40.0).target_size == 40


@pytest.mark.parametrize(
    ("settings", "distance"),
    [
        (ChunkSettings(), 1600 / 6),
        (ChunkSettings(target_size=90, target_overlap=0), 30),
        (ChunkSettings(target_size=None), math.inf),
        (ChunkSettings(max_snap_dist=7), 7),
    ],
)
def test_snap_distance(settings: ChunkSettings, distance: float) -> None:
    assert settings.snap_distance == pytest.approx(distance)


@pytest.mark.parametrize(
    "settings",
    [
        ChunkSettings(),
        ChunkSettings.workbench(target_size=800),
        ChunkSettings(
            target_size=None, max_snap_dist=math.inf, segment_by_heading_levels=(1, 2), context=False
        ),
        ChunkSettings(strategy="anchored", unit="tokens", max_snap_dist=0),
    ],
)
def test_settings_survive_json(settings: ChunkSettings) -> None:
    text = json.dumps({**settings.to_dict(), "later": 1}, allow_nan=False)
    assert ChunkSettings.from_dict(json.loads(text)) == settings


def test_as_python_names_what_differs() -> None:
    assert ChunkSettings().as_python() == "markdown_chunk(document)"
    assert ChunkSettings.workbench(target_size=None, max_snap_dist=math.inf).as_python() == (
        'markdown_chunk(document, target_size=None, max_snap_dist=float("inf"), table_context=True, '
        "keep_whole=True)"
    )
    assert ChunkSettings(unit="tokens", target_size=400).as_python() == (
        "markdown_chunk(document, target_size=400, unit='tokens', count_tokens=embedder.count_tokens)"
    )


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ChunkSettings().target_size = 1  # type: ignore[misc]
