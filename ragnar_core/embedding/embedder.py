"""What every embedding model is to the rest of the house: texts in, one float32 row a text out."""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragnar_core.errors import EmbedError

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
Purpose = Literal["document", "query"]
TooLong = Literal["truncate", "refuse"]
Progress = Callable[[int, int], None]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))


class EmbedRunError(EmbedError):
    """An embedding run that ended early. What was finished before is kept.

    `vectors` is float32 `(n, dim)` with NaN rows where nothing was computed (None when nothing was), `done` a
    bool array `(n,)`. `position` is the place of the one text that was to blame, None when it was not a text.
    """

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.vectors: FloatArray | None = None
        self.done: NDArray[np.bool_] | None = None

    def place(self, rows: Sequence[int], count: int) -> None:
        """Turn the place among the texts that were sent into the place among all, and name it in the message:
        `{text}` becomes "text 3 of 5"."""
        if self.position is not None:
            self.position = rows[self.position]
            message = str(self).replace("{text}", f"text {self.position + 1} of {count}", 1)
            self.args = (message[:1].upper() + message[1:],)


class EmbedCancelledError(EmbedRunError):
    """The caller's cancel event was set. Finished vectors are in `vectors` and `done`."""


@dataclass
class EmbedReport:
    """What happened during one `embed`: hand an empty one in and read it afterwards.

    `blank` and `truncated` are positions in the list of texts. `tokens` is as the provider counted them
    (0 where it does not say), `seconds` is wall time.
    """

    texts: int = 0
    blank: list[int] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    requests: int = 0
    retries: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def notes(self) -> list[str]:
        """Sentences for a person; empty when there is nothing to say."""
        lines = []
        if self.blank:
            lines.append(f"{_texts(self.blank)} blank and {_has(self.blank)} no vector.")
        if self.truncated:
            lines.append(f"{_texts(self.truncated)} longer than the model reads; the end was cut off.")
        if self.retries:
            lines.append(f"{self.retries} of {self.requests} requests had to be repeated.")
        return lines


@dataclass(frozen=True)
class ModelCheck:
    """What one small request showed: dimension, seconds it took, and the limits that will be kept to."""

    label: str
    dim: int
    seconds: float
    max_tokens: int | None = None
    batch_items: int | None = None
    concurrency: int | None = None

    @property
    def sentence(self) -> str:
        """One line for a person."""
        limits = [f"{self.dim} dimensions", f"answered in {self.seconds:.2f} s"]
        if self.max_tokens:
            limits.append(f"reads {self.max_tokens} tokens a text")
        if self.batch_items:
            limits.append(f"{self.batch_items} texts a request, {self.concurrency} requests at a time")
        return f"{self.label}: {', '.join(limits)}."


