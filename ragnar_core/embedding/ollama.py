"""Ollama. Protocol: https://github.com/ollama/ollama/blob/main/docs/api.md"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Unpack

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request, get_request, json_request
from ragnar_core.embedding.request import Answer, AnswerError, Limits, RequestSettings, rows
from ragnar_core.embedding.service import Key, ModelInfo, ServiceEmbedder, ServiceOptions

OLLAMA_URL = "http://localhost:11434"
_EMBEDDING_FAMILIES = ("bert", "nomic-bert", "gemma-embedding")


class OllamaEmbedder(ServiceEmbedder):
    """An Ollama server: `POST /api/embed`."""

    provider = "ollama"
    title = "Ollama"
    key_variable = "OLLAMA_API_KEY"
    key_required = False
    own_hosts = ("ollama.com", "localhost")
    limits = Limits(items=512)
    # A model is loaded by the first request, which can take minutes; more requests at once do not help one
    # machine.
    defaults = RequestSettings(batch_size=10, concurrency=2, read_seconds=300.0)

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        body: dict[str, Any] = {
            "model": self.model,
            "input": list(texts),
            "truncate": self._requests.too_long == "truncate",
        }
        if "dims" in self._settings:
            body["dimensions"] = self._settings["dims"]
        if "keep_alive" in self._settings:
            body["keep_alive"] = self._settings["keep_alive"]
        return json_request(f"{self.base_url}/api/embed", body, self.bearer())

    def read(self, data: Any, count: int) -> Answer:
        if not isinstance(data, dict) or "embeddings" not in data:
            raise AnswerError(
                "answered without a list of vectors; is this an Ollama server of version 0.3 or later?"
            )
        return Answer(rows(data["embeddings"], count), int(data.get("prompt_eval_count") or 0))

    def models_request(self) -> Request | None:
        return get_request(f"{self.base_url}/api/tags", self.bearer())

    def read_models(self, data: Any) -> list[ModelInfo]:
        models = data.get("models") if isinstance(data, dict) else None
        return [
            ModelInfo(str(model["name"]), _embeds(model))
            for model in models or []
            if isinstance(model, dict) and model.get("name")
        ]

    def trusted_addresses(self) -> list[str]:
        return [_address(None)]

    def hint(self, status: int | None, words: str) -> str:
        if status == 404:
            return f" Run `ollama pull {self.model}`."
        return super().hint(status, words)


def embed_ollama(
    model: str = "embeddinggemma:300m",
    *,
    base_url: str | None = None,
    api_key: Key = None,
    dims: int | None = None,
    keep_alive: str | int | None = None,
    **options: Unpack[ServiceOptions],
) -> OllamaEmbedder:
    """A model served by Ollama, at `base_url`, or OLLAMA_HOST, or http://localhost:11434.

    The address may be written with or without a slash or `/v1` at its end. `keep_alive` is how long Ollama
    keeps the model in memory ("5m"). `list_models()` says what the server holds.
    """
    settings = {"dims": dims, "keep_alive": keep_alive}
    return OllamaEmbedder(model, _address(base_url), api_key, settings, options)


def _address(base_url: str | None) -> str:
    address = (base_url or os.environ.get("OLLAMA_HOST") or OLLAMA_URL).strip().rstrip("/")
    for ending in ("/v1", "/api/embed", "/api"):
        address = address.removesuffix(ending).rstrip("/")
    if "://" not in address:
        address = f"http://{address}" if ":" in address else f"http://{address}:11434"
    # OLLAMA_HOST=0.0.0.0 tells the server to listen everywhere; a client asks this machine.
    return address.replace("//0.0.0.0", "//127.0.0.1")


def _embeds(model: dict[str, Any]) -> bool | None:
    """Whether a model of `/api/tags` embeds: by its capabilities where given, else by family or name."""
    if capabilities := model.get("capabilities"):
        return "embedding" in capabilities
    family = str((model.get("details") or {}).get("family", ""))
    if family in _EMBEDDING_FAMILIES or "embed" in str(model["name"]):
        return True
    return False if family else None
