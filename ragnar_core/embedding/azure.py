"""Azure OpenAI. Protocol: https://learn.microsoft.com/azure/ai-services/openai/reference#embeddings"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Unpack
from urllib.parse import quote, urlencode

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request, json_request
from ragnar_core.embedding.openai import Encoding, OpenAIEmbedder
from ragnar_core.embedding.request import RequestSettings
from ragnar_core.embedding.service import Key, ServiceOptions
from ragnar_core.errors import EmbedError


class AzureOpenAIEmbedder(OpenAIEmbedder):
    """A deployment of an embedding model in Azure. `model` is the deployment's name."""

    provider = "azure_openai"
    title = "Azure OpenAI"
    key_variable = "AZURE_OPENAI_API_KEY"
    address_setting = "endpoint"
    own_hosts = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
    defaults = RequestSettings(batch_size=128)

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        path = f"openai/deployments/{quote(self.model, safe='')}/embeddings"
        query = urlencode({"api-version": self._settings["api_version"]})
        return json_request(
            f"{self.base_url}/{path}?{query}", self.body(texts, purpose), {"api-key": self.key()}
        )

    def trusted_addresses(self) -> list[str]:
        return [os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip().rstrip("/")]

    def models_request(self) -> Request | None:
        return None

    def hint(self, status: int | None, words: str) -> str:
        if status == 404:
            return f" Is there a deployment named {self.model} at {self.base_url}?"
        return super().hint(status, words)


def embed_azure_openai(
    model: str,
    *,
    endpoint: str | None = None,
    api_key: Key = None,
    api_version: str = "2023-05-15",
    dims: int | None = None,
    user: str | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> AzureOpenAIEmbedder:
    """Azure OpenAI: `endpoint` (or AZURE_OPENAI_ENDPOINT) and the deployment's name as `model`.

    The key is `api_key` or AZURE_OPENAI_API_KEY. `dims` needs an `api_version` of 2024 or later.
    """
    address = endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not address:
        raise EmbedError("Azure OpenAI needs an address: pass endpoint, or set AZURE_OPENAI_ENDPOINT.")
    settings: dict[str, Any] = {"api_version": api_version, "dims": dims, "user": user, "encoding": encoding}
    return AzureOpenAIEmbedder(model, address, api_key, settings, options)
