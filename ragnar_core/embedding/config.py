"""The providers by name, and from a stored configuration back to an embedder."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ragnar_core.embedding.builtin import embed_default, embed_static
from ragnar_core.embedding.bundled import BGE_SMALL, WORDLLAMA
from ragnar_core.embedding.embedder import Embedder
from ragnar_core.embedding.function import FunctionEmbedder
from ragnar_core.errors import EmbedError


@dataclass(frozen=True)
class Provider:
    """A service as a person picks it: `name` is what configurations say, `settings` what its factory takes
    (beside the options of every service), `key_variable` where its key is looked for, `local` whether it runs
    on the person's own machine, `lists_models` whether `list_models()` works."""

    name: str
    title: str
    module: str
    key_variable: str | None = None
    local: bool = False
    lists_models: bool = True

    def factory(self) -> Callable[..., Embedder]:
        """`embed_openai` and the like."""
        return cast(
            Callable[..., Embedder],
            getattr(importlib.import_module(f"ragnar_core.embedding.{self.module}"), f"embed_{self.name}"),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The factory's own settings and their defaults; `...` where one has to be given."""
        return {
            name: ... if parameter.default is parameter.empty else parameter.default
            for name, parameter in inspect.signature(self.factory()).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }


PROVIDERS = (
    Provider("ollama", "Ollama", "ollama", None, local=True),
    Provider("lm_studio", "LM Studio", "openai", None, local=True),
    Provider("openai", "OpenAI, or a server that speaks its protocol", "openai", "OPENAI_API_KEY"),
    Provider("azure_openai", "Azure OpenAI", "azure", "AZURE_OPENAI_API_KEY", lists_models=False),
    Provider("google_gemini", "Google Gemini", "google", "GEMINI_API_KEY"),
    Provider("google_vertex", "Google Vertex AI", "google", "GOOGLE_ACCESS_TOKEN", lists_models=False),
    Provider("bedrock", "Amazon Bedrock", "bedrock", "AWS_BEARER_TOKEN_BEDROCK", lists_models=False),
    Provider("databricks", "Databricks", "databricks", "DATABRICKS_TOKEN"),
    Provider("snowflake", "Snowflake", "snowflake", "SNOWFLAKE_TOKEN", lists_models=False),
    Provider("mistral", "Mistral", "compatible", "MISTRAL_API_KEY"),
    Provider("voyage", "Voyage AI", "compatible", "VOYAGE_API_KEY", lists_models=False),
    Provider("jina", "Jina AI", "compatible", "JINA_API_KEY", lists_models=False),
    Provider("together", "Together AI", "compatible", "TOGETHER_API_KEY"),
    Provider("groq", "Groq", "compatible", "GROQ_API_KEY"),
)


def embedder_from_config(config: Mapping[str, Any]) -> Embedder:
    """The embedder that `config` (of `Embedder.config`) describes. Makes no request and loads no model.

    Raises EmbedError when the provider is unknown, a setting does not fit, the model is not installed, or the
    configuration is of a Python function, which no file can hold.
    """
    if not isinstance(config, Mapping):
        raise EmbedError(
            f"A configuration is a dict as Embedder.config gives it, with a provider, not {type(config).__name__}."
        )
    provider = str(config.get("provider"))
    if provider == "function":
        raise EmbedError(
            f"This store was built with the Python function {config.get('model')!r}, which a file cannot "
            "hold: pass the function as embed= when you open the store."
        )
    make = _factory(provider)
    settings = {name: value for name, value in config.items() if name != "provider"}
    secret = sorted(_SECRETS & settings.keys())
    if secret:
        raise EmbedError(f"A configuration must not hold {secret[0]}: pass it to embed_{provider} instead.")
    try:
        return make(**settings)
    except (TypeError, AttributeError) as error:
        raise EmbedError(
            f"The stored settings of the embedding provider {provider} do not fit: {error}."
        ) from error


def as_embedder(embed: Embedder | Callable[[list[str]], Any] | Mapping[str, Any]) -> Embedder:
    """An embedder as it is, a callable wrapped, a configuration made."""
    if isinstance(embed, Embedder):
        return embed
    if isinstance(embed, Mapping):
        return embedder_from_config(embed)
    return FunctionEmbedder(embed)


_SECRETS = {"api_key", "access_token"}


def _factory(provider: str) -> Callable[..., Embedder]:
    for known in PROVIDERS:
        if known.name == provider:
            return known.factory()
    if provider == "builtin":
        return _builtin
    if provider == "files":
        return cast(
            Callable[..., Embedder], importlib.import_module("ragnar_core.embedding.files").embed_files
        )
    names = ", ".join(sorted(["builtin", "files", *(known.name for known in PROVIDERS)]))
    raise EmbedError(
        f"The embedding provider {provider!r} is not known here. Known: {names}. "
        "Pass embed= when you open the store."
    )


def _builtin(model: str = BGE_SMALL.name, **settings: Any) -> Embedder:
    if model == BGE_SMALL.name:
        return embed_default(**settings)
    if model == WORDLLAMA.name:
        return embed_static(**settings)
    raise EmbedError(
        f"There is no built-in embedding model {model!r}: choose {BGE_SMALL.name} or {WORDLLAMA.name}."
    )
