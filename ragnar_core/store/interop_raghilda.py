"""Stores of raghilda (the Python sibling of ragnar), which we read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def embed_config_of_raghilda(config: Mapping[str, Any]) -> dict[str, Any] | None:
    return None
