"""Texts become vectors: embedded models, models on disk, any callable, services over one request loop."""

from ragnar_core.embedding.azure import embed_azure_openai
from ragnar_core.embedding.bedrock import embed_bedrock
from ragnar_core.embedding.builtin import default_available, embed_default, embed_static, static_available
from ragnar_core.embedding.compatible import (
    embed_groq,
    embed_jina,
    embed_mistral,
    embed_together,
    embed_voyage,
)
from ragnar_core.embedding.config import PROVIDERS, Provider, as_embedder, embedder_from_config
from ragnar_core.embedding.databricks import embed_databricks
from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    Embedder,
    EmbedReport,
    EmbedRunError,
    ModelCheck,
)
from ragnar_core.embedding.files import embed_files
from ragnar_core.embedding.function import FunctionEmbedder
from ragnar_core.embedding.google import embed_google_gemini, embed_google_vertex
from ragnar_core.embedding.ollama import embed_ollama
from ragnar_core.embedding.openai import embed_lm_studio, embed_openai
from ragnar_core.embedding.request import ProviderError
from ragnar_core.embedding.service import ModelInfo
from ragnar_core.embedding.snowflake import embed_snowflake

__all__ = [
    "PROVIDERS",
    "EmbedCancelledError",
    "EmbedReport",
    "EmbedRunError",
    "Embedder",
    "FunctionEmbedder",
    "ModelCheck",
    "ModelInfo",
    "Provider",
    "ProviderError",
    "as_embedder",
    "default_available",
    "embed_azure_openai",
    "embed_bedrock",
    "embed_databricks",
    "embed_default",
    "embed_files",
    "embed_google_gemini",
    "embed_google_vertex",
    "embed_groq",
    "embed_jina",
    "embed_lm_studio",
    "embed_mistral",
    "embed_ollama",
    "embed_openai",
    "embed_snowflake",
    "embed_static",
    "embed_together",
    "embed_voyage",
    "embedder_from_config",
    "static_available",
]
