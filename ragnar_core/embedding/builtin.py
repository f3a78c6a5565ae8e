"""The embedded models: no account, no key, no network."""

from __future__ import annotations

import threading
from typing import Any

from ragnar_core.embedding.bundled import BGE_SMALL, WORDLLAMA, BundledModel, locate, missing
from ragnar_core.embedding.embedder import TooLong
from ragnar_core.embedding.onnx import OnnxEmbedder, OnnxModel, OnnxSettings
from ragnar_core.embedding.static import StaticEmbedder, StaticModel
from ragnar_core.errors import EmbedError

_lock = threading.Lock()
_loaded: dict[str, Any] = {}


def default_available() -> str | None:
    """None when `embed_default()` works here, else a sentence that says what to do. Imports nothing heavy."""
    return missing(BGE_SMALL)


def static_available() -> str | None:
    """None when `embed_static()` works here, else a sentence that says what to do."""
    return missing(WORDLLAMA)


def embed_default(*, too_long: TooLong = "truncate") -> OnnxEmbedder:
    """bge-small-en-v1.5 (int8): English, 384 dimensions, 512 tokens, vectors of length 1, MIT licence (BAAI).

    The files are checked and loaded at first use, once a process. The same text has the same vector whatever
    stands beside it. Processors differ in the third digit. Raises EmbedError, which says what to install,
    when the model is not there.
    """
    _require(BGE_SMALL)
    return OnnxEmbedder(
        "bge-small-en-v1.5 (built in)",
        {"provider": "builtin", "model": BGE_SMALL.name},
        _BGE_SETTINGS,
        _load_default,
        dim=BGE_SMALL.dim,
        too_long=too_long,
    )


def embed_static() -> StaticEmbedder:
    """wordllama (l2-supercat, 256 dimensions, MIT licence): static token vectors for large ingests.

    It reads texts of any length, is many times faster than the default and finds less: alone it is no match
    for BM25, so use it where the default would take hours. Raises EmbedError, which says what to install,
    when the model is not there.
    """
    _require(WORDLLAMA)
    return StaticEmbedder(
        "wordllama-256 (built in, fast)",
        {"provider": "builtin", "model": WORDLLAMA.name},
        _load_static,
        dim=WORDLLAMA.dim,
    )


_BGE_SETTINGS = OnnxSettings(pooling="cls", max_tokens=512, query_prefix=BGE_SMALL.query_prefix)


def _require(model: BundledModel) -> None:
    if reason := missing(model):
        raise EmbedError(reason)


def _load_default() -> OnnxModel:
    with _lock:
        if BGE_SMALL.name not in _loaded:
            _loaded[BGE_SMALL.name] = OnnxModel(*locate(BGE_SMALL), _BGE_SETTINGS)
        model: OnnxModel = _loaded[BGE_SMALL.name]
        return model


def _load_static() -> StaticModel:
    with _lock:
        if WORDLLAMA.name not in _loaded:
            _loaded[WORDLLAMA.name] = StaticModel(*locate(WORDLLAMA))
        model: StaticModel = _loaded[WORDLLAMA.name]
        return model
