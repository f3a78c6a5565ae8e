"""Addresses: one spelling for each, resolution as browsers do it, and who is whose child."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

PORTS = {"http": 80, "https": 443}
TRACKING = re.compile(r"^(utm_\w+|gclid|fbclid|msclkid|mc_cid|mc_eid|igshid)$", re.I)
PATH_SAFE = "/:@!$&'()*+,;=~-._%"
QUERY_SAFE = PATH_SAFE + "?[]"
ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
STRAY_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def canonical(url: str, *, drop_tracking: bool = False) -> str | None:
    """The one spelling of an http(s) URL under which it is fetched and remembered; None for anything else.

    Scheme and host in lower case (the host as IDNA), no default port, no user or password, no fragment, no
    dot segments, an empty path as `/`; what must be escaped is, and nothing else. The trailing slash stays
    as it is: with and without it are two addresses. `drop_tracking` takes out utm_... and the like.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in PORTS or not parts.hostname:
        return None
    host = _ascii_host(parts.hostname)
    if host is None:
        return None
    netloc = f"[{host}]" if ":" in host else host
    if port is not None and port != PORTS[scheme]:
        netloc += f":{port}"
    path = _escaped(_without_dots(parts.path or "/"), PATH_SAFE)
    query = _escaped(parts.query, QUERY_SAFE)
    if drop_tracking and query:
        query = "&".join(p for p in query.split("&") if not TRACKING.match(p.split("=", 1)[0]))
    return urlunsplit((scheme, netloc, path, query, ""))


def resolve(base: str, link: str) -> str | None:
    """The canonical address that `link` on the page `base` leads to; None when that is no http(s) address."""
    link = re.sub(r"[\t\r\n]", "", link.strip())
    try:
        return canonical(urljoin(base, link))
    except ValueError:
        return None


def origin_of(url: str) -> str:
    """Scheme, host and port: "https://example.com"."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True)
class Scope:
    """The part of a site that counts: a host, a port and a folder.

    Attributes:
        host: lower case.
        port: None for the default one of either scheme.
        folder: a path that ends with "/"; whole segments count, so `/docs/` does not hold `/docs-private/x`.
        scheme: the only one allowed; None allows http and https.
    """

    host: str
    port: int | None
    folder: str
    scheme: str | None = None

    @classmethod
    def of(
        cls, url: str, *, same_scheme: bool = False, whole_site: bool = False, prefix: bool = False
    ) -> Scope | None:
        """The scope of a start page: its folder; with `prefix`, the given path and what is below it."""
        start = canonical(url)
        if start is None:
            return None
        parts = urlsplit(start)
        path = parts.path
        folder = "/" if whole_site else path if prefix else path[: path.rindex("/") + 1]
        return cls(parts.hostname or "", parts.port, folder, parts.scheme if same_scheme else None)

    def holds(self, url: str) -> bool:
        """Whether the address lies in the scope."""
        address = canonical(url)
        if address is None:
            return False
        parts = urlsplit(address)
        if (
            parts.hostname != self.host
            or parts.port != self.port
            or (self.scheme or parts.scheme) != parts.scheme
        ):
            return False
        folder = self.folder if self.folder.endswith("/") else self.folder + "/"
        return parts.path.startswith(folder) or parts.path == self.folder


def _ascii_host(host: str) -> str | None:
    host = host.lower()
    if host.isascii():
        return None if re.search(r"[\s<>\"'\\^`{|}%]", host) else host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return None


def _without_dots(path: str) -> str:
    if "/." not in path:
        return path
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            if segments:
                segments.pop()
        elif segment != ".":
            segments.append(segment)
    if path.endswith(("/.", "/..")):
        segments.append("")
    return "/" + "/".join(segments)


def _escaped(text: str, safe: str) -> str:
    text = STRAY_PERCENT.sub("%25", text)
    text = quote(text, safe=safe)
    return ESCAPE.sub(_tidy_escape, text)


def _tidy_escape(match: re.Match[str]) -> str:
    character = unquote(match[0])
    return character if character in UNRESERVED else match[0].upper()
