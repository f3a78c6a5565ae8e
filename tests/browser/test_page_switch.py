"""A page stays drawn though the sidebar asked for its job figures while the page was being switched."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("browser_tools", Path(__file__).with_name("conftest.py"))
_tools = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tools)
expect, running_server = _tools.expect, _tools.running_server

pytestmark = pytest.mark.browser

# The app's own sidebar with a job that never ends, asking often so that requests cross.
APP = """
import time
import streamlit as st

real = st.fragment
st.fragment = lambda run_every: real(run_every=0.15)
from pages.shared import sidebar
st.fragment = real

class Job:
    title, fraction = "Endless", 0.5

class Jobs:
    def active(self):
        return [Job()]

sidebar.manager = Jobs

def one():
    st.title("Page one")
    if st.button("To two"):
        st.switch_page(pages[1])
    st.write("All of one")

def two():
    st.title("Page two")
    # Longer than a request takes to come, and the other page is shorter: so one waits through both runs.
    time.sleep(0.25)
    if st.button("To one"):
        st.switch_page(pages[0])
    st.write("All of two")

pages = [st.Page(one, default=True), st.Page(two)]
page = st.navigation(pages)
sidebar.draw(page)
time.sleep(0.05)
page.run()
"""


def test_a_switch_that_crosses_a_request_of_the_sidebar(open_page, tmp_path: Path) -> None:
    script = tmp_path / "crossing.py"
    script.write_text(APP)
    with running_server(tmp_path / "home", tmp_path / "log", str(script)) as url:
        page = open_page()
        page.goto(url)
        expect(page.get_by_text("Endless · 50%")).to_be_visible()
        for _ in range(8):
            for there, back in (("two", "one"), ("one", "two")):
                page.get_by_role("button", name=f"To {there}").click()
                expect(page.get_by_text(f"All of {there}")).to_be_visible()
                # Long enough for an answer to a request that was on its way.
                page.wait_for_timeout(250)
                expect(page.get_by_role("button", name=f"To {back}")).to_be_visible()
