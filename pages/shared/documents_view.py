"""One document beside the facts of its reading, and a bench to try other selectors on an HTML page."""

from __future__ import annotations

import difflib

import streamlit as st

from pages.shared import reading, workspace
from pages.shared.reading import Selectors, Source
from pages.shared.rendered import rendered_markdown
from pages.shared.shell import plain
from ragnar_core import MarkdownDocument, Shelf

SHOWN = 20_000


def document_view(document: MarkdownDocument, shelf: Shelf, selectors: Selectors) -> None:
    facts, text = st.columns([1, 2], gap="medium")
    with facts:
        _facts(document)
    with text:
        origin = document.origin or ""
        original = shelf.original(origin)
        names = ["Markdown", "Rendered"]
        if original is not None or origin.startswith(("http://", "https://")):
            names.append("Try selectors")
        tabs = st.tabs(names)
        with tabs[0]:
            st.code(document.text[:SHOWN] or " ", language=None, wrap_lines=True, height=440)
            _cut(document)
        with tabs[1], st.container(height=460):
            rendered_markdown(document.text[:SHOWN])
        if len(tabs) > 2:
            with tabs[2]:
                _bench(document, original, shelf, selectors)


def _cut(document: MarkdownDocument) -> None:
    if len(document) > SHOWN:
        st.caption(f"The first {SHOWN:,} of {len(document):,} characters.")


def _facts(document: MarkdownDocument) -> None:
    report = document.report
    facts = {"Characters": f"{len(document):,}"}
    if report is not None:
        sure = "" if report.encoding_confidence is None else f" ({report.encoding_confidence:.0%} sure)"
        facts |= {
            "Title": report.title or "",
            "Read with": report.converter,
            "Encoding": f"{report.encoding}{sure}" if report.encoding else "",
            "Original": f"{report.bytes:,} bytes" if report.bytes is not None else "",
            "Pages": f"{report.pages:,}" if report.pages else "",
            "Pages without text": ", ".join(map(str, report.pages_without_text[:30])),
            "Suspicious characters": f"{report.suspicious_glyphs:,}" if report.suspicious_glyphs else "",
        }
    with st.container(border=True):
        lines = [f":gray[{name}]: {plain(value)}" for name, value in facts.items() if value]
        st.markdown("**How it was read**  \n" + "  \n".join(lines))
    for problem in report.problems if report else []:
        st.warning(plain(problem), icon=":material/warning:")


def _bench(document: MarkdownDocument, original: bytes | None, shelf: Shelf, selectors: Selectors) -> None:
    keep, drop = st.columns(2)
    extract = keep.text_input("Keep", ", ".join(selectors.extract), key="try_extract", live="400ms")
    zap = drop.text_input("Remove", ", ".join(selectors.zap), key="try_zap", live="400ms")
    tried = Selectors(reading.split_selectors(extract or ""), reading.split_selectors(zap or ""))
    source = Source(document.origin or "", original)
    if original is None and not st.button("Fetch the page again and try", icon=":material/download:"):
        return
    with workspace.page_errors():
        other = reading.read_one(source, tried)
    gone, come = _difference(document.text, other.text)
    st.caption(
        f"{len(document):,} characters now, {len(other):,} with these selectors: "
        f"{len(gone):,} lines go, {len(come):,} lines come."
    )
    lines = [f"- {line}" for line in gone[:200]] + [f"+ {line}" for line in come[:200]]
    st.code(
        "\n".join(lines) or "No difference.", language="diff" if lines else None, wrap_lines=True, height=330
    )
    if lines and st.button("Read it like this", icon=":material/check:"):
        shelf.add(other, original)
        st.rerun()


def _difference(old: str, new: str) -> tuple[list[str], list[str]]:
    """Lines that only the old text has, and lines that only the new one has, in order."""
    gone, come = [], []
    for line in difflib.ndiff(old.splitlines(), new.splitlines()) if len(old) < 60_000 else _rough(old, new):
        if line.startswith("- ") and line[2:].strip():
            gone.append(line[2:])
        elif line.startswith("+ ") and line[2:].strip():
            come.append(line[2:])
    return gone, come


def _rough(old: str, new: str) -> list[str]:
    before, after = old.splitlines(), new.splitlines()
    known, now = set(before), set(after)
    return [f"- {line}" for line in before if line not in now] + [
        f"+ {line}" for line in after if line not in known
    ]
