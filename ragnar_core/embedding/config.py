"""From a stored configuration back to an embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragnar_core.embedding.builtin import embed_default, embed_static
from ragnar_core.embedding.bundled import BGE_SMALL, WORDLLAMA
from ragnar_core.embedding.embedder import Embedder
from ragnar_core.embedding.function import FunctionEmbedder
from ragnar_core.errors import EmbedError


def embedder_from_config(config: Mapping[str, Any]) -> Embedder:
    """The embedder that `config` (of `Embedder.config`) describes. Makes no request and loads no model.

    Raises EmbedError when the provider is unknown, the model is not installed, or the configuration is of a
    Python function, which no file can hold.
    """
    provider = config.get("provider")
    if provider == "function":
        raise EmbedError(
            f"This store was built with the Python function {config.get('model')!r}, which a file cannot "
            "hold: pass the function as embed= when you open the store."
        )
    make = _PROVIDERS.get(str(provider))
    if make is None:
        raise EmbedError(
            f"The embedding provider {provider!r} is not known here. Known: {', '.join(sorted(_PROVIDERS))}. "
            "Pass embed= when you open the store."
        )
    settings = {name: value for name, value in config.items() if name != "provider"}
    try:
        return make(**settings)
    except TypeError as error:
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


def _builtin(model: str = BGE_SMALL.name, **settings: Any) -> Embedder:
    if model == BGE_SMALL.name:
        return embed_default(**settings)
    if model == WORDLLAMA.name:
        return embed_static(**settings)
    raise EmbedError(
        f"There is no built-in embedding model {model!r}: choose {BGE_SMALL.name} or {WORDLLAMA.name}."
    )


_PROVIDERS: dict[str, Callable[..., Embedder]] = {"builtin": _builtin}
