"""The one request loop that every embedding service goes through.

Batches within the provider's limits, several requests in flight, repetition with waiting, a refused batch
halved until the guilty text is known, answers checked and put in order, and nothing lost that was already
paid for.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ragnar_core.embedding.embedder import (
    EmbedCancelledError,
    EmbedReport,
    EmbedRunError,
    FloatArray,
    Purpose,
    TooLong,
)
from ragnar_core.embedding.http import Reply, Request, UnreachableError, retry_after, send
from ragnar_core.errors import EmbedError

_REPEAT = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_REFUSED = {400, 413, 422}
# What llama.cpp and Ollama say, with status 500, of a text that they will never take.
_REFUSED_BY_500 = ("too large to process", "context length", "unsupported value: nan")
_LENGTH_WORDS = ("long", "length", "token", "context", "exceed", "too large", "maximum", "size", "limit")
_QUERY_SECONDS = 20.0
_CONNECT_TRIES = 4


@dataclass(frozen=True)
class Limits:
    """What a provider takes. `items`, `characters` and `tokens` are for one request, `text_characters` and
    `text_tokens` for one text. Tokens are estimated as UTF-8 bytes / 3, which is on the safe side."""

    items: int = 64
    characters: int | None = None
    tokens: int | None = None
    text_characters: int | None = None
    text_tokens: int | None = None


@dataclass(frozen=True)
class RequestSettings:
    """How requests are sent. `retry_seconds` bounds one request with all its repetitions."""

    batch_size: int | None = None
    concurrency: int = 4
    connect_seconds: float = 10.0
    read_seconds: float = 60.0
    retry_seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 30.0
    too_long: TooLong = "truncate"


@dataclass(frozen=True)
class Answer:
    """A provider's answer: vectors in the order of the texts, tokens counted, texts it says it truncated."""

    vectors: FloatArray
    tokens: int = 0
    truncated: Sequence[int] = ()


class AnswerError(ValueError):
    """An answer with status 200 that does not hold one vector for each text."""


class ProviderError(EmbedRunError):
    """A service refused, failed or could not be reached. `status` is None when there was no HTTP answer."""

    def __init__(
        self, message: str, *, status: int | None = None, words: str = "", position: int | None = None
    ) -> None:
        super().__init__(message, position=position)
        self.status = status
        self.words = words

    @property
    def refused(self) -> bool:
        """Whether the provider would not take what was sent, so that less of it may be taken."""
        said = self.words.lower()
        return self.status in _REFUSED or (
            self.status == 500 and any(words in said for words in _REFUSED_BY_500)
        )


class Service(Protocol):
    """What the loop needs to know about a provider."""

    def describe(self) -> str:
        """Provider, model and host, for error messages."""

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        """The HTTP request for these texts; called again for each repetition."""

    def read(self, data: Any, count: int) -> Answer:
        """The vectors in the decoded JSON. Raises AnswerError."""

    def hint(self, status: int | None, words: str) -> str:
        """What the person can do about this error."""

    def is_local(self) -> bool:
        """True for a server on this machine or network: one that is not there is not asked again."""

    def learn_items(self, items: int) -> None:
        """Remember that a request may not hold more texts than this."""

    def redact(self, text: str) -> str:
        """The text without the service's secrets."""


def request_vectors(
    service: Service,
    texts: list[str],
    purpose: Purpose,
    limits: Limits,
    settings: RequestSettings,
    report: EmbedReport,
    cancel: threading.Event,
) -> Iterator[tuple[Sequence[int], FloatArray]]:
    """Yield (positions, vectors) as answers arrive. Raises ProviderError after all that succeeded."""
    return _Run(service, texts, purpose, limits, settings, report).stream(cancel)


