"""From a moved slider to the painted preview on the Chunking page, in Chromium.

    python benchmarks/preview.py [--steps 20]

Starts the app with a document of 200 KB and one of 1 MB, presses an arrow key on the size slider (which moves and
releases it at once) and prints two medians for each: until the text is painted with the cuts made in the browser, and
until it is painted with the chunks that the server answered. Painted means: a frame with the new colours is done.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ragnar_core import MarkdownDocument, Shelf  # noqa: E402

SIZES = {"200 KB": 200_000, "1 MB": 1_000_000}
WAIT = """(part) => {
  const doc = [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]
    .map((host) => host.shadowRoot?.querySelector('.doc')).find(Boolean);
  const before = doc.dataset[part];
  let start;
  addEventListener('keydown', () => { start = performance.now(); }, { capture: true, once: true });
  window.painted = new Promise((resolve) => {
    const look = () => {
      if (start === undefined || doc.dataset[part] === before) return requestAnimationFrame(look);
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => resolve(performance.now() - start);
        channel.port2.postMessage(0);
      });
    };
    requestAnimationFrame(look);
  });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    tools = _browser_tools()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shelf = Shelf(home / ".documents")
        for name, length in SIZES.items():
            shelf.add(MarkdownDocument(handbook(length), origin=f"{name}.md"))
        with tools.running_server(home, home / "server.log") as url, sync_playwright() as session:
            chromium = session.chromium.launch(executable_path=_chromium(tools), args=tools.ARGUMENTS)
            print(
                f"{'document':10} {'cut in the browser':>20} {'answered by the server':>24}   median ms, {steps} steps"
            )
            for name in SIZES:
                page = chromium.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"{url}/chunking?document={name.replace(' ', '+')}.md")
                tools.settle(page)
                slider = page.locator("input#size")
                slider.focus()
                medians = []
                for part in ("live", "version"):
                    times = [_step(page, part, i) for i in range(steps + 2)][2:]
                    medians.append(statistics.median(times))
                print(f"{name:10} {medians[0]:20.0f} {medians[1]:24.0f}")
                page.close()
            chromium.close()


def handbook(length: int) -> str:
    """The handbook, again and again, each time under other headings, up to `length` characters."""
    parts = [path.read_text("utf-8") for path in sorted((ROOT / "docs" / "handbook").glob("*.md"))]
    text, turn = [], 0
    while sum(map(len, text)) < length:
        turn += 1
        text += [f"# Volume {turn}\n\n", *parts]
    return "".join(text)[:length]


def _step(page, part: str, i: int) -> float:
    page.evaluate(WAIT, part)
    page.keyboard.press("ArrowLeft" if i % 4 < 2 else "ArrowRight")
    milliseconds = page.evaluate("() => window.painted")
    page.wait_for_timeout(350)
    return milliseconds


def _browser_tools():
    path = ROOT / "tests" / "browser" / "conftest.py"
    spec = importlib.util.spec_from_file_location("browser_tools", path)
    tools = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tools)
    return tools


def _chromium(tools) -> str:
    import os
    import shutil

    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, tools.NAMES)), None)
    if found is None:
        raise SystemExit(
            "No Chromium found: install Debian's package chromium or set CHROMIUM to the program's path."
        )
    return found


if __name__ == "__main__":
    main()
