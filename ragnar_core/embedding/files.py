"""Embedding models that are already on disk, named by path."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    Embedder,
    EmbedReport,
    FloatArray,
    IntArray,
    Purpose,
    TooLong,
)
from ragnar_core.embedding.onnx import OnnxEmbedder, OnnxModel, OnnxSettings, Pooling
from ragnar_core.embedding.prefixes import prefixes
from ragnar_core.embedding.static import StaticEmbedder, StaticModel
from ragnar_core.errors import EmbedError

# In the order in which they are preferred, inside the folder and inside its folder `onnx`.
_WEIGHTS = ("model.onnx", "model_quantized.onnx", "model_int8.onnx")
_BATCH_TEXTS = 32

_lock = threading.Lock()
_loaded: dict[tuple[str, Any], Any] = {}
_Model = TypeVar("_Model")


def embed_files(
    path: str | Path | None = None,
    *,
    model: str | None = None,
    tokenizer: str | Path | None = None,
    pooling: Pooling | None = None,
    max_tokens: int | None = None,
    normalise: bool = True,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    too_long: TooLong = "truncate",
) -> Embedder:
    """An embedding model on disk: an ONNX file (or a folder with one) beside its `tokenizer.json`, a
    model2vec folder, or a sentence-transformers folder (which needs the package `sentence-transformers`).

    What is not given is read from the folder: pooling from `1_Pooling`, the longest input from
    `sentence_bert_config.json` or `tokenizer_config.json`, prefixes from `config_sentence_transformers.json`
    or else by the model's name. Raises EmbedError when the path holds no such model. The model is loaded at
    first use. `model` is the same as `path`, as configurations name it.
    """
    named = path or model
    if not isinstance(named, str | Path) or not str(named).strip():
        raise EmbedError("Pass the path of an ONNX file, or of a folder with an embedding model.")
    place = Path(named).expanduser().resolve()
    if not place.exists():
        raise EmbedError(f"There is no embedding model at {place}: check the path.")
    kind, weights = _find(place)
    folder = _folder(place)
    about = _About.of(folder)
    found_query, found_document = about.prefixes if about.prefixes != ("", "") else prefixes(folder.name)
    config: dict[str, Any] = {"provider": "files", "model": str(place)}
    words = Path(tokenizer).expanduser().resolve() if tokenizer else folder / "tokenizer.json"
    given: dict[str, Any] = {
        "tokenizer": str(words) if tokenizer else None,
        "pooling": pooling,
        "max_tokens": max_tokens,
        "normalise": None if normalise else False,
        "query_prefix": found_query if query_prefix is None else query_prefix,
        "document_prefix": found_document if document_prefix is None else document_prefix,
        "too_long": None if too_long == "truncate" else too_long,
    }
    label = f"{folder.name} (on disk)"
    if kind == "static":
        config |= {name: given[name] for name in ("tokenizer",) if given[name] is not None}
        _require_file(words, weights)
        return StaticEmbedder(
            label,
            config,
            lambda: _once((str(weights), str(words)), lambda: StaticModel(weights, words, drop_unknown=True)),
        )
    config |= {name: value for name, value in given.items() if value is not None}
    if kind == "torch":
        config.pop("tokenizer", None)
        config.pop("pooling", None)
        return SentenceTransformersEmbedder(folder, label, config)
    settings = OnnxSettings(
        pooling=pooling or about.pooling,
        max_tokens=max_tokens or about.max_tokens,
        query_prefix=str(given["query_prefix"]),
        document_prefix=str(given["document_prefix"]),
        normalise=normalise,
    )
    _require_file(words, weights)
    return OnnxEmbedder(
        label,
        config,
        settings,
        # Prefixes are not the model's business: two embedders that differ in them share it.
        lambda: _once(
            (str(weights), replace(settings, query_prefix="", document_prefix="")),
            lambda: OnnxModel(weights, words, settings),
        ),
        too_long=too_long,
    )


class SentenceTransformersEmbedder(Embedder):
    """A sentence-transformers folder, run by that package (optional, with PyTorch)."""

    def __init__(self, folder: Path, label: str, config: dict[str, Any]) -> None:
        self.label = label
        self._folder = folder
        self._config = config

    @property
    def config(self) -> dict[str, Any]:
        return dict(self._config)

    @property
    def dim(self) -> int:
        model = self._model()
        # Version 6 renamed it.
        ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(ask())

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        return super().count_tokens(texts)

    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        model = self._model()
        prefix = self._config["query_prefix" if purpose == "query" else "document_prefix"]
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(order), _BATCH_TEXTS):
            if cancel.is_set():
                raise EmbedCancelledError(f"Embedding was stopped after {start} of {len(texts)} texts.")
            batch = order[start : start + _BATCH_TEXTS]
            # `prompt=""` because the prefix is already there and the folder may name one of its own.
            vectors = model.encode(
                [prefix + texts[i] for i in batch],
                prompt="",
                normalize_embeddings=self._config.get("normalise", True),
                show_progress_bar=False,
            )
            yield batch, np.asarray(vectors, dtype=np.float32)

    def _model(self) -> Any:
        def load() -> Any:
            try:
                library = importlib.import_module("sentence_transformers")
            except ImportError:
                raise EmbedError(
                    f"The model in {self._folder} has no ONNX file: run `pip install sentence-transformers`, "
                    "or export the model to ONNX."
                ) from None
            model = library.SentenceTransformer(str(self._folder), local_files_only=True)
            if "max_tokens" in self._config:
                model.max_seq_length = self._config["max_tokens"]
            return model

        return _once((str(self._folder), self._config.get("max_tokens")), load)


@dataclass(frozen=True)
class _About:
    """What a model's folder says about how it wants to be run."""

    pooling: Pooling = "mean"
    max_tokens: int = 512
    prefixes: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, folder: Path) -> _About:
        pooling = _json(folder / "1_Pooling" / "config.json")
        prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
        longest = [
            _json(folder / "sentence_bert_config.json").get("max_seq_length"),
            _json(folder / "tokenizer_config.json").get("model_max_length"),
            _json(folder / "config.json").get("max_position_embeddings"),
        ]
        kind: Pooling = "mean"
        if pooling.get("pooling_mode_cls_token"):
            kind = "cls"
        elif pooling.get("pooling_mode_lasttoken"):
            kind = "last"
        usable = [int(n) for n in longest if isinstance(n, int | float) and 0 < n < 1_000_000]
        query = prompts.get("query") or ""
        document = prompts.get("document") or prompts.get("passage") or ""
        return cls(kind, usable[0] if usable else 512, (query, document))


