"""What belongs to a crawl, what is never read, and how gently to go."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragnar_core.documents.fetch import FetchSettings
from ragnar_core.documents.limits import check_number
from ragnar_core.documents.read import ReadOptions
from ragnar_core.errors import CrawlError

DOCUMENT_EXTENSIONS = frozenset(["pdf", "docx", "pptx", "xlsx", "xls", "epub", "csv"])
NEVER_READ = frozenset((
    "png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "ico", "bmp", "tif", "tiff", "css", "js", "mjs",
    "map", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "webm", "avi", "mov", "wav", "ogg",
    "flac", "zip", "gz", "tgz", "bz2", "xz", "7z", "rar", "tar", "exe", "dmg", "iso", "deb", "rpm", "whl",
    "jar", "apk", "bin",
))  # fmt: skip
NEVER_READ_TYPES = (
    "image/", "audio/", "video/", "font/", "text/css", "text/javascript", "application/javascript",
    "application/x-javascript", "application/font", "application/vnd.ms-fontobject", "application/zip",
    "application/gzip", "application/x-tar", "application/x-gzip", "application/wasm",
)  # fmt: skip
READABLE_KINDS = frozenset((
    "html", "pdf", "docx", "pptx", "xlsx", "xls", "epub", "csv", "text", "json", "xml", "feed", "notebook",
    "mail", "msg", "protected",
))  # fmt: skip


@dataclass(frozen=True)
class CrawlSettings:
    """What to read of a site, and how gently.

    Attributes:
        scope: "children" for the start page's folder and below, "site" for its whole host.
        same_scheme: do not take http and https for the same site.
        include: patterns (`*/guide/*`) of which an address must match one; empty for all.
        exclude: patterns of which it must match none.
        documents: take PDF and Office files along, also from elsewhere on the same host.
        sitemap: begin with the pages that robots.txt's Sitemap lines (or /sitemap.xml) name, too.
        max_depth: levels of links from the start.
        max_pages: addresses to fetch.
        max_seconds: time for all of it.
        concurrency: requests at a time; per_host: of these, to one host.
        delay: seconds between two requests to one host; robots.txt may ask for more.
        retries: further tries after a temporary failure (429, 5xx, time out, broken connection).
        respect_robots: leave out what robots.txt forbids.
        drop_tracking: take utm_... and the like out of addresses.
        max_queries: addresses that differ only by their query, of one page.
        fetch: time, size, redirects, user agent, private addresses.
        read: selectors and the like.

    Raises:
        CrawlError: the scope is unknown, a number is out of range, or patterns are no tuple of texts.
    """

    scope: str = "children"
    same_scheme: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    documents: bool = True
    sitemap: bool = False
    max_depth: int = 5
    max_pages: int = 1_000
    max_seconds: float = 3_600.0
    concurrency: int = 8
    per_host: int = 4
    delay: float = 0.0
    retries: int = 2
    respect_robots: bool = True
    drop_tracking: bool = True
    max_queries: int = 200
    fetch: FetchSettings = field(default_factory=FetchSettings)
    read: ReadOptions = field(default_factory=ReadOptions)

    def __post_init__(self) -> None:
        if self.scope not in ("children", "site"):
            raise CrawlError(f"scope must be 'children' or 'site', not {self.scope!r}.")
        for name in ("include", "exclude"):
            patterns = getattr(self, name)
            if not isinstance(patterns, tuple | list) or not all(isinstance(one, str) for one in patterns):
                raise CrawlError(
                    f"{name} must be a tuple of patterns such as ('*/guide/*',), not {patterns!r}."
                )
        for name in ("max_depth", "max_pages", "retries", "max_queries"):
            check_number(name, getattr(self, name), 0, whole=True, error=CrawlError)
        for name in ("concurrency", "per_host"):
            check_number(name, getattr(self, name), 1, whole=True, error=CrawlError)
        for name in ("max_seconds", "delay"):
            check_number(name, getattr(self, name), 0, error=CrawlError)
        if not isinstance(self.fetch, FetchSettings) or not isinstance(self.read, ReadOptions):
            raise CrawlError("fetch must be FetchSettings and read must be ReadOptions.")


@dataclass(frozen=True)
class CrawlProgress:
    """How far a crawl is: addresses found, queued, read as documents, failed, skipped; and the latest one."""

    found: int
    queued: int
    read: int
    failed: int
    skipped: int
    url: str = ""
