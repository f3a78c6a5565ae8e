"""The Inspect page in a browser: keyboard, selection, the handle between the halves, the chunk in its document."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ragnar_core import MarkdownDocument, Store, markdown_chunk

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, settle, shot = _tools.expect, _tools.settle, _tools.shot

pytestmark = pytest.mark.browser

TEXT = "# Animals\n\n" + "".join(
    f"## Animal {i}\n\nNumber {i} is a {'walrus' if i % 3 == 0 else 'seal'} that sleeps on ice and eats clams "
    "[as told](https://example.org/told).\n\n"
    for i in range(12)
)


@pytest.fixture(scope="module")
def zoo(server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page on a store of one document."""
    home = next(tmp_path_factory.getbasetemp().glob("server*")) / "home"
    home.mkdir(exist_ok=True)
    with Store.create(home / "animals.duckdb", name="animals") as store:
        store.insert(markdown_chunk(MarkdownDocument(TEXT, "animals.md"), target_size=200))
    return f"{server}/inspect?store=animals"


def chosen(page) -> int:
    return int(page.locator(".row[aria-selected=true]").get_attribute("data-id"))


def test_search_move_and_clear_by_keyboard(open_page, zoo: str) -> None:
    page = open_page()
    page.goto(zoo)
    expect(page.locator(".row[aria-selected=true]")).to_have_count(1)
    settle(page)
    first = chosen(page)
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(f"chunk={first + 1}(&|$)"))
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile(f"chunk={first + 2}(&|$)"))
    page.keyboard.press("k")
    expect(page).to_have_url(re.compile(f"chunk={first + 1}(&|$)"))

    page.keyboard.press("/")
    search = page.locator(".st-key-find input")
    expect(search).to_be_focused()
    page.keyboard.type("walrus")
    expect(page.locator(".row mark").first).to_have_text("walrus")
    expect(page.locator(".passage mark").first).to_have_text("walrus")
    settle(page)
    before = chosen(page)
    page.keyboard.press("ArrowDown")
    expect(page.locator(f".row[data-id='{before}']")).to_have_attribute("aria-selected", "false")
    moved = chosen(page)
    expect(page).to_have_url(re.compile(f"chunk={moved}(&|$)"))
    expect(page).to_have_url(re.compile("find=walrus(&|$)"))
    expect(page.locator(f".row[data-id='{moved}'] .rank")).to_have_text("2")

    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(page.locator(".row mark")).to_have_count(0)
    expect(page.locator(f".row[data-id='{moved}']")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile(r"^[^?]*\?((?!find=).)*$"))
    shot(page, "inspect_keyboard")


def test_what_is_typed_stays_in_the_address_with_the_passage_it_leads_to(open_page, zoo: str) -> None:
    page = open_page()
    page.goto(f"{zoo}&chunk=9")
    expect(page.locator(".row[aria-selected=true]")).to_have_attribute("data-id", "9")
    settle(page)
    for word in ("seal", "walrus", "clams"):
        page.locator(".st-key-find input").fill(word)
        expect(page.locator(".row mark").first).to_have_text(word)
        settle(page)
        best = chosen(page)
        expect(page).to_have_url(re.compile(f"find={word}(&|$)"))
        expect(page).to_have_url(re.compile(f"chunk={best}(&|$)"))
    address = page.url
    page.get_by_role("link", name="Start").first.click()
    expect(page.get_by_role("heading", name="Inspect")).to_have_count(0)
    settle(page)
    assert "chunk=" not in page.url
    other = open_page()
    other.goto(address)
    expect(other.locator(".row[aria-selected=true]")).to_have_attribute("data-id", str(best))
    expect(other.locator(".st-key-find input")).to_have_value("clams")


def test_quick_keys_end_where_they_lead(open_page, zoo: str) -> None:
    page = open_page()
    page.goto(zoo)
    expect(page.locator(".row[aria-selected=true]")).to_have_count(1)
    settle(page)
    last = chosen(page) + 8
    for _ in range(8):
        # Slower than choices are gathered, quicker than they are answered.
        page.keyboard.press("j", delay=100)
    for _ in range(2):
        expect(page.locator(f".row[data-id='{last}']")).to_have_attribute("aria-selected", "true")
        expect(page).to_have_url(re.compile(f"chunk={last}(&|$)"))
        settle(page)
    expect(page.locator("dd").first).to_have_text(str(last))


def test_a_link_shows_the_same_view_and_the_handle_moves(open_page, zoo: str) -> None:
    page = open_page()
    page.goto(f"{zoo}&find=walrus&chunk=5&show=In+document")
    own = page.locator(".flag.own")
    expect(own).to_have_text("chunk 5")
    page.locator(".flag", has_text=re.compile("^chunk 6$")).click()
    expect(own).to_have_text("chunk 6")
    expect(page).to_have_url(re.compile("chunk=6(&|$)"))
    expect(page.locator(".part.own.twice").first).to_be_attached()
    settle(page)
    shown = "".join(page.locator(".part").all_inner_texts())
    assert "Number 11" in shown

    handle = page.get_by_role("separator", name="Width of the list")
    expect(handle).to_have_attribute("aria-valuenow", "38")
    width = page.locator(".list").first.bounding_box()["width"]
    place = handle.bounding_box()
    page.mouse.move(place["x"] + 7, place["y"] + 40)
    page.mouse.down()
    page.mouse.move(place["x"] + 107, place["y"] + 40, steps=4)
    page.mouse.up()
    settle(page)
    wider = page.locator(".list").first.bounding_box()["width"]
    assert 80 <= wider - width <= 110
    dragged = handle.get_attribute("aria-valuenow")
    handle.press("ArrowLeft")
    expect(handle).not_to_have_attribute("aria-valuenow", dragged)
    settle(page)
    assert page.locator(".list").first.bounding_box()["width"] < wider


def test_rendered_raw_and_phone_width(open_page, zoo: str) -> None:
    page = open_page(width=390, height=844, dark=True)
    page.goto(f"{zoo}&find=walrus")
    link = page.locator(".passage a").first
    expect(link).to_have_attribute("href", "https://example.org/told")
    expect(link).to_have_attribute("target", "_blank")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    page.get_by_text("Raw", exact=True).click()
    expect(page.locator(".passage.raw")).to_contain_text("[as told](https://example.org/told)")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    list_box, passage_box = (page.locator(name).first.bounding_box() for name in (".list", ".passage"))
    assert passage_box["y"] > list_box["y"] + list_box["height"]
    shot(page, "inspect_phone_dark")
