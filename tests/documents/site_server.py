"""A web server on this machine for tests: a small site with all the manners, good and bad, of real ones."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Route = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers from the server's routes; an unknown path is a 404 with an HTML body."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body go out apart; waiting between them costs 40 ms a page
    server: SiteServer

    def do_GET(self) -> None:
        self.server.note(self)
        path = urlsplit(self.path).path
        route = (
            self.server.routes.get(self.path) or self.server.routes.get(path) or self.server.fallback(path)
        )
        try:
            if route is None:
                self.answer(b"<html><body><h1>Not here</h1></body></html>", status=404)
            else:
                route(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self.server.leave()

    do_HEAD = do_GET  # noqa: N815

    def answer(
        self, body: bytes, *, status: int = 200, kind: str = "text/html; charset=utf-8", **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Keep the test's output clean."""


class SiteServer(ThreadingHTTPServer):
    """The server, its routes by path, and what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: str = "127.0.0.1") -> None:
        super().__init__((address, 0), Handler)
        self.routes: dict[str, Route] = {}
        self.patterns: list[Callable[[str], Route | None]] = []
        self.asked: list[tuple[str, dict[str, str], float]] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_address[1]}"

    @property
    def paths(self) -> Counter[str]:
        return Counter(path for path, _, _ in self.asked)

    def note(self, handler: Handler) -> None:
        with self._lock:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.asked.append((handler.path, headers, time.monotonic()))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)

    def leave(self) -> None:
        with self._lock:
            self.at_once -= 1

    def fallback(self, path: str) -> Route | None:
        return next((route for pattern in self.patterns if (route := pattern(path)) is not None), None)

    def page(self, path: str, body: str, *, title: str = "", **headers: str) -> None:
        """An HTML page."""
        html = f"<html><head><title>{title}</title></head><body><main>{body}</main></body></html>".encode()
        self.routes[path] = lambda handler: handler.answer(html, **headers)

    def file(self, path: str, body: bytes, kind: str, **headers: str) -> None:
        """Anything else."""
        self.routes[path] = lambda handler: handler.answer(body, kind=kind, **headers)

    def redirect(self, path: str, target: str, status: int = 302) -> None:
        self.routes[path] = lambda handler: handler.answer(b"", status=status, Location=target)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


def gzip_bomb(megabytes: int) -> bytes:
    """Zeros, packed; some thousandth of the size."""
    return gzip.compress(bytes(megabytes * 1_000_000), 9)


def drip(handler: Handler) -> None:
    """A byte now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def hang_up(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True
    handler.connection.close()


def cut_short(handler: Handler) -> None:
    """Promise more bytes than there are."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"<p>only this</p>")
    handler.close_connection = True
