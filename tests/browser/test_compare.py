"""The Compare page in a real browser: moves, explanations, hostile documents, phone, address, export."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from ragnar_core import Store, embed_static

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, running_server, settle, shot = _tools.expect, _tools.running_server, _tools.settle, _tools.shot

pytestmark = pytest.mark.browser

EVIL = (
    "Harbour <script>window.pwned = 1</script><img src=http://evil.example/x onerror='window.pwned = 2'> "
    "**bold** :red[colour] $x^2$ [link](javascript:window.pwned=3) \u202egnp.exe\u202c 🦞 end"
)
ORIGIN = "<img src=x onerror='window.pwned=4'>.md"
TEXTS = {
    ORIGIN: EVIL,
    "ferry.md": "The ferry leaves the harbour at dawn.",
    "tide.md": "High tide fills the harbour twice a day.",
    "lamp.md": "A lamp on the quay shows boats the way home at night.",
}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the store `port`, one of whose documents tries to break out."""
    folder = tmp_path_factory.mktemp("port")
    home = folder / "home"
    home.mkdir()
    with Store.create(home / "port.duckdb", embed_static(), extra_cols={"kind": str}) as store:
        for at, (origin, text) in enumerate(TEXTS.items()):
            row = {
                "origin": origin,
                "text": text,
                "context": "# <b>Quay</b>",
                "kind": ["<i>a</i>", "b"][at % 2],
            }
            store.insert(pd.DataFrame([row]))
    with running_server(home, folder / "server.log") as url:
        yield url


def cards(page, title: str):
    return page.get_by_label(f"{title} results", exact=True).locator("article")


def visit(page, url: str, address: str) -> None:
    page.goto(f"{url}/compare?{address}")
    settle(page)
    cards(page, "VSS").first.wait_for()


def test_typing_moves_the_lists_and_keys_lead_through_them(port, open_page) -> None:
    page = open_page()
    visit(page, port, "store=port&q=ferry")
    expect(cards(page, "BM25")).to_have_count(1)
    page.keyboard.press("/")
    expect(page.get_by_label("Query", exact=True)).to_be_focused()
    page.keyboard.type("harbour")
    expect(cards(page, "BM25")).to_have_count(3)
    expect(cards(page, "VSS")).to_have_count(4)
    expect(page.get_by_text("only here", exact=True)).to_have_count(1)
    settle(page)
    expect(page.locator(".board path")).to_have_count(3)
    joined = page.locator(".board path").evaluate_all("all => all.map(one => one.dataset.cards)")
    assert sorted(joined) == ["0:1 1:1", "0:2 1:2", "0:3 1:3"]

    first, focused = page.locator(".face").first, page.locator(".face:focus")
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(focused).to_have_attribute("data-key", re.compile("^0:"))
    expect(focused.locator(".rank")).to_have_text("3")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    here = f"1:{first.get_attribute('data-key').split(':')[1]}"
    expect(focused).to_have_attribute("data-key", here)

    page.keyboard.press("Enter")
    adds = page.locator(".full td:last-child")
    adds.first.wait_for()
    *parts, total = (float(one) for one in adds.all_inner_texts())
    assert total == pytest.approx(sum(parts), abs=2e-4)
    page.get_by_role("button", name="Which sentences are nearest?").click()
    expect(page.locator(".sentences b").first).to_have_text(re.compile(r"^-?\d\.\d{3}$"))
    page.keyboard.press("Escape")
    expect(page.locator(".full")).to_have_count(0)
    expect(focused).to_have_attribute("data-key", here)
    shot(page, "compare-port")


def test_a_hostile_document_is_shown_as_it_is_and_does_nothing(port, open_page) -> None:
    page = open_page()
    visit(
        page,
        port,
        "store=port&q=harbour+bold&hybrid=true&missing=" + ORIGIN.replace("'", "%27").replace("=", "%3D"),
    )
    card = cards(page, "BM25").filter(has_text="window.pwned")
    card.locator(".face").click()
    page.locator(".full pre").wait_for()
    assert page.locator(".full pre").evaluate("node => node.textContent") == EVIL
    expect(card.locator(".origin")).to_have_attribute("title", ORIGIN)
    expect(card.locator(".context")).to_have_text("<b>Quay</b>")
    assert page.locator(".board :is(script, img, a, b.evil)").count() == 0
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("Values").wait_for()
    settle(page)
    assert page.evaluate("window.pwned") is None
    assert page.get_by_test_id("stException").count() == 0
    shot(page, "compare-hostile")