def estimated_tokens(text: str) -> int:
    """Tokens that a text takes at most for common tokenizers: a third of its UTF-8 bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


@dataclass
class _Outcome:
    done: list[tuple[Sequence[int], FloatArray]] = field(default_factory=list)
    error: EmbedRunError | None = None
    cut: bool = False


class _Run:
    def __init__(
        self,
        service: Service,
        texts: list[str],
        purpose: Purpose,
        limits: Limits,
        settings: RequestSettings,
        report: EmbedReport,
    ) -> None:
        self._service = service
        self._purpose = purpose
        self._limits = limits
        self._settings = settings
        self._report = report
        self._items = max(1, min(limits.items, settings.batch_size or limits.items))
        self._seconds = min(settings.retry_seconds, _QUERY_SECONDS if purpose == "query" else float("inf"))
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._pause_until = 0.0
        self._succeeded = False
        self._texts = [self._fit(i, text) for i, text in enumerate(texts)]

    def stream(self, cancel: threading.Event) -> Iterator[tuple[Sequence[int], FloatArray]]:
        outcomes: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        start, in_flight = 0, 0
        error: EmbedRunError | None = None
        try:
            while True:
                while error is None and start < len(self._texts) and in_flight < self._settings.concurrency:
                    end = self._batch_end(start)
                    # Daemon threads, not a pool: a cancelled run must not hold the program for a read
                    # timeout.
                    threading.Thread(
                        target=self._work,
                        args=(range(start, end), outcomes),
                        name="embed-request",
                        daemon=True,
                    ).start()
                    start, in_flight = end, in_flight + 1
                if in_flight == 0:
                    break
                if cancel.is_set():
                    raise EmbedCancelledError("Embedding was stopped; what had been answered is kept.")
                try:
                    outcome = outcomes.get(timeout=0.1)
                except queue.Empty:
                    continue
                in_flight -= 1
                yield from outcome.done
                if outcome.error is not None:
                    error = error or outcome.error
                    self._stop.set()
            if error is not None:
                raise error
        finally:
            self._stop.set()

    def _work(self, positions: range, outcomes: queue.SimpleQueue[_Outcome]) -> None:
        try:
            outcome = self._batch(positions)
        except EmbedError as error:
            outcome = _Outcome(error=EmbedRunError(str(error)))
        except Exception as error:
            name = type(error).__name__
            words = self._service.redact(f"{name}: {error}")
            outcome = _Outcome(error=EmbedRunError(f"{self._service.describe()} failed: {words}"))
        outcomes.put(outcome)

    def _batch_end(self, start: int) -> int:
        """End of the batch that starts here: as many texts as one request may hold, at least one."""
        characters = tokens = 0
        for end in range(start, min(len(self._texts), start + self._items)):
            characters += len(self._texts[end])
            tokens += estimated_tokens(self._texts[end])
            if end > start and (
                (self._limits.characters is not None and characters > self._limits.characters)
                or (self._limits.tokens is not None and tokens > self._limits.tokens)
            ):
                return end
        return min(len(self._texts), start + self._items)

    def _batch(self, positions: range) -> _Outcome:
        try:
            answer = self._ask([self._texts[i] for i in positions])
        except EmbedRunError as error:
            if not isinstance(error, ProviderError) or not error.refused:
                return _Outcome(error=error)
            if len(positions) == 1:
                return self._refused_text(positions, error)
            return self._halves(positions)
        self._truncated(positions[i] for i in answer.truncated)
        return _Outcome(done=[(positions, answer.vectors)])

    def _halves(self, positions: range) -> _Outcome:
        middle = (len(positions) + 1) // 2
        outcome = self._batch(positions[:middle])
        if outcome.error is None:
            right = self._batch(positions[middle:])
            outcome = _Outcome(outcome.done + right.done, right.error, outcome.cut or right.cut)
        if outcome.error is None and not outcome.cut:
            # Both halves were taken as they are, so it was the batch that was too large and not a text.
            largest = max(len(part) for part, _ in outcome.done)
            with self._lock:
                self._items = min(self._items, largest)
                self._service.learn_items(self._items)
        return outcome

    def _refused_text(self, positions: range, error: ProviderError) -> _Outcome:
        place = positions[0]
        if self._settings.too_long == "truncate" and any(w in error.words.lower() for w in _LENGTH_WORDS):
            text = self._texts[place]
            while len(text) > 40:
                text = text[: len(text) * 7 // 10]
                try:
                    answer = self._ask([text])
                except ProviderError as again:
                    if not again.refused:
                        return _Outcome(error=again)
                    continue
                self._truncated([place])
                return _Outcome(done=[(positions, answer.vectors)], cut=True)
        if not self._succeeded and self._refuses_anything():
            return _Outcome(error=error)
        preview = " ".join(self._texts[place].split())[:40]
        message = (
            f"{self._service.describe()} refused {{text}} (“{preview}…”) with "
            f"HTTP {error.status}: {error.words}{self._service.hint(error.status, error.words)}"
        )
        return _Outcome(error=ProviderError(message, status=error.status, words=error.words, position=place))

    def _refuses_anything(self) -> bool:
        """Whether even one harmless word is refused: then the settings are wrong and no text is guilty."""
        try:
            self._ask(["test"])
        except ProviderError as error:
            return error.refused
        return False

    def _ask(self, texts: list[str]) -> Answer:
        """One request, repeated while that may help and time is left."""
        deadline = time.monotonic() + self._seconds
        tries = malformed = 0
        while True:
            self._wait(self._pause_until - time.monotonic())
            tries += 1
            with self._lock:
                self._report.requests += 1
                self._report.retries += tries > 1
            asked_to_wait: float | None = None
            try:
                reply = send(
                    self._service.build(texts, self._purpose),
                    self._settings.connect_seconds,
                    self._settings.read_seconds,
                )
            except UnreachableError as error:
                problem = self._problem(None, self._service.redact(str(error)))
                if not error.timed_out and (self._service.is_local() or tries >= _CONNECT_TRIES):
                    raise problem from None
            else:
                if reply.ok:
                    try:
                        return self._accept(reply, len(texts))
                    except AnswerError as error:
                        problem = ProviderError(f"{self._service.describe()} {error}", status=reply.status)
                        malformed += 1
                        if malformed > 1:
                            raise problem from None
                else:
                    words = self._service.redact(reply.words)
                    problem = self._problem(reply.status, words)
                    if problem.refused or reply.status not in _REPEAT or "insufficient_quota" in reply.text:
                        raise problem from None
                    asked_to_wait = retry_after(reply)
            wait = self._backoff(tries) if asked_to_wait is None else asked_to_wait + random.uniform(0, 0.25)
            if time.monotonic() + wait > deadline:
                asked = f" It asks to wait {asked_to_wait:.0f} s." if asked_to_wait is not None else ""
                raise ProviderError(
                    f"{problem}{asked} Gave up after {tries} {'try' if tries == 1 else 'tries'}.",
                    status=problem.status,
                    words=problem.words,
                )
            if problem.status == 429:
                with self._lock:
                    self._pause_until = max(self._pause_until, time.monotonic() + wait)
            self._wait(wait)

    def _accept(self, reply: Reply, count: int) -> Answer:
        answer = self._service.read(reply.json(), count)
        if answer.vectors.ndim != 2 or len(answer.vectors) != count:
            raise AnswerError(f"answered with {len(answer.vectors)} vectors for {count} texts.")
        with self._lock:
            self._succeeded = True
            self._report.tokens += answer.tokens
        return answer

    def _problem(self, status: int | None, words: str) -> ProviderError:
        said = words if status is None else f"answered HTTP {status}: {words}"
        return ProviderError(
            f"{self._service.describe()} {said}{self._service.hint(status, words)}",
            status=status,
            words=words,
        )

    def _backoff(self, tries: int) -> float:
        wait = self._settings.first_wait * 2.0 ** min(tries - 1, 20)
        return random.uniform(0.5, 1.0) * min(self._settings.longest_wait, wait)

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(max(0.0, seconds)):
            raise EmbedRunError(
                f"{self._service.describe()}: the run ended before this request was answered."
            )

    def _fit(self, place: int, text: str) -> str:
        limit = self._limits.text_characters
        if limit is None or len(text) <= limit:
            return text
        if self._settings.too_long == "refuse":
            raise EmbedRunError(
                f"{{text}} has {len(text)} characters, {self._service.describe()} takes {limit}. "
                'Choose a smaller chunk size, or too_long="truncate".',
                position=place,
            )
        self._truncated([place])
        return text[:limit]

    def _truncated(self, places: Iterator[int] | Sequence[int]) -> None:
        with self._lock:
            self._report.truncated += places


def rows(vectors: Any, count: int) -> FloatArray:
    """A list of `count` lists of numbers as float32 `(count, dim)`. Raises AnswerError on anything else."""
    if not isinstance(vectors, list) or len(vectors) != count:
        found = len(vectors) if isinstance(vectors, list) else "no"
        raise AnswerError(f"answered with {found} vectors for {count} texts.")
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        raise AnswerError(
            "answered with vectors of different lengths, or with something else than numbers."
        ) from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise AnswerError("answered with something else than a list of vectors.")
    return array