def _find(place: Path) -> tuple[str, Path]:
    """("onnx" | "static" | "torch", the file with the weights)."""
    if place.is_file():
        if place.suffix != ".onnx":
            raise EmbedError(f"{place} is not an ONNX file. Name one, or the folder of an embedding model.")
        return "onnx", place
    for folder in (place, place / "onnx"):
        for name in _WEIGHTS:
            if (folder / name).is_file():
                return "onnx", folder / name
    weights = place / "model.safetensors"
    if weights.is_file() and _json(place / "config.json").get("model_type") == "model2vec":
        return "static", weights
    if (place / "modules.json").is_file():
        return "torch", place
    if weights.is_file() and (place / "tokenizer.json").is_file() and not (place / "config.json").is_file():
        return "static", weights
    raise EmbedError(
        f"{place} holds no embedding model that is known here: expected model.onnx with tokenizer.json, a "
        "model2vec folder, or a sentence-transformers folder (modules.json)."
    )


def _folder(place: Path) -> Path:
    """The model's folder: that of its tokenizer, which may be above a folder named `onnx`."""
    folder = place.parent if place.is_file() else place
    above = folder.parent
    return above if folder.name == "onnx" and (above / "tokenizer.json").is_file() else folder


def _require_file(tokenizer: Path, weights: Path) -> None:
    if not tokenizer.is_file():
        raise EmbedError(f"{weights} has no tokenizer: {tokenizer} is not there. Name its tokenizer.json.")


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EmbedError(f"{path} cannot be read: {error}") from error
    return data if isinstance(data, dict) else {}


def _once(key: tuple[str, Any], load: Callable[[], _Model]) -> _Model:
    with _lock:
        if key not in _loaded:
            _loaded[key] = load()
        model: _Model = _loaded[key]
        return model
