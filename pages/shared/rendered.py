"""Document text as rendered Markdown that can do nothing: no script, no fetch, no markup of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

_STYLE = """
<style>
.ragnar-passage { font-size: 15px; line-height: 1.55; overflow-wrap: anywhere; }
.ragnar-passage h1, .ragnar-passage h2, .ragnar-passage h3 { font-size: 1.15em; margin: .9em 0 .3em; padding: 0; }
.ragnar-passage table { border-collapse: collapse; display: block; overflow-x: auto; }
.ragnar-passage th, .ragnar-passage td { border: 1px solid rgb(128 128 128 / .35); padding: 3px 8px; text-align: left; }
.ragnar-passage pre { white-space: pre-wrap; padding: 8px 12px; border-radius: 6px; background: rgb(128 128 128 / .12); }
.ragnar-passage code { font-size: .9em; }
</style>
"""


def rendered_markdown(text: str) -> None:
    st.html(f'{_STYLE}<div class="ragnar-passage">{inert_html(text)}</div>')


def inert_html(text: str) -> str:
    """HTML of a Markdown text: raw HTML is shown as text, pictures as their description, links only to the web."""
    return _markdown.render(text)


def _picture(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    return f"<em>[picture: {escapeHtml(token.content or str(token.attrs.get('src', '')))}]</em>"


def _link(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    href = escapeHtml(str(tokens[index].attrs.get("href", "")))
    return f'<a href="{href}" target="_blank" rel="noopener noreferrer nofollow">'


_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_markdown.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:"))  # type: ignore[method-assign]
_markdown.renderer.rules["image"] = _picture
_markdown.renderer.rules["link_open"] = _link
