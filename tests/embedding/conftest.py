"""The protocol server for tests of services, without the environment's keys and proxies."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load() -> ModuleType:
    name = "embedding_protocol_server"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("protocol_server.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


_VARIABLES = [
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    "GEMINI_API_KEY",
    "GOOGLE_ACCESS_TOKEN",
    "GOOGLE_CLOUD_PROJECT",
    "MISTRAL_API_KEY",
    "VOYAGE_API_KEY",
    "JINA_API_KEY",
    "TOGETHER_API_KEY",
    "GROQ_API_KEY",
    "OLLAMA_HOST",
    "OLLAMA_API_KEY",
    "DATABRICKS_HOST",
    "DATABRICKS_TOKEN",
    "DATABRICKS_CLIENT_ID",
    "DATABRICKS_CLIENT_SECRET",
    "SNOWFLAKE_ACCOUNT",
    "SNOWFLAKE_TOKEN",
    "SNOWFLAKE_USER",
    "SNOWFLAKE_PRIVATE_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
]


@pytest.fixture
def protocol() -> ModuleType:
    """The module with `Fault`, `KEY` and the server."""
    return _load()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A running protocol server. A request that its provider does not document fails the test."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    running = _load().ProtocolServer()
    yield running
    running.close()
    assert running.violations == []
