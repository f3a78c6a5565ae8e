"""Hostile documents on every page that shows text: nothing runs, nothing is fetched, the text is shown as it is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ragnar_core import MarkdownDocument, Shelf, Store, embed_static, markdown_chunk

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, settle = _tools.expect, _tools.settle

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.ran = 'script'</script>"
TEXT = f"""# Walrus <img src="http://evil.example/h.png" onerror="window.ran='img'"> heading

{SCRIPT} <b>no bold</b>

![picture](http://evil.example/p.png) [link](javascript:window.ran='link') <iframe src="http://evil.example/"></iframe>

<style>body {{ background: url(http://evil.example/s.png); display: none }}</style>

:red[not red] costs $5 to $10 :smile: &lt; `code`

| walrus | <svg onload="window.ran='svg'"> |
|---|---|
| 1 | </div></pre></textarea><img src=x onerror="window.ran='cell'"> |
"""
ORIGIN = "<img src=x onerror=window.ran='origin'>:red[o] $1$ *walrus*.md"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory):
    """A server whose shelf and only store hold the document."""
    folder = tmp_path_factory.mktemp("hostile")
    home = folder / "home"
    home.mkdir()
    document = MarkdownDocument(TEXT, origin=ORIGIN)
    Shelf(home / ".documents").add(document)
    with Store.create(
        home / "hostile.duckdb", embed_static(), name="hostile", title=SCRIPT, extra_cols={"kind": "VARCHAR"}
    ) as store:
        chunks = markdown_chunk(document, target_size=None)
        store.insert(chunks.with_columns(kind=f"{SCRIPT}:red[x]"))
    with _tools.running_server(home, folder / "server.log") as url:
        yield url


SHOWN = """() => {
  const parts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
    else if (!["SCRIPT", "STYLE"].includes(node.tagName)) {
      if (["INPUT", "TEXTAREA"].includes(node.tagName)) parts.push(node.value);
      if (node.shadowRoot) walk(node.shadowRoot);
      node.childNodes.forEach(walk);
    }
  };
  walk(document.body);
  return parts.join("");
}"""
MADE = """() => {
  const found = [];
  const walk = (root) => {
    for (const node of root.querySelectorAll("*")) {
      const address = node.getAttribute("src") || node.getAttribute("href") || "";
      const handler = [...node.attributes].find(({ name }) => name.startsWith("on"));
      if (/evil|^javascript:|^x$/.test(address) || handler) found.push(node.outerHTML.slice(0, 200));
      if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  walk(document);
  return found;
}"""


def check(page, *expected: str) -> None:
    """Nothing of the document became markup, and these pieces of it stand on the page as they are."""
    for piece in expected:
        page.wait_for_function(f"piece => ({SHOWN})().includes(piece)", arg=piece)
    settle(page)
    shown = page.evaluate(SHOWN)
    assert [piece for piece in expected if piece not in shown] == []
    assert page.evaluate(MADE) == []
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize(
    ("address", "pieces"),
    [
        ("compare?store=hostile&q=walrus", [SCRIPT, ORIGIN]),
        ("inspect?store=hostile", [SCRIPT, ORIGIN, "costs $5 to $10", ":red[not red]", "[link](javascript:"]),
        ("inspect?store=hostile&show=Raw&find=walrus", [SCRIPT, ORIGIN, "</div></pre></textarea><img src=x"]),
        ("inspect?store=hostile&show=In+document", [SCRIPT, "</div></pre></textarea><img src=x"]),
        ("inspect?store=hostile&show=History", [ORIGIN, f"{SCRIPT}:red[x]"]),
        ("map?store=hostile&colour=By+kind&star=walrus", [SCRIPT, ORIGIN, f"{SCRIPT}:red[x]"]),
        ("documents", [ORIGIN]),
        ("chunking", [SCRIPT, "</div></pre></textarea><img src=x"]),
        ("build?store=hostile", [ORIGIN]),
    ],
    ids=["compare", "inspect", "raw", "in-document", "history", "map", "documents", "chunking", "build"],
)  # fmt: skip
def test_nothing_runs_and_the_text_is_shown(open_page, hostile: str, address: str, pieces: list[str]) -> None:
    page = open_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{hostile}/{address}")
    check(page, *pieces)
    assert dialogs == []


def test_hostile_words_in_the_address(open_page, hostile: str) -> None:
    page = open_page()
    word = "<img src=x onerror=window.ran='url'>:red[u]"
    addresses = (
        f"compare?q={word}",
        f"inspect?find={word}&where={word}&doc={word}",
        f"map?star={word}&store={word}",
    )
    for address in addresses:
        page.goto(f"{hostile}/{address}")
        check(page, word)


def test_a_map_tip_is_text_and_markup_would_be_found(open_page, hostile: str) -> None:
    page = open_page()
    page.goto(f"{hostile}/map?store=hostile")
    canvas = page.locator(".map canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile("^Map of"))
    settle(page)
    canvas.press("ArrowRight")
    expect(page.locator(".tip .body")).to_contain_text("<script>")
    expect(page.locator(".tip .title")).to_contain_text(ORIGIN)
    check(page, SCRIPT)
    # What every test here relies on: markup would be found, in a shadow root as well.
    page.evaluate(
        "html => { const box = document.createElement('div'); document.body.append(box);"
        " box.attachShadow({mode: 'open'}).innerHTML = html; }",
        '<a href="javascript:1">x</a>',
    )
    assert page.evaluate(MADE) == ['<a href="javascript:1">x</a>']
