"""Sitemaps: lists of addresses, and lists of such lists; plain, packed with gzip, or as lines of text."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from ragnar_core.errors import CrawlError

MOST_BYTES = 50_000_000  # unpacked, as sitemaps.org allows
MOST_LOCATIONS = 50_000
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Sitemap:
    """What one sitemap file holds.

    Attributes:
        pages: addresses of pages, in order, each once.
        sitemaps: addresses of further sitemaps.
    """

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def is_sitemap(data: bytes) -> bool:
    """Whether the bytes open like a sitemap or an index of them (packed or not)."""
    head = gunzip(data[:20_000], 20_000) if data.startswith(GZIP) else data
    opening = head[:2_000].lower()
    return b"<urlset" in opening or b"<sitemapindex" in opening


def parse_sitemap(data: bytes) -> Sitemap:
    """The addresses in a sitemap. Whitespace around them is dropped, pictures and videos are not pages.

    Raises:
        CrawlError: neither XML nor lines of addresses, or larger than 50 MB unpacked.
    """
    if data.startswith(GZIP):
        data = gunzip(data, MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise CrawlError("The sitemap is larger than 50 MB; split it, as sitemaps.org asks.")
    if b"<" not in data[:1_000]:
        return _from_lines(data)
    from lxml import etree

    # Entities are left alone and nothing is loaded: a sitemap comes from anywhere.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise CrawlError(f"The sitemap is not well-formed XML: {error}.") from None
    if root is None:
        raise CrawlError("The sitemap is not XML.")
    locations: dict[str, list[str]] = {"url": [], "sitemap": []}
    for element in root.iter():
        if not isinstance(element.tag, str) or _local(element.tag) != "loc" or not element.text:
            continue
        parent = element.getparent()
        kind = _local(parent.tag) if parent is not None else ""
        # `<image:loc>` has a parent of its own; a bare `<loc>` under the root counts as a page.
        if kind in locations:
            locations[kind].append(element.text.strip())
    return Sitemap(_once(locations["url"]), _once(locations["sitemap"]))


def gunzip(data: bytes, limit: int) -> bytes:
    """Unpack gzip, up to `limit` bytes.

    Raises:
        CrawlError: the data is damaged.
    """
    try:
        return zlib.decompressobj(31).decompress(data, limit + 1)
    except zlib.error as error:
        raise CrawlError(f"The packed sitemap is damaged: {error}.") from None


def _from_lines(data: bytes) -> Sitemap:
    lines = [line.strip() for line in data.decode("utf-8-sig", errors="replace").split("\n")]
    pages = _once([line for line in lines if line.startswith(("http://", "https://"))])
    if not pages:
        raise CrawlError("This is no sitemap: it holds neither XML nor lines with addresses.")
    return Sitemap(pages)


def _once(values: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values[:MOST_LOCATIONS] if value))


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1].lower()
