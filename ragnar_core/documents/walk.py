"""Going through a site politely: a queue, several requests at a time, few to a host, no way to get lost."""

from __future__ import annotations

import heapq
import itertools
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ragnar_core.documents.fetch import Fetcher, FetchError, Page
from ragnar_core.documents.robots import ALLOW_ALL, ALLOW_NONE, Robots, parse_robots
from ragnar_core.documents.urls import canonical, origin_of

TICK = 0.1  # seconds after which a cancel or a free slot is noticed


@dataclass(frozen=True)
class WalkSettings:
    """How to go through a site.

    Attributes:
        max_depth: levels of links from the start.
        max_pages: addresses to fetch.
        max_seconds: time for the whole walk.
        concurrency: requests at a time.
        per_host: of these, to one host.
        delay: seconds between two requests to one host; robots.txt may ask for more.
        max_delay: the most that a Crawl-delay or Retry-After is heeded, in seconds.
        retries: further tries after a temporary failure.
        respect_robots: do not fetch what robots.txt forbids.
        drop_tracking: take utm_... and the like out of addresses.
        max_url_length: characters; longer addresses are traps.
        max_repeats: times that one path segment may recur in an address.
        max_queries: addresses that differ only by their query.
        wanted: asked with (content type, url) before a body is read.
    """

    max_depth: int = 10
    max_pages: int = 1_000
    max_seconds: float = 3_600.0
    concurrency: int = 8
    per_host: int = 4
    delay: float = 0.0
    max_delay: float = 60.0
    retries: int = 2
    respect_robots: bool = True
    drop_tracking: bool = True
    max_url_length: int = 1_000
    max_repeats: int = 3
    max_queries: int = 200
    wanted: Callable[[str, str], bool] | None = None


@dataclass(frozen=True)
class Visit:
    """One fetched address: a page, or the error in its place.

    Attributes:
        link: as it was found.
        asked: its canonical spelling, which was asked for.
        url: the address that answered.
        depth: levels of links from the start.
        done: pages fetched so far.
        waiting: pages still queued or under way.
    """

    link: str
    asked: str
    url: str
    depth: int
    page: Page | None
    error: FetchError | None
    done: int
    waiting: int


@dataclass
class _Task:
    link: str
    url: str
    depth: int
    tries: int = 0


@dataclass
class _Host:
    queue: deque[_Task] = field(default_factory=deque)
    running: int = 0
    free_at: float = 0.0
    robots: Robots | None = None
    asking: bool = False


