"""Fetching over http(s) with bounds on time, size and place (see `guard`)."""

from __future__ import annotations

import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Self

import httpcore
import httpx

from ragnar_core.documents.guard import ForbiddenAddressError, GuardedBackend, GuardedTransport, addresses_of
from ragnar_core.documents.limits import check_number, megabytes
from ragnar_core.documents.urls import canonical, resolve
from ragnar_core.errors import CrawlError

USER_AGENT = "ragnar-workbench/0.1 (reads pages for one person's search store)"
SHORT_BODY = 20_000
REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class FetchSettings:
    """How to fetch.

    Attributes:
        user_agent: sent with each request, and looked up in robots.txt by its first word.
        timeout: seconds to wait for a connection or for more bytes.
        total_timeout: seconds for one address, redirects included.
        max_bytes: unpacked size of an answer.
        max_redirects: hops for one address.
        allow_private: True lets private, loopback and link-local addresses in; a tuple only those named
            (addresses, networks such as "10.0.0.0/8", or host names).

    Raises:
        CrawlError: a number is below 0 or none.
    """

    user_agent: str = USER_AGENT
    timeout: float = 10.0
    total_timeout: float = 60.0
    max_bytes: int = 50_000_000
    max_redirects: int = 10
    allow_private: bool | tuple[str, ...] = False

    def __post_init__(self) -> None:
        if not isinstance(self.user_agent, str) or not self.user_agent.strip():
            raise CrawlError(f"user_agent must be a text that names who asks, not {self.user_agent!r}.")
        for name in ("timeout", "total_timeout"):
            check_number(name, getattr(self, name), 0, error=CrawlError)
        for name in ("max_bytes", "max_redirects"):
            check_number(name, getattr(self, name), 0, whole=True, error=CrawlError)


@dataclass(frozen=True)
class Page:
    """An answer.

    Attributes:
        url: the address that answered, after redirects.
        requested: the address that was asked for.
        status: HTTP status, 200 or 304.
        headers: names in lower case.
        body: unpacked; None when the answer was not wanted (see `Fetcher.get`) or is a 304.
    """

    url: str
    requested: str
    status: int
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case; "" when unstated."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset that the header states."""
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = part.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'") or None
        return None


class FetchError(CrawlError):
    """An address gave no usable answer.

    Attributes:
        url: the address at fault (the last of a chain of redirects).
        status: the HTTP status, None when there was none.
        retry_after: seconds that the server asks to wait, None when unstated.
        temporary: whether trying again later may help.
    """

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        temporary: bool = False,
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason
        self.status = status
        self.retry_after = retry_after
        self.temporary = temporary