class Embedder(ABC):
    """A model that turns texts into vectors.

    A blank text (empty, white space, None, or invisible characters only) is never sent to a model: its
    row is NaN, which a store refuses. Every other row is finite and not all zero.
    """

    label: str
    max_tokens: int | None = None
    counts_exactly: bool = False

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """JSON without secrets, enough for `embedder_from_config` to make the embedder again."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Numbers a vector."""

    @abstractmethod
    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        """Yield (positions in `texts`, their vectors) as they are ready, in any order."""

    def embed(
        self,
        texts: Sequence[str | None],
        *,
        progress: Progress | None = None,
        cancel: threading.Event | None = None,
        report: EmbedReport | None = None,
    ) -> FloatArray:
        """Vectors of documents' texts: float32 `(n, dim)`, row i for text i, NaN for a blank text.

        `progress(done, total)` is called on the calling thread after every batch. Setting `cancel` stops
        between batches with `EmbedCancelledError`; that and any other `EmbedRunError` carries what was done.
        """
        if isinstance(texts, str):
            raise EmbedError("embed takes a list of texts; for one text pass [text].")
        return self._collect(texts, "document", progress, cancel, report)

    def embed_query(self, text: str) -> FloatArray:
        """The vector of a search query: float32 `(dim,)`. Raises EmbedError on a blank query."""
        if is_blank(text):
            raise EmbedError("The query is blank: there is nothing to embed. Type at least one word.")
        row: FloatArray = self._collect([text], "query", None, None, None)[0]
        return row

    def embed_queries(self, texts: Sequence[str]) -> FloatArray:
        """The vectors of several search queries, in as few calls of the model as may be: float32 `(n, dim)`, row i
        as `embed_query(texts[i])`. Raises EmbedError on a blank query."""
        if isinstance(texts, str):
            raise EmbedError("embed_queries takes a list of texts; for one text use embed_query.")
        if any(is_blank(text) for text in texts):
            raise EmbedError("One of the queries is blank: there is nothing to embed. Leave it out.")
        return self._collect(texts, "query", None, None, None)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Tokens a text, int64 `(n,)`: an estimate (a token for every four characters) unless
        `counts_exactly` says otherwise."""
        return np.array([-(-len(text) // 4) for text in texts], dtype=np.int64)

    def test(self) -> ModelCheck:
        """Embed one word. Raises EmbedError when that does not work."""
        self.embed_query("test")
        started = time.monotonic()
        vector = self.embed_query("test")
        return ModelCheck(self.label, len(vector), time.monotonic() - started, self.max_tokens)

    def __call__(self, texts: Sequence[str | None]) -> FloatArray:
        return self.embed(texts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label!r})"

    def _collect(
        self,
        texts: Sequence[str | None],
        purpose: Purpose,
        progress: Progress | None,
        cancel: threading.Event | None,
        report: EmbedReport | None,
    ) -> FloatArray:
        report = EmbedReport() if report is None else report
        cancel = threading.Event() if cancel is None else cancel
        started = time.monotonic()
        filled = [i for i, text in enumerate(texts) if not is_blank(text)]
        report.texts += len(texts)
        report.blank += sorted(set(range(len(texts))) - set(filled))
        first_truncated = len(report.truncated)

        rows = np.array(filled, dtype=np.int64)
        done = np.ones(len(texts), dtype=np.bool_)
        done[rows] = False
        out: FloatArray | None = None
        try:
            with closing(
                _generator(self._stream([clean(texts[i]) for i in filled], purpose, report, cancel))
            ) as s:
                for positions, vectors in s:
                    sent = np.asarray(positions, dtype=np.int64)
                    self._check(vectors, sent)
                    here = rows[sent]
                    if out is None:
                        out = np.full((len(texts), vectors.shape[1]), np.nan, dtype=np.float32)
                    out[here] = vectors
                    done[here] = True
                    if progress is not None:
                        progress(int(done.sum()), len(texts))
                    if cancel.is_set() and not done.all():
                        raise EmbedCancelledError(
                            f"Embedding was stopped after {int(done.sum())} of {len(texts)} texts."
                        )
            if not done.all():
                raise EmbedRunError(
                    f"{self.label} left {int((~done).sum())} of {len(texts)} texts without a vector."
                )
        except EmbedRunError as failure:
            failure.vectors, failure.done = out, done
            failure.place(filled, len(texts))
            raise
        finally:
            report.truncated[first_truncated:] = sorted(
                filled[i] for i in set(report.truncated[first_truncated:])
            )
            report.seconds += time.monotonic() - started
        if out is None:
            out = np.full(
                (len(texts), self.dim if len(texts) else self._known_dim()), np.nan, dtype=np.float32
            )
        if progress is not None and not filled:
            progress(len(texts), len(texts))
        return out

    def _known_dim(self) -> int:
        """The dimension, or 0 where finding out would cost a request."""
        return self.dim

    def _check(self, vectors: FloatArray, rows: IntArray) -> None:
        if vectors.ndim != 2 or len(vectors) != len(rows):
            raise EmbedRunError(
                f"{self.label} returned an array of shape {vectors.shape} for {len(rows)} texts; "
                f"expected ({len(rows)}, dimension)."
            )
        expected = self._known_dim()
        if expected and vectors.shape[1] != expected:
            raise EmbedRunError(
                f"{self.label} returned vectors of {vectors.shape[1]} numbers, expected {expected}. "
                "Was the model changed? Make a new store, or go back to the model that built this one."
            )
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            raise EmbedRunError(
                f"{self.label} returned NaN or infinite numbers for {{text}}.", position=int(rows[bad][0])
            )
        zero = ~vectors.any(axis=1)
        if zero.any():
            raise EmbedRunError(
                f"{self.label} returned a vector of zeros for {{text}}.", position=int(rows[zero][0])
            )


def is_blank(text: str | None) -> bool:
    """True for None and for a text without a visible character."""
    return text is None or not text.strip() or not text.translate(_INVISIBLE).strip()


def clean(text: str | None) -> str:
    """The text with lone surrogates, which no tokenizer and no JSON takes, as U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text or "")


def normalise(vectors: FloatArray) -> FloatArray:
    """Rows scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    scaled: FloatArray = (vectors / lengths).astype(np.float32, copy=False)
    return scaled


def _generator(
    stream: Iterator[tuple[Sequence[int], FloatArray]],
) -> Any:
    yield from stream


def _texts(positions: list[int]) -> str:
    return "1 text is" if len(positions) == 1 else f"{len(positions)} texts are"


def _has(positions: list[int]) -> str:
    return "has" if len(positions) == 1 else "have"
