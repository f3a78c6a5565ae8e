"""Static models: a table of token vectors, averaged. Much faster than a transformer, less precise."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    Embedder,
    EmbedReport,
    FloatArray,
    IntArray,
    Purpose,
    clean,
    normalise,
)
from ragnar_core.errors import EmbedError

_BATCH_TEXTS = 256


class StaticModel:
    """Token table float32 `(tokens, dim)`, optional weight and row number for each token, and tokenizer."""

    def __init__(self, weights: Path, tokenizer: Path, *, drop_unknown: bool = False) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbedError("Static models need tokenizers: run `pip install tokenizers`.") from error
        tensors = read_safetensors(weights)
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:
            raise EmbedError(f"The tokenizer {tokenizer} cannot be loaded: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._unknown = _unknown_token(tokenizer, self._tokenizer) if drop_unknown else None
        table = tensors.get("embeddings")
        if table is None:
            tables = [tensor for tensor in tensors.values() if tensor.ndim == 2]
            if len(tables) != 1:
                raise EmbedError(f"{weights} does not hold one table of token vectors.")
            table = tables[0]
        self._table = np.ascontiguousarray(table, dtype=np.float32)
        self._weights = tensors.get("weights")
        self._mapping = tensors.get("mapping")
        self.dim = int(self._table.shape[1])

    def tokens(self, texts: Sequence[str]) -> list[IntArray]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [np.asarray(e.ids, dtype=np.int64) for e in encodings]
        if self._unknown is not None:
            ids = [some[some != self._unknown] for some in ids]
        # A text of unknown characters only has the vector of the unknown token rather than none.
        nothing = np.array([self._unknown or 0], dtype=np.int64)
        return [some if len(some) else nothing for some in ids]

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Float32 `(n, dim)`, each row of length 1."""
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        for row, ids in enumerate(self.tokens(texts)):
            rows = ids if self._mapping is None else self._mapping[ids].astype(np.int64)
            picked = self._table[np.minimum(rows, len(self._table) - 1)]
            if self._weights is not None:
                picked = picked * self._weights[ids].astype(np.float32)[:, None]
            out[row] = picked.mean(axis=0)
        return normalise(out)


class StaticEmbedder(Embedder):
    """Embeds with a table of token vectors, loaded at first use. Texts of any length are read whole."""

    counts_exactly = True

    def __init__(
        self, label: str, config: dict[str, Any], load: Callable[[], StaticModel], *, dim: int | None = None
    ) -> None:
        self.label = label
        self._config = config
        self._load = load
        self._dim = dim

    @property
    def config(self) -> dict[str, Any]:
        return dict(self._config)

    @property
    def dim(self) -> int:
        return self._dim or self._load().dim

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        return np.array([len(ids) for ids in self._load().tokens([clean(t) for t in texts])], dtype=np.int64)

    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        model = self._load()
        for start in range(0, len(texts), _BATCH_TEXTS):
            if cancel.is_set():
                raise EmbedCancelledError(f"Embedding was stopped after {start} of {len(texts)} texts.")
            batch = texts[start : start + _BATCH_TEXTS]
            yield range(start, start + len(batch)), model.vectors(batch)


def _unknown_token(path: Path, tokenizer: Any) -> int | None:
    """The number of the unknown token, which `tokenizer.json` names by text (or, in unigram models, by number)."""
    model = json.loads(path.read_text(encoding="utf-8")).get("model") or {}
    if isinstance(model.get("unk_id"), int):
        return int(model["unk_id"])
    found: int | None = tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None
    return found


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file (8 bytes of header length, JSON header, raw little-endian data).

    Format: https://github.com/huggingface/safetensors#format. Raises EmbedError when the file breaks it.
    """
    kinds = {
        "F64": "<f8",
        "F32": "<f4",
        "F16": "<f2",
        "I64": "<i8",
        "I32": "<i4",
        "I16": "<i2",
        "I8": "i1",
        "U8": "u1",
    }
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        tensors = {}
        for name, about in header.items():
            begin, end = about["data_offsets"]
            raw = data[8 + length + begin : 8 + length + end]
            tensors[name] = np.frombuffer(raw, dtype=kinds[about["dtype"]]).reshape(about["shape"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbedError(f"{path} is not a safetensors file that can be read: {error}") from error
    return tensors
