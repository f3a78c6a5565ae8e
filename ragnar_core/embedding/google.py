"""Google's two doors to its embedding models: the Gemini API and Vertex AI.

Protocols: https://ai.google.dev/api/embeddings and
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Sequence
from typing import Any, Unpack
from urllib.parse import quote

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request, get_request, json_request
from ragnar_core.embedding.request import Answer, AnswerError, Limits, RequestSettings, rows
from ragnar_core.embedding.service import Key, ModelInfo, ServiceEmbedder, ServiceOptions, setting
from ragnar_core.errors import EmbedError

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class _GoogleEmbedder(ServiceEmbedder):
    def uses_prefixes(self) -> bool:
        return False

    def task(self, purpose: Purpose) -> str:
        default = "RETRIEVAL_QUERY" if purpose == "query" else "RETRIEVAL_DOCUMENT"
        return str(self._settings.get("task_type", default))


class GeminiEmbedder(_GoogleEmbedder):
    """The Gemini API: `POST /models/{model}:batchEmbedContents`."""

    provider = "google_gemini"
    title = "Google Gemini"
    key_variable = "GEMINI_API_KEY"
    own_hosts = ("generativelanguage.googleapis.com",)
    limits = Limits(items=100, text_tokens=2048)
    defaults = RequestSettings(batch_size=100, concurrency=2)

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        name = f"models/{self.model.removeprefix('models/')}"
        shared: dict[str, Any] = {"model": name, "taskType": self.task(purpose)}
        if "dims" in self._settings:
            shared["outputDimensionality"] = self._settings["dims"]
        requests = [{**shared, "content": {"parts": [{"text": text}]}} for text in texts]
        return json_request(
            f"{self.base_url}/{quote(name)}:batchEmbedContents",
            {"requests": requests},
            {"x-goog-api-key": self.key()},
        )

    def read(self, data: Any, count: int) -> Answer:
        try:
            vectors = [item["values"] for item in data["embeddings"]]
        except (TypeError, KeyError):
            raise AnswerError("answered without `embeddings`.") from None
        return Answer(rows(vectors, count))

    def models_request(self) -> Request | None:
        return get_request(f"{self.base_url}/models?pageSize=1000", {"x-goog-api-key": self.key()})

    def read_models(self, data: Any) -> list[ModelInfo]:
        models = data.get("models") if isinstance(data, dict) else None
        return [
            ModelInfo(
                str(model["name"]).removeprefix("models/"),
                "embedContent" in (model.get("supportedGenerationMethods") or []),
                model.get("inputTokenLimit"),
            )
            for model in models or []
        ]


class VertexEmbedder(_GoogleEmbedder):
    """Vertex AI: `POST .../publishers/google/models/{model}:predict`."""

    provider = "google_vertex"
    title = "Google Vertex AI"
    key_variable = "GOOGLE_ACCESS_TOKEN"
    address_setting = None
    own_hosts = (".googleapis.com",)
    defaults = RequestSettings(batch_size=64)

    def __init__(
        self,
        model: str,
        address: str,
        api_key: Key,
        settings: dict[str, Any],
        options: ServiceOptions,
    ) -> None:
        # Gemini models take one text a request here, the older ones 250 of together 20,000 tokens.
        gemini = "gemini" in model
        self.limits = Limits(items=1 if gemini else 250, tokens=None if gemini else 20_000, text_tokens=2048)
        super().__init__(model, address, api_key, settings, options)

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        parameters: dict[str, Any] = {"autoTruncate": self._requests.too_long == "truncate"}
        if "dims" in self._settings:
            parameters["outputDimensionality"] = self._settings["dims"]
        body = {
            "instances": [{"task_type": self.task(purpose), "content": text} for text in texts],
            "parameters": parameters,
        }
        project, location = self._settings["project_id"], self._settings["location"]
        place = f"v1/projects/{quote(project)}/locations/{quote(location)}"
        path = f"{place}/publishers/google/models/{quote(self.model)}"
        return json_request(f"{self.base_url}/{path}:predict", body, self.bearer())

    def read(self, data: Any, count: int) -> Answer:
        try:
            items = [item["embeddings"] for item in data["predictions"]]
            vectors = [item["values"] for item in items]
        except (TypeError, KeyError):
            raise AnswerError("answered without `predictions`.") from None
        about = [item.get("statistics") or {} for item in items]
        tokens = sum(int(statistics.get("token_count") or 0) for statistics in about)
        cut = [i for i, statistics in enumerate(about) if statistics.get("truncated")]
        return Answer(rows(vectors, count), tokens, cut)

    def key(self) -> str:
        key = self._find_key()
        if not key and not self.is_own_address():
            raise EmbedError(f"{self.title} at {self.base_url} needs an access token: pass access_token.")
        key = key or _application_default_token()
        self._seen_key = key
        return key

    def hint(self, status: int | None, words: str) -> str:
        if status in (401, 403):
            return " Check the access token, and that the account may use Vertex AI in this project."
        return super().hint(status, words)


def embed_google_gemini(
    model: str = "gemini-embedding-001",
    *,
    base_url: str = GEMINI_URL,
    api_key: Key = None,
    dims: int | None = None,
    task_type: str | None = None,
    **options: Unpack[ServiceOptions],
) -> GeminiEmbedder:
    """The Gemini API; the key is `api_key` or GEMINI_API_KEY.

    Without `task_type` documents are sent as RETRIEVAL_DOCUMENT and queries as RETRIEVAL_QUERY; a
    `task_type` is used for both.
    """
    return GeminiEmbedder(model, base_url, api_key, {"dims": dims, "task_type": task_type}, options)


def embed_google_vertex(
    model: str = "gemini-embedding-001",
    *,
    location: str = "us-central1",
    project_id: str | None = None,
    access_token: Key = None,
    dims: int | None = None,
    task_type: str | None = None,
    base_url: str | None = None,
    **options: Unpack[ServiceOptions],
) -> VertexEmbedder:
    """Vertex AI in `project_id` (or GOOGLE_CLOUD_PROJECT).

    The access token is `access_token` (text, or a function that returns a fresh one), or
    GOOGLE_ACCESS_TOKEN, or Google's application default credentials through the package `google-auth`.
    `task_type` as in Gemini.
    """
    project = project_id or os.environ.get("GOOGLE_CLOUD_PROJECT")
    if not project:
        raise EmbedError("Google Vertex AI needs a project: pass project_id, or set GOOGLE_CLOUD_PROJECT.")
    setting(location, "location", "Google Vertex AI")
    region = "" if location == "global" else f"{location}-"
    address = base_url or f"https://{region}aiplatform.googleapis.com"
    settings = {
        "project_id": project,
        "location": location,
        "dims": dims,
        "task_type": task_type,
        "base_url": base_url,
    }
    return VertexEmbedder(model, address, access_token, settings, options)


_token_lock = threading.Lock()
_credentials: Any = None


def _application_default_token() -> str:
    """An access token from Google's own credential chain, refreshed when it has run out."""
    global _credentials
    try:
        auth = importlib.import_module("google.auth")
        transport = importlib.import_module("google.auth.transport.requests")
    except ImportError:
        raise EmbedError(
            "Google Vertex AI needs an access token: pass access_token, set GOOGLE_ACCESS_TOKEN (for example "
            "to the output of `gcloud auth print-access-token`), or run `pip install google-auth requests` "
            "to use the application default credentials."
        ) from None
    with _token_lock:
        try:
            if _credentials is None:
                _credentials, _ = auth.default(scopes=[_SCOPE])
            if not _credentials.valid:
                _credentials.refresh(transport.Request())
        except Exception as error:
            raise EmbedError(
                f"Google's application default credentials do not work: {error} "
                "Run `gcloud auth application-default login`."
            ) from None
        return str(_credentials.token)