class Fetcher:
    """An HTTP client under `FetchSettings`, for any number of threads. Close it, or use it in `with`."""

    def __init__(
        self,
        settings: FetchSettings | None = None,
        *,
        connections: int = 16,
        cancel: threading.Event | None = None,
        resolver: Callable[[str, int], Iterable[str]] | None = None,
    ) -> None:
        self.settings = settings or FetchSettings()
        self._cancel = cancel
        self._deadlines = threading.local()
        backend = GuardedBackend(self.settings.allow_private, resolver or addresses_of, self._deadlines)
        # httpx's client above the transport is left out: it builds the next request of a redirect by itself
        # (and fails on odd ones), and takes proxies from the environment, which connect where no check sees.
        self._transport = GuardedTransport(backend, connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        wanted: Callable[[str, str], bool] | None = None,
        method: str = "GET",
    ) -> Page:
        """Fetch an address, following redirects.

        `wanted` is asked with (content type, url) before the body is read; when it says no, the page comes
        without one.

        Raises:
            FetchError: anything but a 2xx or 304 answer in time, in size and from an allowed address.
        """
        address = canonical(url)
        if address is None:
            raise FetchError(url, "only http and https addresses can be fetched")
        self._deadlines.end = time.monotonic() + self.settings.total_timeout
        seen: list[str] = []
        while True:
            seen.append(address)
            if len(seen) > self.settings.max_redirects + 1:
                raise FetchError(address, f"redirected more than {self.settings.max_redirects} times")
            answer = self._once(method, address, headers or {}, wanted, url)
            if isinstance(answer, Page):
                return answer
            target = resolve(address, answer)
            if target is None:
                raise FetchError(address, f"redirects to {answer[:200]!r}, which is no http or https address")
            if target in seen:
                raise FetchError(target, "redirects in a circle")
            address = target

    def _once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        wanted: Callable[[str, str], bool] | None,
        requested: str,
    ) -> Page | str:
        """One request: the page, or where it redirects to."""
        try:
            with self._answer(method, url, headers) as response:
                location: str | None = response.headers.get("location")
                if response.status_code in REDIRECTS and location:
                    _drain(response)
                    return location
                lower = {name.lower(): value for name, value in response.headers.items()}
                if response.status_code == 304:
                    return Page(url, requested, 304, lower, None)
                if not 200 <= response.status_code < 300:
                    _drain(response)
                    raise _status_error(url, response)
                page = Page(url, requested, response.status_code, lower, None)
                if method == "HEAD" or (wanted is not None and not wanted(page.content_type, url)):
                    return page
                return Page(url, requested, response.status_code, lower, self._body(url, response))
        except FetchError:
            raise
        except ForbiddenAddressError as error:
            raise FetchError(url, str(error)) from None
        except httpx.TimeoutException:
            raise FetchError(url, f"no answer within {self.settings.timeout:g} s", temporary=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, httpcore.ProtocolError, OSError) as error:
            raise FetchError(
                url, _plain(error), temporary=not isinstance(error, httpx.UnsupportedProtocol)
            ) from None
        except (ValueError, zlib.error) as error:
            raise FetchError(url, f"the answer cannot be read: {error}") from None

    @contextmanager
    def _answer(self, method: str, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        wait = self.settings.timeout
        request = httpx.Request(
            method,
            url,
            headers={
                "User-Agent": self.settings.user_agent,
                "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
                "Accept-Encoding": "gzip, deflate",
                **headers,
            },
            extensions={"timeout": {"connect": wait, "read": wait, "write": wait, "pool": None}},
        )
        response = self._transport.handle_request(request)
        response.request = request
        try:
            yield response
        finally:
            response.close()

    def _body(self, url: str, response: httpx.Response) -> bytes:
        limit = self.settings.max_bytes
        stated = response.headers.get("content-length", "")
        if stated.isdigit() and int(stated) > limit:
            raise FetchError(url, _too_large(limit))
        unpack = _unpacker(response.headers.get("content-encoding", ""), limit)
        body = bytearray()
        raw = 0
        for chunk in response.iter_raw():
            raw += len(chunk)
            body += unpack(chunk, limit + 1 - len(body))
            if len(body) > limit or raw > limit:
                raise FetchError(url, _too_large(limit))
            if time.monotonic() > self._deadlines.end:
                raise FetchError(
                    url, f"not complete within {self.settings.total_timeout:g} s", temporary=True
                )
            if self._cancel is not None and self._cancel.is_set():
                raise FetchError(url, "cancelled", temporary=True)
        return bytes(body)


def _drain(response: httpx.Response) -> None:
    """Read a short body that nobody wants: the connection can then serve the next request."""
    stated = response.headers.get("content-length", "")
    if stated.isdigit() and int(stated) <= SHORT_BODY:
        for _ in response.iter_raw():
            pass


def _unpacker(encoding: str, limit: int) -> Callable[[bytes, int], bytes]:
    """Unpacks chunk by chunk, never to more than asked for: a few kilobytes may stand for gigabytes."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda chunk, _: chunk
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is packed as {encoding!r}, which was not asked for")
    engine: Any = zlib.decompressobj(31 if "gzip" in encoding else 15)
    raw_deflate = encoding == "deflate"

    def unpack(chunk: bytes, most: int) -> bytes:
        nonlocal engine, raw_deflate
        try:
            out = engine.decompress(chunk, max(1, most))
        except zlib.error:
            if not raw_deflate:
                raise
            engine = zlib.decompressobj(-15)  # some servers leave the zlib header out
            out = engine.decompress(chunk, max(1, most))
        raw_deflate = False
        return bytes(out)

    return unpack


def _status_error(url: str, response: httpx.Response) -> FetchError:
    status = response.status_code
    reason = f"HTTP {status} {response.reason_phrase}".strip()
    wait = _retry_after(response.headers.get("retry-after"))
    return FetchError(
        url, reason, status=status, retry_after=wait, temporary=status in (408, 425, 429) or status >= 500
    )


def _retry_after(value: str | None) -> float | None:
    if not value:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, float(parsedate_to_datetime(value).timestamp()) - time.time())
    except (ValueError, TypeError):
        return None


def _too_large(limit: int) -> str:
    return f"larger than {megabytes(limit)} (max_bytes)"


def _plain(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, httpx.ConnectError) and "name" not in text:
        return f"cannot connect ({text})"
    if "incomplete" in text or "without sending complete" in text or "disconnected" in text:
        return f"the connection broke off ({text})"
    return text
