"""Databricks.

Protocol: https://docs.databricks.com/aws/en/machine-learning/foundation-model-apis/api-reference
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Unpack
from urllib.parse import quote, urlencode

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request, get_request, json_request
from ragnar_core.embedding.openai import read_openai
from ragnar_core.embedding.request import Answer, Limits, RequestSettings
from ragnar_core.embedding.service import Key, ModelInfo, ServiceEmbedder, ServiceOptions
from ragnar_core.errors import EmbedError


class DatabricksEmbedder(ServiceEmbedder):
    """A model served by a Databricks workspace: `POST /serving-endpoints/{model}/invocations`."""

    provider = "databricks"
    title = "Databricks"
    key_variable = "DATABRICKS_TOKEN"
    address_setting = "workspace"
    own_hosts = (".databricks.com", ".databricks.us", ".azuredatabricks.net")
    limits = Limits(items=150)
    defaults = RequestSettings()
    _machine_token: tuple[str, float] = ("", 0.0)

    def __init__(self, model: str, address: str, api_key: Key, options: ServiceOptions) -> None:
        super().__init__(model, address, api_key, None, options)
        self._token_lock = threading.Lock()

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        url = f"{self.base_url}/serving-endpoints/{quote(self.model, safe='')}/invocations"
        return json_request(url, {"input": list(texts)}, self.bearer())

    def read(self, data: Any, count: int) -> Answer:
        return read_openai(data, count)

    def models_request(self) -> Request | None:
        return get_request(f"{self.base_url}/api/2.0/serving-endpoints", self.bearer())

    def read_models(self, data: Any) -> list[ModelInfo]:
        endpoints = data.get("endpoints") if isinstance(data, dict) else None
        return [
            ModelInfo(str(e["name"]), e.get("task") == "llm/v1/embeddings" if e.get("task") else None)
            for e in endpoints or []
        ]

    def key(self) -> str:
        found = self._find_key() or (self._token_of_machine() if self.is_own_address() else "")
        if not found:
            raise EmbedError(
                "Databricks needs a token: set DATABRICKS_TOKEN, or DATABRICKS_CLIENT_ID and "
                "DATABRICKS_CLIENT_SECRET, or pass api_key."
            )
        self._seen_key = found
        return found

    def trusted_addresses(self) -> list[str]:
        return [_workspace(os.environ.get("DATABRICKS_HOST", ""))]

    def secrets(self) -> list[str]:
        return [self._seen_key, os.environ.get("DATABRICKS_CLIENT_SECRET", "")]

    def _token_of_machine(self) -> str:
        """A token of the service principal in the environment (OAuth client credentials), or nothing."""
        client = os.environ.get("DATABRICKS_CLIENT_ID")
        secret = os.environ.get("DATABRICKS_CLIENT_SECRET")
        if not client or not secret:
            return ""
        with self._token_lock:
            token, until = self._machine_token
            if time.time() < until:
                return token
            basic = base64.b64encode(f"{client}:{secret}".encode()).decode()
            answer = self.fetch(
                Request(
                    f"{self.base_url}/oidc/v1/token",
                    urlencode({"grant_type": "client_credentials", "scope": "all-apis"}).encode(),
                    {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Basic {basic}"},
                )
            )
            token = str(answer.get("access_token") or "") if isinstance(answer, dict) else ""
            if not token:
                raise EmbedError("Databricks gave no access token for DATABRICKS_CLIENT_ID.")
            self._machine_token = (token, time.time() + 0.8 * float(answer.get("expires_in") or 3600))
            return token


def embed_databricks(
    model: str = "databricks-bge-large-en",
    *,
    workspace: str | None = None,
    api_key: Key = None,
    **options: Unpack[ServiceOptions],
) -> DatabricksEmbedder:
    """A model served in `workspace` (its URL, or DATABRICKS_HOST).

    The token is `api_key`, or DATABRICKS_TOKEN, or fetched with DATABRICKS_CLIENT_ID and
    DATABRICKS_CLIENT_SECRET.
    """
    address = workspace or os.environ.get("DATABRICKS_HOST")
    if not address:
        raise EmbedError("Databricks needs a workspace: pass its URL as workspace, or set DATABRICKS_HOST.")
    return DatabricksEmbedder(model, _workspace(address), api_key, options)


def _workspace(address: str) -> str:
    """A workspace's URL; DATABRICKS_HOST is often set without `https://`."""
    address = address.strip().rstrip("/")
    return address if "://" in address or not address else f"https://{address}"
