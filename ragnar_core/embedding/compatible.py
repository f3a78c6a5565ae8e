"""Services that speak OpenAI's protocol with fields of their own: Mistral, Voyage, Jina, Together, Groq."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request
from ragnar_core.embedding.openai import Encoding, OpenAIEmbedder
from ragnar_core.embedding.request import Limits, RequestSettings
from ragnar_core.embedding.service import Key, ServiceOptions


class MistralEmbedder(OpenAIEmbedder):
    """https://docs.mistral.ai/api/endpoint/embeddings"""

    provider = "mistral"
    title = "Mistral"
    key_variable = "MISTRAL_API_KEY"
    own_hosts = ("api.mistral.ai",)
    limits = Limits(items=128, tokens=16_000, text_tokens=8192)
    defaults = RequestSettings(batch_size=64)

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body = super().body(texts, purpose)
        if "dimensions" in body:
            body["output_dimension"] = body.pop("dimensions")
        return body


class VoyageEmbedder(OpenAIEmbedder):
    """https://docs.voyageai.com/reference/embeddings-api"""

    provider = "voyage"
    title = "Voyage AI"
    key_variable = "VOYAGE_API_KEY"
    own_hosts = ("api.voyageai.com",)
    limits = Limits(items=1000, tokens=120_000, text_tokens=32_000)
    defaults = RequestSettings(batch_size=128)

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body = super().body(texts, purpose)
        body |= {"input_type": purpose, "truncation": self._requests.too_long == "truncate"}
        if "dimensions" in body:
            body["output_dimension"] = body.pop("dimensions")
        if body.get("encoding_format") == "float":
            del body["encoding_format"]
        return body

    def uses_prefixes(self) -> bool:
        return False

    def models_request(self) -> Request | None:
        return None


class JinaEmbedder(OpenAIEmbedder):
    """https://jina.ai/embeddings, OpenAPI at https://api.jina.ai/docs"""

    provider = "jina"
    title = "Jina AI"
    key_variable = "JINA_API_KEY"
    own_hosts = ("api.jina.ai",)
    limits = Limits(items=512, text_tokens=8192)
    defaults = RequestSettings(batch_size=64)

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body = super().body(texts, purpose)
        if "encoding_format" in body:
            body["embedding_type"] = body.pop("encoding_format")
        if self._has_tasks():
            body["task"] = "retrieval.query" if purpose == "query" else "retrieval.passage"
            body["truncate"] = self._requests.too_long == "truncate"
        return body

    def uses_prefixes(self) -> bool:
        return False

    def models_request(self) -> Request | None:
        return None

    def _has_tasks(self) -> bool:
        return "-v2" not in self.model and "clip-v1" not in self.model


class TogetherEmbedder(OpenAIEmbedder):
    """https://docs.together.ai/reference/embeddings"""

    provider = "together"
    title = "Together AI"
    key_variable = "TOGETHER_API_KEY"
    own_hosts = ("api.together.xyz", "api.together.ai")
    limits = Limits(items=128)
    defaults = RequestSettings(batch_size=64)


class GroqEmbedder(OpenAIEmbedder):
    """https://console.groq.com/docs/api-reference"""

    provider = "groq"
    title = "Groq"
    key_variable = "GROQ_API_KEY"
    own_hosts = ("api.groq.com",)
    limits = Limits(items=128)
    defaults = RequestSettings(batch_size=64)


def embed_mistral(
    model: str = "mistral-embed",
    *,
    base_url: str = "https://api.mistral.ai/v1",
    api_key: Key = None,
    dims: int | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> MistralEmbedder:
    """Mistral; the key is `api_key` or MISTRAL_API_KEY."""
    return MistralEmbedder(model, base_url, api_key, {"dims": dims, "encoding": encoding}, options)


def embed_voyage(
    model: str = "voyage-3.5",
    *,
    base_url: str = "https://api.voyageai.com/v1",
    api_key: Key = None,
    dims: int | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> VoyageEmbedder:
    """Voyage AI; the key is `api_key` or VOYAGE_API_KEY. `input_type` tells queries and documents apart."""
    return VoyageEmbedder(model, base_url, api_key, {"dims": dims, "encoding": encoding}, options)


def embed_jina(
    model: str = "jina-embeddings-v3",
    *,
    base_url: str = "https://api.jina.ai/v1",
    api_key: Key = None,
    dims: int | None = None,
    encoding: Encoding | None = None,
    **options: Unpack[ServiceOptions],
) -> JinaEmbedder:
    """Jina AI; the key is `api_key` or JINA_API_KEY. Queries and documents are told apart by `task`."""
    return JinaEmbedder(model, base_url, api_key, {"dims": dims, "encoding": encoding}, options)


def embed_together(
    model: str = "intfloat/multilingual-e5-large-instruct",
    *,
    base_url: str = "https://api.together.xyz/v1",
    api_key: Key = None,
    **options: Unpack[ServiceOptions],
) -> TogetherEmbedder:
    """Together AI; the key is `api_key` or TOGETHER_API_KEY."""
    return TogetherEmbedder(model, base_url, api_key, None, options)


def embed_groq(
    model: str = "nomic-embed-text-v1_5",
    *,
    base_url: str = "https://api.groq.com/openai/v1",
    api_key: Key = None,
    **options: Unpack[ServiceOptions],
) -> GroqEmbedder:
    """Groq; the key is `api_key` or GROQ_API_KEY."""
    return GroqEmbedder(model, base_url, api_key, None, options)
