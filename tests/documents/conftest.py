"""Fixtures for the tests of reading and crawling."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    """A helper module beside this file, under a name of its own (tests are no package)."""
    full = f"documents_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    return _load("site_server")


@pytest.fixture(scope="session")
def make() -> ModuleType:
    """Functions that make files of each kind."""
    return _load("make_files")


@pytest.fixture
def site(servers: ModuleType) -> Iterator[object]:
    server = servers.SiteServer()
    yield server
    server.stop()
