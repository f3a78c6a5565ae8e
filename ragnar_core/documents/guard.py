"""Connections that are opened to allowed addresses only, and on which no wait outlasts a deadline.

The address is checked where the socket is opened: the name is resolved once, each resulting address is
checked, and the connection goes to one that passed. So neither a redirect nor a name that resolves
differently the second time leads into a private network.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenAddressError(Exception):
    """A connection would have gone to an address that is not allowed."""


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over a pool that opens its sockets through a `GuardedBackend`."""

    def __init__(self, backend: httpcore.NetworkBackend, connections: int) -> None:
        super().__init__()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            network_backend=backend,
        )


class GuardedBackend(httpcore.NetworkBackend):
    """Resolves, checks and connects in one step. `deadlines.end` is the thread's (monotonic seconds)."""

    def __init__(
        self,
        allow_private: bool | tuple[str, ...],
        resolver: Callable[[str, int], Iterable[str]],
        deadlines: threading.local,
    ) -> None:
        self._allow = allow_private
        self._resolve = resolver
        self._deadlines = deadlines
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = list(dict.fromkeys(self._resolve(host, port)))
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(
                f"the name {host} is unknown ({getattr(error, 'strerror', None) or error})"
            ) from None
        allowed = [address for address in addresses if is_allowed(address, self._allow, host)]
        if not allowed:
            shown = addresses[0] if addresses else "nothing"
            raise ForbiddenAddressError(
                f"{host} leads to {shown}, a private or reserved address; "
                "set allow_private to read from your own network"
            )
        failure: Exception | None = None
        for address in allowed:
            try:
                stream = self._sockets.connect_tcp(
                    address, port, _left(self._deadlines, timeout), local_address, socket_options
                )
                return _DeadlineStream(stream, self._deadlines)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None
        raise failure

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        raise ForbiddenAddressError("sockets of this machine are not read")

    def sleep(self, seconds: float) -> None:
        self._sockets.sleep(seconds)


class _DeadlineStream(httpcore.NetworkStream):
    """A connection on which no wait outlasts the deadline of the thread's request, however bytes drip."""

    def __init__(self, stream: httpcore.NetworkStream, deadlines: threading.local) -> None:
        self._stream = stream
        self._deadlines = deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadlines, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadlines, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secure = self._stream.start_tls(ssl_context, server_hostname, _left(self._deadlines, timeout))
        return _DeadlineStream(secure, self._deadlines)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def is_allowed(address: str, allow_private: bool | tuple[str, ...], host: str = "") -> bool:
    """Whether a connection to an IP address may be opened: a public one always, else as the setting says."""
    ip = _unwrapped(ipaddress.ip_address(address.split("%")[0]))
    if ip.is_global and not ip.is_multicast:
        return True
    if isinstance(allow_private, bool):
        return allow_private
    for entry in allow_private:
        try:
            if ip in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            if entry.lower().rstrip(".") == host.lower().rstrip("."):
                return True
    return False


def _unwrapped(ip: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address stands for (mapped, 6to4, NAT64, Teredo), else the address."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    if ip in ipaddress.ip_network("64:ff9b::/96") or (ip in ipaddress.ip_network("::/96") and int(ip) > 1):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def addresses_of(host: str, port: int) -> list[str]:
    """The IP addresses that the system's resolver has for a host."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _left(deadlines: threading.local, timeout: float | None) -> float | None:
    end: float | None = getattr(deadlines, "end", None)
    if end is None:
        return timeout
    left = max(0.001, end - time.monotonic())
    return left if timeout is None else min(left, timeout)
