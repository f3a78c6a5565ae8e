"""The Build page: a build that is cancelled and taken up again, reloads, another server's model, the doctor."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


tools = _load(Path(__file__).with_name("conftest.py"))
expect = tools.expect


class Handler(BaseHTTPRequestHandler):
    """OpenAI's embedding protocol, slow on demand."""

    gate = threading.Event()

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        if any("slow" in text for text in texts):
            self.gate.wait(60)
        data = [
            {"object": "embedding", "index": i, "embedding": [1.0, len(t), 0.5]} for i, t in enumerate(texts)
        ]
        self._answer({"object": "list", "data": data, "usage": {"total_tokens": 1}})

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "tiny-embed", "object": "model"}]})

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def model_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    Handler.gate.clear()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    Handler.gate.set()
    server.shutdown()
    server.server_close()


def test_a_build_outlives_the_page_and_is_not_started_twice(
    model_server: str, fresh_server: str, open_page
) -> None:
    page = open_page()
    page.goto(f"{fresh_server}/documents")
    tools.settle(page)
    files = [
        {"name": f"{n}.md", "mimeType": "text/markdown", "buffer": text}
        for n, text in (("a", b"# Quick\n\neel"), ("b", b"# slow\n\nherring"))
    ]
    page.locator("input[type=file]").first.set_input_files(files)
    page.get_by_role("heading", name="2 documents").wait_for()

    page.get_by_test_id("stSidebarNavLink").filter(has_text="Build").click()
    tools.settle(page)
    page.get_by_role("combobox", name="Embedding model").click()
    page.get_by_role("option", name="OpenAI, or a server that speaks its protocol").click()
    tools.settle(page)
    for label, value in (("Base url", model_server), ("Model", "tiny-embed")):
        box = page.get_by_role("textbox", name=label, exact=True)
        box.fill(value)
        box.press("Enter")
        tools.settle(page)
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("3 dimensions").wait_for()
    page.get_by_role("button", name="List models").click()
    page.get_by_text("tiny-embed").last.wait_for()
    page.get_by_role("button", name="Build", exact=True).click()
    page.get_by_text("Building my-documents").first.wait_for()

    page.reload()
    tools.settle(page)
    page.get_by_text("Building my-documents").first.wait_for()
    tools.shot(page, "build-running")
    Handler.gate.set()
    page.get_by_text("documents: 2 new; 2 chunks embedded").wait_for()
    tools.settle(page)
    expect(page.get_by_text("chunks embedded")).to_have_count(1)


def test_doctor_says_that_a_sound_store_is_sound(server: str, open_page) -> None:
    page = open_page()
    page.goto(f"{server}/build")
    tools.settle(page)
    page.get_by_role("button", name="Check this store").click()
    page.get_by_text("Nothing is wrong with this store.").wait_for()
    tools.settle(page)
    assert page.get_by_role("button", name="Index for R").count() == 0
