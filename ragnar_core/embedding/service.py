"""The part that all services share: settings, keys, prefixes, dimension, test and error texts."""

from __future__ import annotations

import os
import re
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypedDict
from urllib.parse import urlsplit

import numpy as np

from ragnar_core.embedding.embedder import (
    Embedder,
    EmbedReport,
    EmbedRunError,
    FloatArray,
    ModelCheck,
    Purpose,
    TooLong,
)
from ragnar_core.embedding.http import (
    Reply,
    Request,
    UnreachableError,
    base_url,
    host,
    is_private,
    redact,
    send,
)
from ragnar_core.embedding.prefixes import prefixes
from ragnar_core.embedding.request import (
    Answer,
    Limits,
    ProviderError,
    RequestSettings,
    request_vectors,
)
from ragnar_core.errors import EmbedError

_MOST_REQUESTS = 64

Key = str | Callable[[], str] | None


class ServiceOptions(TypedDict, total=False):
    """Settings that every service takes beside its own.

    `batch_size` texts a request at most, `concurrency` requests at the same time, `connect_seconds`,
    `read_seconds`, `retry_seconds` (a request with all its repetitions), `too_long` "truncate" or "refuse",
    `query_prefix` and `document_prefix` (None: what the model is known to expect), `dim` the dimension that
    the vectors must have.
    """

    batch_size: int | None
    concurrency: int
    connect_seconds: float
    read_seconds: float
    retry_seconds: float
    first_wait: float
    longest_wait: float
    too_long: TooLong
    query_prefix: str | None
    document_prefix: str | None
    dim: int | None


@dataclass(frozen=True)
class ModelInfo:
    """A model that a server offers. `embeds` is None where the server does not say what the model is for."""

    name: str
    embeds: bool | None = None
    max_tokens: int | None = None


