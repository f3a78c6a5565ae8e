"""The Documents page: a crawl with its problem list, and selectors tried on an HTML document."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.browser


def _load(path: Path) -> ModuleType:
    name = f"browser_{path.parent.name}_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


HERE = Path(__file__).parent
tools = _load(HERE / "conftest.py")
site_server = _load(HERE.parent / "documents" / "site_server.py")


@pytest.fixture
def site() -> Iterator[object]:
    server = site_server.SiteServer()
    pages = {
        "/docs/": "<h1>Start</h1><p>Welcome to the quay.</p><a href='a.html'>a</a> <a href='gone.html'>gone</a>",
        "/docs/a.html": "<h1>Eels</h1><p>Smoked eel.</p>",
    }
    for path, body in pages.items():
        html = (
            f"<html><body><nav>menu</nav><main>{body}</main><footer>imprint</footer></body></html>".encode()
        )
        server.routes[path] = lambda handler, html=html: handler.answer(html)
    yield server
    server.stop()


def test_crawl_shows_what_was_read_and_what_failed(site, tmp_path, open_page, monkeypatch) -> None:
    monkeypatch.setenv("RAGNAR_ALLOW_PRIVATE", "1")
    with tools.running_server(tmp_path / "home", tmp_path / "server.log") as url:
        page = open_page()
        page.goto(f"{url}/documents")
        tools.settle(page)
        page.get_by_role("tab", name="Crawl a site").click()
        page.get_by_role("textbox", name="Start at").fill(f"{site.url}/docs/")
        page.get_by_role("button", name="Crawl", exact=True).click()
        page.get_by_text("2 new").wait_for()
        page.get_by_text(f"{site.url}/docs/gone.html").first.wait_for()
        page.get_by_role("heading", name="2 documents").wait_for()
        tools.shot(page, "documents-crawl")

        html = b"<html><body><h1>Gone once</h1></body></html>"
        site.routes["/docs/gone.html"] = lambda handler: handler.answer(html)
        page.get_by_role("button", name="Try the failed ones again").click()
        page.get_by_role("heading", name="3 documents").wait_for()

        page.get_by_role("button", name="Look for changes").click()
        page.get_by_text("3 unchanged").wait_for()


def test_private_addresses_are_refused_unless_allowed(site, server, open_page) -> None:
    page = open_page()
    page.goto(f"{server}/documents")
    tools.settle(page)
    page.get_by_role("tab", name="URLs").click()
    page.get_by_role("textbox", name="URLs, one a line").fill(f"{site.url}/docs/")
    page.get_by_role("button", name="Read URLs").click()
    page.get_by_text("1 of 1 not read").wait_for()
    page.get_by_text("private").first.wait_for()
    tools.settle(page)
    assert site.asked == []


def test_selectors_are_tried_beside_the_text(server, open_page) -> None:
    page = open_page()
    page.goto(f"{server}/documents")
    tools.settle(page)
    html = b"<html><body><main><p>Smoked eel</p></main><aside><p>Side dish</p></aside></body></html>"
    page.locator("input[type=file]").first.set_input_files(
        {"name": "menu.html", "mimeType": "text/html", "buffer": html}
    )
    page.get_by_role("tab", name="Try selectors").click()
    page.get_by_role("textbox", name="Keep", exact=True).fill("aside")
    page.get_by_role("textbox", name="Keep", exact=True).press("Enter")
    page.get_by_text("1 lines go, 1 lines come").wait_for()
    page.get_by_role("button", name="Read it like this").click()
    page.get_by_role("tab", name="Markdown").click()
    page.get_by_test_id("stCode").filter(has_text="Side dish").first.wait_for()
