"""Transformer models in ONNX, run on this machine's processor cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    Embedder,
    EmbedReport,
    EmbedRunError,
    FloatArray,
    IntArray,
    Purpose,
    TooLong,
    clean,
    normalise,
)
from ragnar_core.errors import EmbedError

# onnxruntime writes a device identifier unless this is set before its first import, whoever imports it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

Pooling = Literal["cls", "mean", "last"]


# A window bounds the memory that tokens take; a batch bounds the memory that the model takes.
_WINDOW_TEXTS = 512
_BATCH_TOKENS = 512
_DYNAMIC_QUANTISATION = (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul", b"DynamicQuantizeLSTM")


@dataclass(frozen=True)
class OnnxSettings:
    """How a model is run: pooling of token vectors, longest input, prefixes, scaling to length 1."""

    pooling: Pooling = "mean"
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""
    normalise: bool = True


class OnnxModel:
    """A loaded model: session and tokenizer. Safe to share between threads.

    Dynamic quantisation takes one scale from all numbers of a batch, so in such a model a text's vector
    depends on the texts beside it (by up to 0.04 a component in bge-small int8). Therefore each text of such
    a model runs alone, and the cores are used by running several texts at the same time. Other models run in
    batches of similar length.
    """

    def __init__(self, weights: Path, tokenizer: Path, settings: OnnxSettings) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbedError(
                f"Running {weights.name} needs {error.name}: run `pip install onnxruntime tokenizers`."
            ) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
            self._counter = Tokenizer.from_file(str(tokenizer))
            self._session = onnxruntime.InferenceSession(
                str(weights), _options(onnxruntime), providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise EmbedError(
                f"The model in {weights.parent} cannot be loaded: {_first_line(error)}"
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=settings.max_tokens)
        self._counter.no_padding()
        self._counter.no_truncation()
        self._inputs = {item.name for item in self._session.get_inputs()}
        self._settings = settings
        self.alone = _is_dynamically_quantised(weights)
        self.dim = int(self.run([self._tokenizer.encode("dimension").ids]).shape[1])

    def count(self, texts: Sequence[str]) -> IntArray:
        """Tokens a text before truncation, special tokens included."""
        counts = [
            len(encoding.ids)
            for start in range(0, len(texts), _WINDOW_TEXTS)
            for encoding in self._counter.encode_batch_fast(list(texts[start : start + _WINDOW_TEXTS]))
        ]
        return np.array(counts, dtype=np.int64)

    def tokens(self, texts: list[str]) -> tuple[list[list[int]], list[bool]]:
        """Token numbers of each text, cut to the longest input, and whether something was cut."""
        encodings = self._tokenizer.encode_batch_fast(texts)
        return [e.ids for e in encodings], [bool(e.overflowing) for e in encodings]

    def run(self, batch: Sequence[list[int]]) -> FloatArray:
        """Vectors of one batch of token numbers: float32 `(n, dim)`."""
        if self.alone and len(batch) > 1:
            return np.concatenate([self.run([ids]) for ids in batch])
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(width, dtype=np.int64), ids.shape),
        }
        hidden = self._session.run(None, {name: feed[name] for name in self._inputs if name in feed})[0]
        pooled = hidden if hidden.ndim == 2 else _pool(hidden, mask, self._settings.pooling)
        vectors: FloatArray = pooled.astype(np.float32, copy=False)
        return normalise(vectors) if self._settings.normalise else vectors


class OnnxEmbedder(Embedder):
    """Embeds with an ONNX model that is loaded at first use.

    `load` returns the model and may be slow; `too_long` says what happens to a text over `max_tokens`:
    "truncate" (and the report lists it) or "refuse" (EmbedError).
    """

    counts_exactly = True

    def __init__(
        self,
        label: str,
        config: dict[str, Any],
        settings: OnnxSettings,
        load: Callable[[], OnnxModel],
        *,
        dim: int | None = None,
        too_long: TooLong = "truncate",
    ) -> None:
        if too_long not in ("truncate", "refuse"):
            raise EmbedError(f'too_long must be "truncate" or "refuse", got {too_long!r}.')
        self.label = label
        self.max_tokens = settings.max_tokens
        self._config = config | ({"too_long": too_long} if too_long != "truncate" else {})
        self._settings = settings
        self._load = load
        self._dim = dim
        self._too_long = too_long

    @property
    def config(self) -> dict[str, Any]:
        return dict(self._config)

    @property
    def dim(self) -> int:
        return self._dim or self._load().dim

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        prefix = self._settings.document_prefix
        return self._load().count([prefix + clean(text) for text in texts])

    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        model = self._load()
        prefix = self._settings.query_prefix if purpose == "query" else self._settings.document_prefix
        first, again = _first_places(texts)
        pool = ThreadPoolExecutor(_cores(), thread_name_prefix="embed") if len(first) > 1 else None
        try:
            for start in range(0, len(first), _WINDOW_TEXTS):
                if cancel.is_set():
                    raise EmbedCancelledError(f"Embedding was stopped after {start} of {len(texts)} texts.")
                window = first[start : start + _WINDOW_TEXTS]
                ids, cut = model.tokens([prefix + texts[i] for i in window])
                self._report_cut([window[j] for j, too_long in enumerate(cut) if too_long], report, again)
                for batch, vectors in _run_batches(model, ids, pool, cancel):
                    places, rows = [], []
                    for row, j in enumerate(batch):
                        copies = again.get(window[j], [window[j]])
                        places += copies
                        rows += [row] * len(copies)
                    yield places, vectors[rows]
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)

    def _report_cut(self, cut: list[int], report: EmbedReport, again: dict[int, list[int]]) -> None:
        if cut and self._too_long == "refuse":
            raise EmbedRunError(
                f"{{text}} is longer than the {self.max_tokens} tokens that {self.label} reads. "
                'Choose a smaller chunk size, or too_long="truncate".',
                position=cut[0],
            )
        report.truncated += [place for i in cut for place in again.get(i, [i])]


def _run_batches(
    model: OnnxModel, ids: list[list[int]], pool: ThreadPoolExecutor | None, cancel: threading.Event
) -> Iterator[tuple[list[int], FloatArray]]:
    batches = _batches([len(tokens) for tokens in ids])
    if pool is None:
        for batch in batches:
            yield batch, model.run([ids[j] for j in batch])
        return
    futures: dict[Future[FloatArray], list[int]] = {}
    for batch in batches:
        futures[pool.submit(model.run, [ids[j] for j in batch])] = batch
    try:
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
            if cancel.is_set():
                return
    finally:
        for future in futures:
            future.cancel()


def _batches(lengths: list[int]) -> list[list[int]]:
    """Texts of similar length together, the longest first, at most `_BATCH_TOKENS` padded tokens a batch."""
    batches: list[list[int]] = []
    room = 0
    for j in sorted(range(len(lengths)), key=lambda j: -lengths[j]):
        if room < 1:
            batches.append([])
            room = max(1, _BATCH_TOKENS // max(1, lengths[j]))
        batches[-1].append(j)
        room -= 1
    return batches


def _first_places(texts: list[str]) -> tuple[list[int], dict[int, list[int]]]:
    """Where each different text stands first, and for those that stand more than once all their places."""
    places: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        places.setdefault(text, []).append(i)
    return [p[0] for p in places.values()], {p[0]: p for p in places.values() if len(p) > 1}


def _pool(hidden: FloatArray, mask: IntArray, pooling: Pooling) -> FloatArray:
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        last: FloatArray = hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1]
        return last
    weights = mask[..., None].astype(np.float32)
    mean: FloatArray = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
    return mean


def _options(onnxruntime: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # One thread a run, several runs at a time: on two cores faster than two threads a run for all lengths.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return options


def _is_dynamically_quantised(weights: Path) -> bool:
    with weights.open("rb") as handle:
        tail = b""
        while block := handle.read(1 << 22):
            if any(name in tail + block for name in _DYNAMIC_QUANTISATION):
                return True
            tail = block[-32:]
    return False


def _cores() -> int:
    try:
        return min(32, len(os.sched_getaffinity(0)))
    except AttributeError:
        return min(32, os.cpu_count() or 1)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
