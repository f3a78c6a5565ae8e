"""The Map page in a browser: hover, click, lasso, keyboard, the query's star."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

from ragnar_core import Store, embed_static

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, settle, shot = _tools.expect, _tools.settle, _tools.shot

pytestmark = pytest.mark.browser

TEXTS = [
    "The walrus sleeps on ice.", "A seal swims under ice.", "Rockets burn kerosene.", "An engine needs fuel.",
    "Apples grow on trees.", "Pears are sweet fruit.", "The moon pulls the tides.", "<b>Stars</b> are far away.",
]  # fmt: skip


@pytest.fixture(scope="module")
def sky(server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page on a store of eight chunks."""
    home = next(tmp_path_factory.getbasetemp().glob("server*")) / "home"
    home.mkdir(exist_ok=True)
    with Store.create(home / "sky.duckdb", embed_static(), name="sky") as store:
        store.insert(pd.DataFrame({"text": TEXTS, "origin": [f"{i // 2}.md" for i in range(8)]}))
    return f"{server}/map?store=sky"


def test_hover_click_and_lasso(open_page, sky: str) -> None:
    page = open_page(height=1000)
    page.goto(sky)
    canvas = page.locator(".map canvas")
    expect(page.locator(".legend .chip")).to_have_count(4)
    settle(page)
    canvas.press("ArrowRight")
    tip = page.locator(".tip")
    expect(tip).to_be_visible()
    expect(tip.locator(".body")).to_have_text(re.compile(f"^({'|'.join(map(re.escape, TEXTS))})$"))
    canvas.press("Enter")
    expect(page.locator(".summary").first).to_have_text(re.compile(r"^\d chunks? picked$"))
    expect(page.locator(".passage")).to_be_visible()
    expect(page).to_have_url(re.compile("list=Picked"))

    settle(page)
    page.get_by_role("button", name="Draw around points to list them").click()
    box = canvas.bounding_box()
    corners = [
        (4, 60),
        (box["width"] - 4, 60),
        (box["width"] - 4, box["height"] - 4),
        (4, box["height"] - 4),
        (4, 62),
    ]
    page.mouse.move(box["x"] + 4, box["y"] + 60)
    page.mouse.down()
    for x, y in corners:
        page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    page.mouse.up()
    expect(page.locator(".summary").first).to_have_text("8 chunks picked")
    expect(page.locator(".row")).to_have_count(8)
    stars = page.locator(".row", has_text="Stars")
    expect(stars.locator(".text")).to_have_text("<b>Stars</b> are far away.")
    stars.click()
    expect(page.locator(".passage")).to_have_text("<b>Stars</b> are far away.")
    shot(page, "map_lasso")
    page.get_by_role("button", name="Inspect").click()
    expect(page.get_by_role("heading", name="Inspect")).to_be_visible()
    expect(page.locator(".passage")).to_have_text("<b>Stars</b> are far away.")


def test_hover_by_pointer_shows_the_passage(open_page, sky: str) -> None:
    page = open_page()
    page.goto(f"{sky}&star=fruit&colour=By+score")
    expect(page.locator(".legend")).to_contain_text("Similarity to the query")
    expect(page.locator(".row")).to_have_count(8)
    first = page.locator(".row .text").first
    expect(first).to_have_text(re.compile(r"^(Pears are sweet fruit\.|Apples grow on trees\.)$"))
    settle(page)
    best = first.inner_text()
    page.wait_for_function("window.ragnarMapOverlay?.hits.length === 8")
    canvas = page.locator(".map canvas")
    canvas.press("ArrowLeft")
    expect(page.locator(".tip .title")).to_contain_text("Hit 1 · ")
    expect(page.locator(".tip .body")).to_have_text(best)
    place = page.locator(".tip").bounding_box()
    frame = page.locator(".map").bounding_box()
    assert place["x"] >= frame["x"]
    assert place["x"] + place["width"] <= frame["x"] + frame["width"]
    page.wait_for_function(
        """() => { const c = document.querySelector('[data-testid=stBidiComponentRegular] .map canvas')
             || [...document.querySelectorAll('*')].map(n => n.shadowRoot?.querySelector('.map canvas')).find(Boolean);
           const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
           let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n > 500; }"""
    )


def test_phone_width_and_dark(open_page, sky: str) -> None:
    page = open_page(width=390, height=844, dark=True)
    page.goto(f"{sky}&list=Outliers")
    expect(page.locator(".row")).to_have_count(8)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shot(page, "map_phone_dark")
