"""What a crawl found, and what it needs to go on later or to ask only for what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ragnar_core.documents.document import MarkdownDocument


@dataclass(frozen=True)
class PageRecord:
    """A page that was read: address, its document's origin, validators for the next time, text and links."""

    url: str
    origin: str
    depth: int = 0
    etag: str | None = None
    last_modified: str | None = None
    text_hash: str | None = None
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class CrawlProblem:
    """An address that gave no document, and why. `temporary` ones are worth another try."""

    url: str
    reason: str
    status: int | None = None
    depth: int = 0
    temporary: bool = False


@dataclass(frozen=True)
class CrawlState:
    """All that a later crawl needs; plain values through `to_dict`, ready for JSON.

    `carried` names the records that come from an earlier crawl and were not confirmed by this one, because it
    was stopped or the page failed. `landed` says where starts redirected to, for the scope is that of the target.
    """

    starts: tuple[str, ...] = ()
    records: dict[str, PageRecord] = field(default_factory=dict)
    waiting: tuple[tuple[str, int], ...] = ()
    seen: tuple[str, ...] = ()
    problems: tuple[CrawlProblem, ...] = ()
    duplicates: dict[str, str] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    landed: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Nothing is left to fetch."""
        return not self.waiting

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "starts": list(self.starts),
            "records": [asdict(record) for record in self.records.values()],
            "waiting": [list(item) for item in self.waiting],
            "seen": list(self.seen),
            "problems": [asdict(problem) for problem in self.problems],
            "duplicates": dict(self.duplicates),
            "carried": list(self.carried),
            "landed": dict(self.landed),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CrawlState:
        """The state that `to_dict` described."""
        records = [PageRecord(**{**record, "links": tuple(record["links"])}) for record in values["records"]]
        return cls(
            starts=tuple(values["starts"]),
            records={record.url: record for record in records},
            waiting=tuple((str(url), int(depth)) for url, depth in values["waiting"]),
            seen=tuple(values["seen"]),
            problems=tuple(CrawlProblem(**problem) for problem in values["problems"]),
            duplicates=dict(values["duplicates"]),
            carried=tuple(values.get("carried", ())),
            landed=dict(values.get("landed", {})),
        )


@dataclass(frozen=True)
class CrawlResult:
    """What a crawl gave.

    Attributes:
        documents: by origin; empty when they went to `on_document`.
        problems: addresses without a document, and why.
        changes: "new", "changed" or "unchanged" for each page that was read or confirmed.
        vanished: pages of the previous crawl that are gone (404, 410) or that nothing leads to any more.
        duplicates: pages left out because their text is that of another: address -> the one that was kept.
        skipped: how many addresses were of a kind that is not read, by content type or extension.
        limits: which limits were met, and where.
        stopped: why the crawl ended early, None when it did not.
        state: for `resume` and `previous`.
    """

    documents: list[MarkdownDocument]
    problems: list[CrawlProblem]
    changes: dict[str, str]
    vanished: list[str]
    duplicates: dict[str, str]
    skipped: dict[str, int]
    limits: dict[str, str]
    stopped: str | None
    state: CrawlState
