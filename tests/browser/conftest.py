"""A real server on a free port and a real Chromium."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

try:
    from playwright.sync_api import expect
except ImportError:  # the fixture `browser` skips or fails then
    expect = None
else:
    expect.set_options(timeout=30_000)

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = os.environ.get("RAGNAR_SHOTS")


@contextlib.contextmanager
def running_server(home: Path, log: Path, script: str = "app.py") -> Iterator[str]:
    """Start the app as the README does, with `home` as the folder of stores; yields its URL. Another `script` may import
    what the app does."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        script,
        "--server.port",
        str(port),
        "--server.address",
        "127.0.0.1",
        "--server.headless",
        "true",
        "--server.fileWatcherType",
        "none",
    ]
    environment = {**os.environ, "RAGNAR_HOME": str(home)}
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{log.read_text()}")
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1) as answer,
        ):
            if answer.read() == b"ok":
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server did not come up:\n{log.read_text()}")


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[str]:
    """A server that has run nothing yet."""
    with running_server(tmp_path / "home", tmp_path / "server.log") as url:
        yield url


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for the tests that can share it."""
    folder = tmp_path_factory.mktemp("server")
    with running_server(folder / "home", folder / "server.log") as url:
        yield url


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest):
    playwright = (
        pytest.importorskip("playwright.sync_api")
        if not request.config.getoption("--strict-browser")
        else None
    )
    if playwright is None:
        import playwright.sync_api as playwright
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        say = "no Chromium found: install Debian's package chromium or set CHROMIUM to the program's path"
        if request.config.getoption("--strict-browser"):
            pytest.fail(say)
        pytest.skip(say)
    with playwright.sync_playwright() as session:
        launched = session.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser) -> Iterator[Callable]:
    """Open a page: `open_page(width=1280, dark=False)`. A request to another host is stopped and fails the test."""
    contexts, outside = [], []

    def guard(route) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "data:", "blob:")):
            route.continue_()
        else:
            outside.append(url)
            route.abort()

    def make(width: int = 1280, height: int = 900, dark: bool = False):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.route("**/*", guard)
        return page

    yield make
    for context in contexts:
        context.close()
    assert outside == []


CALM = """() => {
    const app = document.querySelector("[data-testid=stApp]")?.dataset;
    const calm = app?.testConnectionState === "CONNECTED" && app.testScriptState === "notRunning"
        && !document.querySelector("[data-testid=stSkeleton]");
    const frames = calm ? (window.calmFrames ?? 0) + 1 : 0;
    window.calmFrames = frames < 10 ? frames : 0;
    return frames === 10;
}"""


def settle(page) -> None:
    """Wait until no script has run for some frames.

    The page does not show yet that a run was asked for, and the address can change before it begins: after an
    action, wait with `expect` for what the run brings.
    """
    page.wait_for_function(CALM)


def shot(page, name: str) -> None:
    """Keep a screenshot where RAGNAR_SHOTS says, if it says."""
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)