class ServiceEmbedder(Embedder):
    """An embedder that asks a service. Nothing is sent, and no key is looked for, before it is used.

    Subclasses say where to send texts and where the vectors are in the answer. The key is an argument, a
    function that returns it, or the environment variable `key_variable`; it is never part of `config`,
    `repr` or an error.
    """

    provider: ClassVar[str]
    title: ClassVar[str]
    key_variable: ClassVar[str | None] = None
    key_required: ClassVar[bool] = True
    address_setting: ClassVar[str | None] = "base_url"
    # Hosts that the environment's key may travel to; one that starts with a dot is the end of a name.
    own_hosts: ClassVar[tuple[str, ...]] = ()
    limits: Limits = Limits()
    defaults: ClassVar[RequestSettings] = RequestSettings()

    def __init__(
        self,
        model: str,
        address: str,
        api_key: Key = None,
        settings: Mapping[str, Any] | None = None,
        options: ServiceOptions | None = None,
    ) -> None:
        options = options or {}
        if not isinstance(model, str) or not model.strip():
            raise EmbedError(f"{self.title} needs the name of a model, not {model!r}.")
        self.model = model
        self.base_url = base_url(address, self.title)
        self.label = f"{model} ({self.title} at {host(self.base_url)})"
        self._api_key = api_key
        self._settings = {name: value for name, value in (settings or {}).items() if value is not None}
        self._requests = _request_settings(self.title, self.defaults, options)
        known = prefixes(model) if self.uses_prefixes() else ("", "")
        query, document = options.get("query_prefix"), options.get("document_prefix")
        self.query_prefix = known[0] if query is None else query
        self.document_prefix = known[1] if document is None else document
        for name, text in (("query_prefix", query), ("document_prefix", document)):
            if text is not None and not isinstance(text, str):
                raise EmbedError(f"{name} of {self.title} must be text, got {text!r}.")
        for name, number in (("dims", self._settings.get("dims")), ("dim", options.get("dim"))):
            if number is not None and (not isinstance(number, int) or number < 1):
                raise EmbedError(
                    f"{name} of {self.title} must be a whole number of at least 1, got {number!r}."
                )
        self._dim = options.get("dim") or self._settings.get("dims")
        self.max_tokens = self.limits.text_tokens
        self._learned_items: int | None = None
        self._seen_key = ""

    @property
    def config(self) -> dict[str, Any]:
        changed = {
            f.name: getattr(self._requests, f.name)
            for f in fields(self._requests)
            if getattr(self._requests, f.name) != getattr(self.defaults, f.name)
        }
        texts = {"query_prefix": self.query_prefix, "document_prefix": self.document_prefix}
        dim = {"dim": self._dim} if self._dim else {}
        address = {self.address_setting: self.base_url} if self.address_setting else {}
        named = {"provider": self.provider, "model": self.model}
        return {**named, **address, **self._settings, **texts, **changed, **dim}

    @property
    def dim(self) -> int:
        """The dimension; where it was not given it is found with one request of one word."""
        if self._dim is None:
            self._collect(["dimension"], "document", None, None, None)
        return self._dim or 0

    def test(self) -> ModelCheck:
        """Ask for the vector of one word, with little patience. Raises EmbedError when that fails."""
        started = time.monotonic()
        hurried = replace(self._requests, retry_seconds=min(5.0, self._requests.retry_seconds))
        stream = self._ask(["test"], "query", hurried, EmbedReport(), threading.Event())
        try:
            vectors = next(iter(stream))[1]
            self._check(vectors, np.zeros(1, dtype=np.int64))
        except EmbedRunError as error:
            error.place([0], 1)
            raise
        seconds = time.monotonic() - started
        items, requests = self.batch_items(), self._requests.concurrency
        return ModelCheck(self.label, int(vectors.shape[1]), seconds, self.max_tokens, items, requests)

    def list_models(self) -> list[ModelInfo]:
        """The models that the server offers, those that embed first. Raises EmbedError if it cannot say."""
        request = self.models_request()
        if request is None:
            raise EmbedError(f"{self.title} does not list its models: type the name of one.")
        found = self.read_models(self.fetch(request))
        return sorted(found, key=lambda info: (info.embeds is not True, info.embeds is False, info.name))

    def fetch(self, request: Request) -> Any:
        """Decoded JSON of one request beside the loop. Raises ProviderError."""
        try:
            reply = send(request, self._requests.connect_seconds, min(30.0, self._requests.read_seconds))
        except UnreachableError as error:
            raise self._failed(None, self.redact(str(error))) from None
        if not reply.ok or reply.json() is None:
            raise self._failed(reply.status, self.redact(_words(reply)))
        return reply.json()

    # What a provider says about itself.

    @abstractmethod
    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        """The HTTP request for these texts."""

    @abstractmethod
    def read(self, data: Any, count: int) -> Answer:
        """The vectors in the decoded JSON of an answer. Raises AnswerError."""

    def models_request(self) -> Request | None:
        return None

    def read_models(self, data: Any) -> list[ModelInfo]:
        return []

    def uses_prefixes(self) -> bool:
        """Whether queries and passages are told apart by a prefix (and not by a field of the request)."""
        return True

    def hint(self, status: int | None, words: str) -> str:
        """What to do, as a sentence with a space before it."""
        if status in (401, 403):
            return (
                f" Check {self.key_variable} or api_key." if self.key_variable else " Check the credentials."
            )
        if status == 404:
            return f" Check the model's name and the address ({self.base_url})."
        if status is None:
            return (
                f" Is {self.title} running at {self.base_url}?" if self.is_local() else " Check the network."
            )
        return ""

    # What the loop needs.

    def describe(self) -> str:
        return f"{self.title} ({self.model} at {host(self.base_url)})"

    def is_local(self) -> bool:
        return is_private(self.base_url)

    def learn_items(self, items: int) -> None:
        self._learned_items = items

    def redact(self, text: str) -> str:
        return redact(text, self.secrets())

    def secrets(self) -> list[str]:
        """Values that must not appear in any text."""
        return [self._seen_key]

    def key(self) -> str:
        """The key, or EmbedError that says where to put it. Empty where a key is optional and absent."""
        key = self._find_key()
        self._seen_key = key or self._seen_key
        if not key and self.key_required:
            if not self.is_own_address():
                raise EmbedError(
                    f"{self.title} at {host(self.base_url)} needs a key: pass api_key. The "
                    f"environment's key is sent to {self.title}'s own address only."
                )
            raise EmbedError(
                f"{self.title} needs a key: set the environment variable {self.key_variable} or pass api_key."
            )
        return key or ""

    def bearer(self) -> dict[str, str]:
        key = self.key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def batch_items(self) -> int:
        """Texts a request: the provider's limit, the caller's, or what refusals have taught."""
        return min(filter(None, (self.limits.items, self._requests.batch_size, self._learned_items)))

    def _find_key(self) -> str | None:
        key = self._api_key() if callable(self._api_key) else self._api_key
        if not key and self.key_variable and not callable(self._api_key) and self.is_own_address():
            key = os.environ.get(self.key_variable)
        key = key.strip() if key else None
        if key and not re.fullmatch(r"[!-~]+", key):
            # Said here because the HTTP library would repeat the key in its own error.
            raise EmbedError(
                f"The key for {self.title} holds a character that no key has: was it copied whole?"
            )
        return key

    def is_own_address(self) -> bool:
        """Whether the environment's credentials may be sent to this address.

        A store file names the address that its vectors came from; one made to steal keys must not get them.
        """
        if self.base_url in self.trusted_addresses():
            return True
        parts = urlsplit(self.base_url)
        name = parts.hostname or ""
        return parts.scheme == "https" and any(
            name.endswith(own) if own.startswith(".") else name == own for own in self.own_hosts
        )

    def trusted_addresses(self) -> list[str]:
        """Addresses that the environment itself names."""
        return []

    def _known_dim(self) -> int:
        return self._dim or 0

    def _stream(
        self, texts: list[str], purpose: Purpose, report: EmbedReport, cancel: threading.Event
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        if texts:
            yield from self._ask(texts, purpose, self._requests, report, cancel)

    def _ask(
        self,
        texts: list[str],
        purpose: Purpose,
        settings: RequestSettings,
        report: EmbedReport,
        cancel: threading.Event,
    ) -> Iterator[tuple[Sequence[int], FloatArray]]:
        self.check()
        prefix = self.query_prefix if purpose == "query" else self.document_prefix
        limits = replace(self.limits, items=self.batch_items())
        for positions, vectors in request_vectors(
            self, [prefix + text for text in texts], purpose, limits, settings, report, cancel
        ):
            if self._dim is None:
                self._dim = int(vectors.shape[1])
            yield positions, vectors

    def check(self) -> None:
        """Raises EmbedError when a key or another setting is missing, before anything is sent."""
        self.key()

    def _failed(self, status: int | None, words: str) -> ProviderError:
        said = words if status is None else f"answered HTTP {status}: {words}"
        return ProviderError(
            f"{self.describe()} {said}{self.hint(status, words)}", status=status, words=words
        )


def setting(value: str, name: str, title: str) -> str:
    """A setting that becomes part of a host name or path, or EmbedError when it would lead somewhere else."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise EmbedError(
            f"The {name} of {title} may hold letters, digits, dots and dashes only, got {value!r}."
        )
    return value


def _words(reply: Reply) -> str:
    return "the answer is not JSON; is the address right?" if reply.ok else reply.words


def _request_settings(title: str, defaults: RequestSettings, options: ServiceOptions) -> RequestSettings:
    names = {f.name for f in fields(RequestSettings)}
    given = {name: value for name, value in options.items() if name in names and value is not None}
    settings = replace(defaults, **given)  # type: ignore[arg-type]
    if settings.too_long not in ("truncate", "refuse"):
        raise EmbedError(f'too_long must be "truncate" or "refuse", got {settings.too_long!r}.')
    for name in ("batch_size", "concurrency"):
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise EmbedError(f"{name} of {title} must be a whole number of at least 1, got {value!r}.")
    if settings.concurrency > _MOST_REQUESTS:
        raise EmbedError(
            f"concurrency of {title} may be {_MOST_REQUESTS} at most, got {settings.concurrency}."
        )
    for name in ("connect_seconds", "read_seconds", "retry_seconds"):
        if getattr(settings, name) <= 0:
            raise EmbedError(f"{name} of {title} must be more than 0, got {getattr(settings, name)!r}.")
    return settings
