"""The work behind the Documents page: reading sources and crawling sites onto the shelf, as jobs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pages.shared.jobs import Job
from ragnar_core import (
    CrawlResult,
    CrawlSettings,
    CrawlState,
    DocumentError,
    FetchSettings,
    MarkdownDocument,
    RagnarError,
    Shelf,
    crawl,
    read_as_markdown,
    read_bytes,
)
from ragnar_core.documents.shelf import write_whole

KEEP_ORIGINAL = 5_000_000
HTML = (".html", ".htm", ".xhtml")


@dataclass(frozen=True)
class Source:
    """A thing to read: a name with its bytes, or a path or URL alone."""

    name: str
    data: bytes | None = None


@dataclass(frozen=True)
class Selectors:
    """Which part of an HTML page counts: CSS selectors to keep and to remove."""

    extract: tuple[str, ...] = ("main",)
    zap: tuple[str, ...] = ("nav",)


def split_selectors(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split(",") if part.strip())


def allow_private() -> bool | tuple[str, ...]:
    """Whether private addresses may be read: RAGNAR_ALLOW_PRIVATE is 1, or names hosts and networks."""
    value = os.environ.get("RAGNAR_ALLOW_PRIVATE", "").strip()
    if value.lower() in ("", "0", "no", "false"):
        return False
    return True if value.lower() in ("1", "yes", "true") else split_selectors(value)


def allowed_root() -> Path:
    """The folder below which paths may be read: RAGNAR_ROOT, or where the server was started."""
    return Path(os.environ.get("RAGNAR_ROOT") or Path.cwd()).resolve()


def files_below(given: str, root: Path, kinds: Sequence[str]) -> list[Path]:
    """The file of a path, or the readable files of a folder and the folders in it, hidden ones left out.

    Raises DocumentError for a path outside `root` (links are followed first), or one that is not there.
    """
    path = Path(given).expanduser()
    path = (path if path.is_absolute() else root / path).resolve()
    if not path.is_relative_to(root):
        raise DocumentError(
            f"{given} is outside {root}, the only folder that may be read here. Upload the file, or start the "
            "server with RAGNAR_ROOT set to the folder."
        )
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DocumentError(f"There is no file or folder {path}; check the path.")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower().lstrip(".") in kinds
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
        and file.is_file()
        and file.resolve().is_relative_to(root)
    )
    if not found:
        raise DocumentError(f"In {path} is no file of a kind that can be read ({', '.join(kinds)}).")
    return found


def read_one(source: Source, selectors: Selectors, job: Job | None = None) -> MarkdownDocument:
    """Raises DocumentError or CrawlError, each saying what to do."""
    options = {
        "html_extract_selectors": selectors.extract,
        "html_zap_selectors": selectors.zap,
        "cancel": job.cancel if job else None,
        "allow_private": allow_private(),
    }
    if job is not None:
        options["progress"] = lambda page, pages: setattr(
            job, "message", f"{source.name}, page {page} of {pages}"
        )
    if source.data is None:
        return read_as_markdown(source.name, **options)
    return read_bytes(source.data, source.name, origin=source.name, **options)


def read_all(job: Job, sources: Sequence[Source], shelf: Shelf, selectors: Selectors) -> list[str]:
    """Read each source onto the shelf; origins that were read. What fails is a line in `job.problems`."""
    read: list[str] = []
    failed: list[Source] = []
    job.retry = failed
    for number, source in enumerate(sources):
        if job.cancel.is_set():
            break
        job.report(number, len(sources), source.name)
        try:
            document = read_one(source, selectors, job)
            keep = source.data if source.name.lower().endswith(HTML) else None
            shelf.add(document, keep if keep is not None and len(keep) <= KEEP_ORIGINAL else None)
            read.append(document.origin or source.name)
        except RagnarError as error:
            if not job.cancel.is_set():
                job.problems.append((source.name, str(error)))
                failed.append(source)
        job.report(number + 1, len(sources))
    return read


def crawl_settings(
    *,
    scope: str,
    max_pages: int,
    max_depth: int,
    include: str,
    exclude: str,
    documents: bool,
    sitemap: bool,
    selectors: Selectors,
) -> CrawlSettings:
    from ragnar_core.documents import ReadOptions

    return CrawlSettings(
        scope=scope,
        max_pages=max_pages,
        max_depth=max_depth,
        include=split_selectors(include),
        exclude=split_selectors(exclude),
        documents=documents,
        sitemap=sitemap,
        fetch=FetchSettings(allow_private=allow_private()),
        read=ReadOptions(html_extract_selectors=selectors.extract, html_zap_selectors=selectors.zap),
    )


class Crawls:
    """States of crawls by start address, in `folder`, so that one can go on after a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, start: str, state: CrawlState) -> None:
        write_whole(self._path(start), json.dumps(state.to_dict()).encode())

    def load(self, start: str) -> CrawlState | None:
        """None where there is none, or it cannot be read back (the crawl then starts anew)."""
        try:
            return CrawlState.from_dict(json.loads(self._path(start).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _path(self, start: str) -> Path:
        return self.folder / (hashlib.sha256(start.encode()).hexdigest()[:32] + ".json")


def crawl_site(
    job: Job, start: str, settings: CrawlSettings, shelf: Shelf, crawls: Crawls, mode: str = "new"
) -> CrawlResult:
    """Crawl onto the shelf. `mode`: "new", "resume", "retry" (resume with the failed ones) or "changes"."""
    state = crawls.load(start) if mode != "new" else None

    def tell(progress) -> None:
        job.report(
            progress.read,
            max(progress.read + progress.queued, 1),
            f"{progress.found:,} found, {progress.queued:,} queued, {progress.read:,} read, {progress.failed:,} failed",
        )

    result = crawl(
        start,
        settings,
        progress=tell,
        cancel=job.cancel,
        resume=state if mode in ("resume", "retry") else None,
        retry_failed=mode == "retry",
        previous=state if mode == "changes" else None,
        on_document=lambda document: shelf.add(document),
    )
    crawls.save(start, result.state)
    job.problems = [(problem.url, problem.reason) for problem in result.problems]
    return result
