"""Texts become vectors: the embedded models, any callable, and services over one request loop."""

from ragnar_core.embedding.builtin import default_available, embed_default, embed_static, static_available
from ragnar_core.embedding.config import as_embedder, embedder_from_config
from ragnar_core.embedding.embedder import EmbedCancelledError, Embedder, EmbedReport, EmbedRunError
from ragnar_core.embedding.function import FunctionEmbedder

__all__ = [
    "EmbedCancelledError",
    "EmbedReport",
    "EmbedRunError",
    "Embedder",
    "FunctionEmbedder",
    "as_embedder",
    "default_available",
    "embed_default",
    "embed_static",
    "embedder_from_config",
    "static_available",
]
