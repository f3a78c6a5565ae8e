"""Whether a model is the one that built a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragnar_core.embedding import Embedder
from ragnar_core.errors import StoreError


def dimension(embedder: Embedder | None, size: int | None) -> int:
    """Numbers a vector of a new store; 0 for a store without vectors."""
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        raise StoreError(f"embedding_size must be a whole number of 1 or more, not {size!r}")
    if embedder is None:
        return size or 0
    if size is not None and size != embedder.dim:
        raise StoreError(
            f"embedding_size is {size}, but {embedder.label} gives {embedder.dim} numbers; leave it out"
        )
    return embedder.dim


def check_model(location: str, dim: int, stored: Mapping[str, Any] | None, embedder: Embedder) -> None:
    """Refuses a model other than the one that built the store. Raises StoreError with both names."""
    given = embedder.config
    way_out = "Open it with the model that built it, or connect without embed= and call reembed"
    if dim and embedder.dim != dim:
        raise StoreError(
            f"{location} was built with {_label(stored)} ({dim} numbers a vector); "
            f"{embedder.label} gives {embedder.dim}. {way_out}"
        )
    if stored is not None and _same_model(stored, given) is False:
        raise StoreError(
            f"{location} was built with {_label(stored)} ({dim} numbers a vector); {_label(given)} ({embedder.dim}) "
            f"is another model, whose vectors mean something else. {way_out}"
        )


def _same_model(stored: Mapping[str, Any], given: Mapping[str, Any]) -> bool | None:
    """None where the file cannot say."""
    providers = {stored.get("provider"), given.get("provider")}
    if None in providers or ("function" in providers and len(providers) == 2):
        return None
    return (stored.get("provider"), stored.get("model")) == (given.get("provider"), given.get("model"))


def _label(config: Mapping[str, Any] | None) -> str:
    return "an unnamed model" if config is None else f"{config.get('model')} ({config.get('provider')})"
