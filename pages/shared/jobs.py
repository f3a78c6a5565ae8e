"""Work that outlives a script run, a page change and a closed tab: threads with progress and a cancel event.

Workers never call Streamlit; pages poll.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import streamlit as st

from pages.shared.shell import plain
from ragnar_core import RagnarError

State = Literal["waiting", "running", "done", "cancelled", "failed"]


@dataclass
class Job:
    """One piece of work. `done` of `total` steps, which `unit` names; `message` says what is happening; `result` is
    what it gave.

    `problems` are (what, why) of the parts that failed; `retry` is what a second try would need.
    """

    id: int
    kind: str
    title: str
    key: str
    total: int = 0
    done: int = 0
    unit: str = ""
    message: str = ""
    state: State = "waiting"
    result: Any = None
    error: str | None = None
    problems: list[tuple[str, str]] = field(default_factory=list)
    retry: Any = None
    cancel: threading.Event = field(default_factory=threading.Event)
    started: float = field(default_factory=time.time)
    finished: float | None = None

    @property
    def active(self) -> bool:
        return self.state in ("waiting", "running")

    @property
    def fraction(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def seconds(self) -> float:
        return (self.finished or time.time()) - self.started

    def report(self, done: int, total: int, message: str = "") -> None:
        self.done, self.total = done, total
        if message:
            self.message = message


class JobManager:
    """Two workers for the whole process. A job whose key is already at work is not started twice."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="job")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Job] = {}

    def start(self, kind: str, title: str, key: str, work: Callable[[Job], Any]) -> Job:
        """Queue `work(job)`; returns the job at work under `key` instead, if there is one."""
        with self._lock:
            for job in self._jobs.values():
                if job.key == key and job.active:
                    return job
            job = Job(next(self._numbers), kind, title, key)
            self._jobs[job.id] = job
        self._pool.submit(_run, job, work)
        return job

    def jobs(self, kind: str | None = None) -> list[Job]:
        """Newest first."""
        with self._lock:
            found = [job for job in self._jobs.values() if kind in (None, job.kind)]
        return sorted(found, key=lambda job: -job.id)

    def active(self, kind: str | None = None) -> list[Job]:
        return [job for job in self.jobs(kind) if job.active]

    def forget(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)


def _run(job: Job, work: Callable[[Job], Any]) -> None:
    if job.cancel.is_set():
        job.state, job.finished = "cancelled", time.time()
        return
    job.state = "running"
    try:
        job.result = work(job)
        state: State = "cancelled" if job.cancel.is_set() else "done"
    except RagnarError as error:
        job.error, state = str(error), "failed"
    except Exception as error:
        job.error = f"{type(error).__name__}: {error}. This is a fault of the program; please report it."
        state = "failed"
    job.finished = time.time()
    job.state = state


@st.cache_resource(show_spinner=False)
def manager() -> JobManager:
    return JobManager()


def job_progress(job: Job, *, key: str) -> None:
    """Draw one job: bar and cancel button while at work, outcome afterwards."""
    if job.active:
        bar, stop = st.columns([5, 1], vertical_alignment="center")
        counted = f" · {_count(job)}" if job.total else ""
        message = f" · {job.message}" if job.message else ""
        bar.progress(job.fraction, text=plain(f"{job.title}{counted}{message}"))
        if stop.button("Cancel", key=f"{key}_cancel", disabled=job.cancel.is_set(), width="stretch"):
            job.cancel.set()
    elif job.state == "failed":
        st.error(plain(f"{job.title} failed: {job.error}"), icon=":material/error:")
    elif job.state == "cancelled":
        st.warning(plain(f"{job.title}: cancelled after {_count(job)}."), icon=":material/cancel:")


def _count(job: Job) -> str:
    return f"{job.done:,} of {job.total:,} {job.unit}".rstrip()


@st.fragment(run_every=0.5)
def watch(kind: str) -> None:
    """Draw the jobs of a kind while they are at work; when the last one ends, the page runs again."""
    active = manager().active(kind)
    if not active:
        st.rerun()
    for job in active:
        job_progress(job, key=f"job_{job.id}")
