"""Sending one HTTP request: shared clients, plain replies, and the provider's own words out of an error."""

from __future__ import annotations

import email.utils
import ipaddress
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragnar_core.errors import EmbedError

if TYPE_CHECKING:
    import httpx

_lock = threading.Lock()
_clients: dict[bool, httpx.Client] = {}

_LONGEST = 300
_KEY_LIKE = re.compile(
    r"\b[Bb]earer\s+[\w.~+/=-]{6,}|\b(?:sk|pk|gsk|jina|pa|hf|pat|xai)[-_][\w*-]{6,}"
    r"|\b(?:AIza|AKIA|ASIA|dapi)[\w*-]{8,}|\S*\*{3,}\S*"
)


@dataclass(frozen=True)
class Request:
    """What to send. Headers may hold secrets and so are kept out of `repr`."""

    url: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def words(self) -> str:
        """The provider's message as one line that ends in a full stop; it may repeat a secret."""
        if 300 <= self.status < 400:
            return f"the address redirects to {self.headers.get('location', 'another')}: use that one."
        said = _message(self.json()) or _plain(self.text) or "no explanation."
        said = " ".join(said[:20_000].split())
        return said if said.endswith((".", "!", "?")) else said + "."


class UnreachableError(Exception):
    """There was no HTTP answer."""

    def __init__(self, message: str, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out


def json_request(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Request:
    """A POST of JSON."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return Request(
        url, content, {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
    )


def get_request(url: str, headers: Mapping[str, str] | None = None) -> Request:
    return Request(url, None, {"Accept": "application/json", **(headers or {})}, "GET")


def send(request: Request, connect_seconds: float, read_seconds: float) -> Reply:
    """Send once. Raises UnreachableError when no answer came, EmbedError when the URL is none."""
    import httpx

    timeout = httpx.Timeout(read_seconds, connect=connect_seconds)
    try:
        response = _client(request.url).request(
            request.method, request.url, content=request.body, headers=dict(request.headers), timeout=timeout
        )
    except httpx.ConnectTimeout:
        raise UnreachableError(f"could not be connected to within {connect_seconds:g} s.", True) from None
    except httpx.TimeoutException:
        raise UnreachableError(f"did not answer within {read_seconds:g} s.", True) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
        raise EmbedError(f"{request.url} is not an address that can be asked: {error}") from None
    except httpx.HTTPError as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        raise UnreachableError(f"could not be reached: {detail}.", False) from None
    return Reply(response.status_code, response.text, response.headers)


def retry_after(reply: Reply) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, `Retry-After` (seconds or a date), or
    Google's `RetryInfo` in the body. None when it does not say."""
    try:
        if milliseconds := reply.headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        if value := reply.headers.get("retry-after"):
            if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
                return float(value)
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
    delay = re.search(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"', reply.text)
    return float(delay.group(1)) if delay else None


def redact(text: str, secrets: list[str]) -> str:
    """At most 300 characters of the text, with known secrets, their beginnings and ends, and what looks like a
    key replaced by `[key]`."""
    known = sorted(filter(None, secrets), key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, "[key]")

    def part(match: re.Match[str]) -> str:
        word = match.group()
        return "[key]" if any(s.startswith(word) or s.endswith(word) for s in known) else word

    text = _KEY_LIKE.sub("[key]", re.sub(r"[\w-]{6,}", part, text))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def host(url: str) -> str:
    """Host and port of a URL, for people."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url


def is_private(url: str) -> bool:
    """Whether a URL names this machine or an address of a private network."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "localhost" or name.endswith((".localhost", ".local")):
        return True
    try:
        return ipaddress.ip_address(name).is_private
    except ValueError:
        return "." not in name


def base_url(url: str, what: str) -> str:
    """A base URL without trailing slash, or EmbedError: it must be http(s) and hold no user or password."""
    cleaned = url.strip().rstrip("/")
    parts = urlsplit(cleaned)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EmbedError(f"The address of {what} must start with http:// or https://, got {url!r}.")
    if parts.username or parts.password:
        raise EmbedError(f"The address of {what} must not hold a user or password: pass the key as api_key.")
    return cleaned


def _client(url: str) -> httpx.Client:
    """A client for the whole process: one that obeys the environment's proxies, one for this machine."""
    import httpx

    name = urlsplit(url).hostname or ""
    loopback = name == "localhost" or name.startswith("127.") or name == "::1"
    with _lock:
        if loopback not in _clients:
            _clients[loopback] = httpx.Client(
                trust_env=not loopback,
                follow_redirects=False,
                headers={"User-Agent": "ragnar-workbench"},
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
            )
        return _clients[loopback]


def _message(data: Any) -> str:
    """The message in the error bodies of the services known here, wherever they keep it."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "; ".join(filter(None, map(_message, data[:3])))
    if isinstance(data, dict):
        for name in (
            "error",
            "message",
            "Message",
            "detail",
            "msg",
            "errors",
            "error_description",
            "error_code",
        ):
            if data.get(name) and (said := _message(data[name])):
                return said
    return ""


def _plain(text: str) -> str:
    if "<" not in text:
        return text
    title = re.search(r"(?is)<title[^>]*>(.*?)</title>", text)
    return (
        title.group(1)
        if title
        else re.sub(r"(?s)<[^>]*>", " ", re.sub(r"(?is)<(script|style).*?</\1>", " ", text))
    )