class Walk:
    """Fetches what was added and what `visit` returns for each page, until nothing is left or a limit is met.

    `prepare` runs in worker threads on each page (parsing); `visit` runs in the thread of `run`, one page at
    a time, and returns the links to go on with.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        settings: WalkSettings,
        visit: Callable[[Visit], Iterable[str]],
        *,
        prepare: Callable[[Page], object] | None = None,
        headers: Callable[[str], Mapping[str, str]] | None = None,
        cancel: threading.Event | None = None,
        on_tick: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings
        self.seen: set[str] = set()
        self.limits_hit: dict[str, str] = {}
        self.moved: dict[str, str] = {}
        self.prepared: dict[str, object] = {}
        self.stopped: str | None = None
        self.fetched = 0
        self._fetcher = fetcher
        self._visit = visit
        self._prepare = prepare
        self._headers = headers
        self._cancel = cancel
        self._on_tick = on_tick
        self._hosts: dict[str, _Host] = {}
        self._later: list[tuple[float, int, _Task]] = []
        self._order = itertools.count()
        self._queries: Counter[str] = Counter()
        self._admitted = 0
        self._waiting = 0

    def add(self, link: str, depth: int) -> bool:
        """Queue a link, unless it was seen, is no http(s) address, or looks like a trap. True when queued."""
        url = canonical(link, drop_tracking=self.settings.drop_tracking)
        if url is None or url in self.seen or depth > self.settings.max_depth:
            return False
        trap = self._trap(url)
        if trap is not None:
            self.limits_hit.setdefault(url, trap)
            return False
        if self._admitted >= self.settings.max_pages:
            self.limits_hit.setdefault(
                "max_pages", f"more than {self.settings.max_pages:,} pages (max_pages)"
            )
            return False
        self.seen.add(url)
        self._admitted += 1
        self._waiting += 1
        self._host(url).queue.append(_Task(link, url, depth))
        return True

    @property
    def queued(self) -> int:
        """Number of addresses that are queued or under way."""
        return self._waiting

    def waiting(self) -> list[tuple[str, int]]:
        """What is still queued: (url, depth)."""
        queued = [(task.url, task.depth) for host in self._hosts.values() for task in host.queue]
        return queued + [(task.url, task.depth) for _, _, task in self._later]

    def robots_of(self, url: str) -> Robots:
        """The robots.txt of the address's host, fetched once."""
        host = self._host(url)
        if host.robots is None:
            host.robots = self._fetch_robots(origin_of(url))
        return host.robots

    def run(self) -> None:
        """Go on until done, cancelled, or out of time; `stopped` then says why."""
        ends = time.monotonic() + self.settings.max_seconds
        pool = ThreadPoolExecutor(self.settings.concurrency, thread_name_prefix="crawl")
        running: dict[Future[object], tuple[_Task | None, str]] = {}
        try:
            while self._waiting or running:
                if self._cancel is not None and self._cancel.is_set():
                    self.stopped = "cancelled"
                    break
                if time.monotonic() > ends:
                    self.stopped = f"stopped after {self.settings.max_seconds:g} seconds (max_seconds)"
                    break
                self._wake()
                self._start(pool, running)
                done, _ = (
                    wait(running, timeout=TICK, return_when=FIRST_COMPLETED) if running else (set(), None)
                )
                if not running:
                    time.sleep(min(TICK, self._pause()))
                for future in done:
                    task, origin = running.pop(future)
                    self._finish(future, task, origin)
                if self._on_tick is not None:
                    self._on_tick()
        finally:
            for task, _ in running.values():
                if task is not None:
                    self._requeue(task)
            pool.shutdown(wait=False, cancel_futures=True)

    def _start(
        self, pool: ThreadPoolExecutor, running: dict[Future[object], tuple[_Task | None, str]]
    ) -> None:
        now = time.monotonic()
        for origin, host in list(self._hosts.items()):
            while host.queue and len(running) < self.settings.concurrency:
                if self.settings.respect_robots and host.robots is None:
                    if not host.asking:
                        host.asking = True
                        running[pool.submit(self._fetch_robots, origin)] = (None, origin)
                    break
                delay = self._delay(host)
                if now < host.free_at or host.running >= (1 if delay else self.settings.per_host):
                    break
                task = host.queue.popleft()
                if host.robots is not None and not host.robots.allows(task.url):
                    self._report(task, None, FetchError(task.url, "robots.txt does not allow it"))
                    continue
                host.running += 1
                host.free_at = now + delay
                running[pool.submit(self._fetch, task)] = (task, origin)

    def _fetch(self, task: _Task) -> Page:
        headers = self._headers(task.url) if self._headers is not None else {}
        page = self._fetcher.get(task.url, headers=headers, wanted=self.settings.wanted)
        if self._prepare is not None:
            self.prepared[task.url] = self._prepare(page)
        return page

    def _finish(self, future: Future[object], task: _Task | None, origin: str) -> None:
        host = self._hosts[origin]
        if task is None:
            host.asking = False
            robots = future.result()
            assert isinstance(robots, Robots)
            host.robots = robots
            return
        host.running -= 1
        try:
            page = future.result()
            assert isinstance(page, Page)
        except FetchError as error:
            if self._again(task, host, error):
                return
            self._report(task, None, error)
        except Exception as error:  # a page that breaks our own parser must not end the walk
            self._report(
                task, None, FetchError(task.url, f"could not be read: {type(error).__name__}: {error}")
            )
        else:
            self.fetched += 1
            self._report(task, page, None)

    def _again(self, task: _Task, host: _Host, error: FetchError) -> bool:
        if not error.temporary or task.tries >= self.settings.retries:
            return False
        if self._cancel is not None and self._cancel.is_set():
            return False
        pause = error.retry_after if error.retry_after is not None else 0.5 * 2**task.tries
        if pause > self.settings.max_delay:
            return False
        task.tries += 1
        when = time.monotonic() + pause
        if error.retry_after is not None:  # the host asked for a rest, not only this page
            host.free_at = max(host.free_at, when)
        heapq.heappush(self._later, (when, next(self._order), task))
        return True

    def _report(self, task: _Task, page: Page | None, error: FetchError | None) -> None:
        self._waiting -= 1
        url = page.url if page is not None else task.url
        if page is not None and url != task.url:
            address = canonical(url, drop_tracking=self.settings.drop_tracking) or url
            if address in self.seen:
                self.prepared.pop(task.url, None)
                self.moved[task.url] = url
                return
            self.seen.add(address)
        if task.url in self.prepared:
            self.prepared[url] = self.prepared.pop(task.url)
        visit = Visit(task.link, task.url, url, task.depth, page, error, self.fetched, self._waiting)
        for link in self._visit(visit):
            self.add(link, task.depth + 1)
        self.prepared.pop(url, None)

    def _wake(self) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, _, task = heapq.heappop(self._later)
            self._host(task.url).queue.appendleft(task)

    def _requeue(self, task: _Task) -> None:
        self._host(task.url).queue.appendleft(task)

    def _pause(self) -> float:
        times = [when for when, _, _ in self._later[:1]]
        times += [host.free_at for host in self._hosts.values() if host.queue]
        return max(0.001, min(times, default=0.0) - time.monotonic())

    def _delay(self, host: _Host) -> float:
        stated = host.robots.delay if host.robots is not None and self.settings.respect_robots else None
        return max(self.settings.delay, min(stated or 0.0, self.settings.max_delay))

    def _host(self, url: str) -> _Host:
        return self._hosts.setdefault(origin_of(url), _Host())

    def _fetch_robots(self, origin: str) -> Robots:
        try:
            page = self._fetcher.get(f"{origin}/robots.txt")
        except FetchError as error:
            # RFC 9309: what is not there forbids nothing; a server in trouble is left alone.
            in_trouble = error.status is not None and error.status >= 500
            return ALLOW_NONE if in_trouble else ALLOW_ALL
        text = (page.body or b"").decode("utf-8", errors="replace")
        return parse_robots(text, self._fetcher.settings.user_agent)

    def _trap(self, url: str) -> str | None:
        if len(url) > self.settings.max_url_length:
            return f"the address is longer than {self.settings.max_url_length} characters (max_url_length)"
        parts = urlsplit(url)
        segments = Counter(segment for segment in parts.path.split("/") if segment)
        if segments and max(segments.values()) > self.settings.max_repeats:
            return f"a part of the path recurs more than {self.settings.max_repeats} times (max_repeats)"
        if parts.query:
            names = Counter(re.split(r"=", pair, maxsplit=1)[0] for pair in parts.query.split("&"))
            if max(names.values()) > self.settings.max_repeats:
                return f"a query parameter recurs more than {self.settings.max_repeats} times (max_repeats)"
            page = f"{origin_of(url)}{parts.path}"
            if self._queries[page] >= self.settings.max_queries:
                most = self.settings.max_queries
                return f"more than {most} addresses differ only by their query (max_queries)"
            self._queries[page] += 1
        return None
