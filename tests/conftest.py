"""Fixtures that several test folders use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is not a fault.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--strict-browser", action="store_true", help="fail where a browser test would be skipped"
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material that stands beside the project on the maintainers' machines."""
    folder = ROOT.parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip("the reference material (golden outputs, cases, benchmarks) is not beside this clone")
    return folder
