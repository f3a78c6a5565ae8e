"""OpenAI's embedding protocol, and the services that speak it as it is.

Protocol: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from ragnar_core.embedding.embedder import FloatArray, Purpose
from ragnar_core.embedding.http import Request, get_request, host, is_private, json_request
from ragnar_core.embedding.request import Answer, AnswerError, Limits, RequestSettings, rows
from ragnar_core.embedding.service import Key, ModelInfo, ServiceEmbedder, ServiceOptions
from ragnar_core.errors import EmbedError

Encoding = Literal["float", "base64"]

OPENAI_URL = "https://api.openai.com/v1"
LM_STUDIO_URL = "http://localhost:1234/v1"


class OpenAIEmbedder(ServiceEmbedder):
    """OpenAI, and any server with `POST {base_url}/embeddings` that speaks its protocol."""

    provider: ClassVar[str] = "openai"
    title: ClassVar[str] = "OpenAI"
    key_variable: ClassVar[str | None] = "OPENAI_API_KEY"
    own_hosts: ClassVar[tuple[str, ...]] = ("api.openai.com",)
    limits = Limits(items=2048, tokens=300_000, text_tokens=8191)
    defaults = RequestSettings(batch_size=128)

    def __init__(
        self,
        model: str,
        address: str = OPENAI_URL,
        api_key: Key = None,
        settings: dict[str, Any] | None = None,
        options: ServiceOptions | None = None,
    ) -> None:
        if is_private(address):
            # A server of one's own may first have to load the model.
            options = {"read_seconds": 300.0, **(options or {})}
        super().__init__(model, address, api_key, settings, options)
        encoding = self._settings.get("encoding")
        if encoding not in (None, "float", "base64"):
            raise EmbedError(f'encoding must be "float" or "base64", got {encoding!r}.')
        if not self._is_openai() and self.provider == "openai":
            self.label = f"{model} (at {host(self.base_url)})"
            self.max_tokens = None

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        return json_request(f"{self.base_url}/embeddings", self.body(texts, purpose), self.bearer())

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if encoding := self._settings.get("encoding") or ("base64" if self._is_openai() else None):
            body["encoding_format"] = encoding
        for ours, theirs in (("dims", "dimensions"), ("user", "user")):
            if ours in self._settings:
                body[theirs] = self._settings[ours]
        return body

    def read(self, data: Any, count: int) -> Answer:
        return read_openai(data, count)

    def models_request(self) -> Request | None:
        return get_request(f"{self.base_url}/models", self.bearer())

    def read_models(self, data: Any) -> list[ModelInfo]:
        return [ModelInfo(name, True if "embed" in name.lower() else None) for name in model_ids(data)]

    def key(self) -> str:
        # A server of one's own may well do without a key; OpenAI itself does not.
        if self.provider == "openai" and not self._is_openai():
            self._seen_key = self._find_key() or ""
            return self._seen_key
        return super().key()

    def hint(self, status: int | None, words: str) -> str:
        if status == 404 and not self._is_openai():
            return f" Check the model's name, and whether {self.base_url}/embeddings is the right address."
        return super().hint(status, words)

    def _is_openai(self) -> bool:
        return host(self.base_url) == "api.openai.com"


class LMStudioEmbedder(OpenAIEmbedder):
    """LM Studio's local server."""

    provider = "lm_studio"
    title = "LM Studio"
    key_variable: ClassVar[str | None] = None
    key_required = False
    limits = Limits(items=2048)
    defaults = RequestSettings(batch_size=20, concurrency=1, read_seconds=300.0)


def embed_openai(
    model: str = "text-embedding-3-small",
    *,
    base_url: str = OPENAI_URL,
    api_key: Key = None,
    dims: int | None = None,
    user: str | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> OpenAIEmbedder:
    """OpenAI, or a server that speaks its protocol (`base_url` with its `/v1`).

    The key is `api_key` or, for api.openai.com only, OPENAI_API_KEY. `dims` shortens the vectors of the
    models that allow it, `user` is passed on, `encoding` is how vectors travel (base64 by default at
    OpenAI).
    """
    settings = {"dims": dims, "user": user, "encoding": encoding}
    return OpenAIEmbedder(model, with_version(base_url, "v1"), api_key, settings, options)


def embed_lm_studio(
    model: str,
    *,
    base_url: str = LM_STUDIO_URL,
    api_key: Key = "lm-studio",
    dims: int | None = None,
    user: str | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> LMStudioEmbedder:
    """A model loaded in LM Studio (its server must be started). `list_models()` says what it offers."""
    settings = {"dims": dims, "user": user, "encoding": encoding}
    return LMStudioEmbedder(model, with_version(base_url, "v1"), api_key, settings, options)


def with_version(address: str, version: str) -> str:
    """The address with `/v1` at its end when it has no path of its own."""
    cleaned = address.strip().rstrip("/")
    return f"{cleaned}/{version}" if cleaned.count("/") == 2 else cleaned


def read_openai(data: Any, count: int) -> Answer:
    """Vectors of `{"data": [{"index": i, "embedding": numbers or base64}], "usage": {...}}` by index."""
    items = data.get("data") if isinstance(data, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AnswerError("answered without a list of vectors; does this address serve embeddings?")
    if len(items) != count:
        raise AnswerError(f"answered with {len(items)} vectors for {count} texts.")
    places = [item.get("index") for item in items]
    if all(place is None for place in places):
        places = list(range(count))
    if sorted(p if isinstance(p, int) else -1 for p in places) != list(range(count)):
        raise AnswerError(f"answered with the positions {places[:8]} for {count} texts.")
    ordered: list[Any] = [None] * count
    for place, item in zip(places, items, strict=True):
        ordered[place] = item.get("embedding")
    usage = data.get("usage") or {}
    tokens = usage.get("total_tokens") or usage.get("prompt_tokens") or 0
    return Answer(decode(ordered, count), int(tokens))


def decode(vectors: list[Any], count: int) -> FloatArray:
    """Vectors that are lists of numbers, or base64 of little-endian float32, as float32 `(count, dim)`."""
    if not all(isinstance(vector, str) for vector in vectors):
        return rows(vectors, count)
    try:
        arrays = [np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4") for vector in vectors]
    except (binascii.Error, ValueError):
        raise AnswerError("answered with vectors that are not base64 of float32 numbers.") from None
    if len({len(array) for array in arrays}) != 1 or not len(arrays[0]):
        raise AnswerError("answered with vectors of different lengths.")
    return np.stack(arrays).astype(np.float32, copy=False)


def model_ids(data: Any) -> list[str]:
    """Names in `{"data": [{"id": name}]}`, or in a bare list of such objects."""
    items = data.get("data") if isinstance(data, dict) else data
    if not isinstance(items, list):
        return []
    return [str(item["id"]) for item in items if isinstance(item, dict) and item.get("id")]
