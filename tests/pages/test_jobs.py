from __future__ import annotations

import threading
import time

from streamlit.testing.v1 import AppTest

from pages.shared.jobs import Job, JobManager
from ragnar_core.errors import StoreError


def wait(job: Job) -> Job:
    end = time.monotonic() + 120
    while job.active and time.monotonic() < end:
        time.sleep(0.01)
    return job


def test_result_and_progress() -> None:
    def work(job: Job) -> str:
        job.report(2, 4, "half")
        return "made"

    job = wait(JobManager().start("build", "Building", "k", work))
    assert (job.state, job.result, job.fraction, job.message, job.error) == (
        "done",
        "made",
        0.5,
        "half",
        None,
    )


def test_what_is_counted_is_named() -> None:
    def draw() -> None:
        from pages.shared.jobs import Job, job_progress

        job = Job(1, "build", "Building zoo", "k", unit="documents", state="running")
        job.report(2, 1400, "guide.md · 1,204 chunks embedded, 980 written")
        job_progress(job, key="a")
        job.state = "cancelled"
        job_progress(job, key="b")

    app = AppTest.from_function(draw).run()
    bar = app.get("progress")[0].proto.text.replace("\\", "")
    assert bar == "Building zoo · 2 of 1,400 documents · guide.md · 1,204 chunks embedded, 980 written"
    assert (
        app.warning[0].value.replace("\\", "").replace("\u2060", "")
        == "Building zoo: cancelled after 2 of 1,400 documents."
    )


def test_same_key_is_not_started_twice() -> None:
    manager, hold, runs = JobManager(), threading.Event(), []

    def work(job: Job) -> None:
        runs.append(job.id)
        hold.wait(120)

    first = manager.start("build", "one", "same", work)
    second = manager.start("build", "two", "same", work)
    hold.set()
    wait(first)
    assert second is first
    assert runs == [1]
    assert wait(manager.start("build", "three", "same", work)).id == 2


def test_cancel_while_running_and_while_waiting() -> None:
    manager = JobManager()

    def work(job: Job) -> None:
        job.cancel.wait(120)

    running = [manager.start("read", "r", f"r{i}", work) for i in range(2)]
    waiting = manager.start("read", "w", "w", work)
    waiting.cancel.set()
    for job in running:
        job.cancel.set()
    assert [wait(job).state for job in (*running, waiting)] == ["cancelled", "cancelled", "cancelled"]


def test_failures_are_sentences() -> None:
    def known(job: Job) -> None:
        raise StoreError("The disk is full.")

    def unknown(job: Job) -> None:
        raise KeyError("x")

    manager = JobManager()
    assert wait(manager.start("build", "b", "1", known)).error == "The disk is full."
    assert wait(manager.start("build", "b", "2", unknown)).error == (
        "KeyError: 'x'. This is a fault of the program; please report it."
    )


def test_jobs_are_listed_newest_first_and_forgotten() -> None:
    manager = JobManager()
    first = wait(manager.start("read", "a", "1", lambda job: None))
    second = wait(manager.start("build", "b", "2", lambda job: None))
    assert manager.jobs() == [second, first]
    assert manager.jobs("read") == [first]
    manager.forget(first)
    assert manager.jobs() == [second]
