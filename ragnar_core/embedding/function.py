"""Any callable as an embedder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    Embedder,
    EmbedReport,
    EmbedRunError,
    FloatArray,
    Purpose,
)
from ragnar_core.errors import EmbedError


class FunctionEmbedder(Embedder):
    """Wraps `function(texts: list[str]) -> (n, dim) numbers`.

    `dim` is found by embedding one word when it is not given. A file cannot hold the function: a store built
    with it is opened again with `embed=` naming the same function.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        dim: int | None = None,
        name: str | None = None,
        *,
        query: Callable[[list[str]], Any] | None = None,
        batch_size: int = 64,
    ) -> None:
        if not callable(function):
            raise EmbedError(f"An embedding function must be callable, got {type(function).__name__}.")
        if batch_size < 1:
            raise EmbedError(f"batch_size must be at least 1, got {batch_size}.")
        self._function = function
        self._query = query or function
        self._batch_size = batch_size
        self._dim = dim
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.label = f"{self.name} (Python function)"

    @property
    def config(self) -> dict[str, Any]:
        return {"provider": "function", "model": self.name, "dim": self.dim}

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._dim = int(self._call(self._function, ["dimension"]).shape[1])
        return self._dim

    def _known_dim(self) -> int:
        return self._dim or 0

    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        function = self._query if purpose == "query" else self._function
        for start in range(0, len(texts), self._batch_size):
            if cancel.is_set():
                raise EmbedCancelledError(f"Embedding was stopped after {start} of {len(texts)} texts.")
            batch = texts[start : start + self._batch_size]
            vectors = self._call(function, batch)
            if self._dim is None:
                self._dim = int(vectors.shape[1])
            report.requests += 1
            yield range(start, start + len(batch)), vectors

    def _call(self, function: Callable[[list[str]], Any], batch: list[str]) -> FloatArray:
        try:
            vectors = np.asarray(function(batch), dtype=np.float32)
        except EmbedError:
            raise
        except Exception as error:
            raise EmbedRunError(
                f"The embedding function {self.name} failed: {type(error).__name__}: {error}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(batch) or vectors.shape[1] == 0:
            raise EmbedRunError(
                f"The embedding function {self.name} must return one row a text, "
                f"got shape {vectors.shape} for {len(batch)} texts."
            )
        return vectors