def test_the_exports_are_whole_and_inert(port, open_page, tmp_path) -> None:
    page = open_page()
    visit(page, port, "store=port&q=harbour&top_k=3")
    page.get_by_role("button", name="Export").click()
    for label in ("CSV table", "HTML page"):
        with page.expect_download() as download:
            page.get_by_role("button", name=label).click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
    table = pd.read_csv(tmp_path / "comparison-harbour.csv")
    assert table.groupby("list").size().to_dict() == {"BM25": 3, "VSS": 3}
    assert EVIL in table["text"].tolist()
    other = open_page()
    other.set_content((tmp_path / "comparison-harbour.html").read_text("utf-8"))
    expect(other.locator("li")).to_have_count(6)
    assert EVIL in [one.strip() for one in other.locator("li pre").all_text_contents()]
    assert other.evaluate("window.pwned") is None
    shot(other, "compare-export")


def test_the_address_brings_back_the_same_comparison(port, open_page) -> None:
    page = open_page()
    visit(page, port, "store=port&q=harbour")
    page.get_by_text("A / B", exact=True).click()
    cards(page, "B · BM25").first.wait_for()
    page.get_by_role("button", name="Settings").last.click()
    page.get_by_label("Top k").last.fill("1")
    page.get_by_label("Top k").last.press("Enter")
    expect(page).to_have_url(re.compile("b_top_k=1"))
    expect(cards(page, "B · BM25")).to_have_count(1)
    settle(page)
    shown = cards(page, "A · Hybrid").all_inner_texts()
    other = open_page()
    other.goto(page.url)
    expect(cards(other, "B · BM25")).to_have_count(1)
    settle(other)
    assert cards(other, "A · Hybrid").all_inner_texts() == shown
    expect(cards(other, "B · BM25")).to_have_count(1)


def test_a_saved_search_opens_its_store_and_a_passage_opens_in_inspect(port, open_page) -> None:
    page = open_page()
    visit(page, port, "store=port&q=tide&top_k=2")
    page.get_by_role("button", name="Queries").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved", exact=True).wait_for()
    page.goto(f"{port}/compare?q=bm25")
    cards(page, "VSS").filter(has_text="handbook/").first.wait_for()
    page.get_by_role("button", name="Queries").click()
    page.get_by_role("button", name="tide", exact=True).click()
    cards(page, "BM25").filter(has_text="tide.md").wait_for()
    expect(cards(page, "VSS")).to_have_count(2)
    expect(page).to_have_url(re.compile("store=port"))
    settle(page)
    page.keyboard.press("Escape")
    cards(page, "BM25").locator(".face").click()
    page.get_by_role("button", name="Open in Inspect").click()
    expect(page).to_have_url(re.compile("/inspect"))
    page.get_by_text("High tide fills the harbour twice a day.").first.wait_for()


def test_a_quick_click_saves_under_the_name_just_typed(port, open_page) -> None:
    page = open_page()
    visit(page, port, "store=port&q=lamp")
    page.get_by_role("button", name="Queries").click()
    page.get_by_label("Save this search as").fill("way home")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="way home", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="lamp", exact=True)).to_have_count(0)
    expect(page.get_by_label("Save this search as")).to_have_value("")
    shot(page, "compare-saved")


def test_phone_width_shows_one_list_at_a_time(port, open_page) -> None:
    page = open_page(width=390, height=844, dark=True)
    visit(page, port, "store=port&q=harbour&hybrid=true")
    tab = page.locator(".tabs").get_by_role("button", name="BM25 · 3")
    expect(tab).to_be_visible()
    expect(cards(page, "BM25")).to_have_count(3)
    expect(cards(page, "BM25").first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    tab.click()
    expect(cards(page, "BM25").first).to_be_visible()
    expect(cards(page, "VSS").first).to_be_hidden()
    shot(page, "compare-phone")


def test_an_address_that_makes_no_sense_is_mended(port, open_page) -> None:
    page = open_page()
    visit(page, port, "store=port&q=harbour&top_k=1e400&bm25_k=-3&distance=Manhattan&mmr=0.5")
    assert cards(page, "BM25").count() == 3
    assert page.get_by_role("button", name="Settings · 1").is_visible()
    page.wait_for_function("!/top_k|bm25_k|distance/.test(location.search)")
    assert "mmr=0.5" in page.url
