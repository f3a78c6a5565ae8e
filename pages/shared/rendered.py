"""Document text as rendered Markdown that can do nothing: no script, no fetch, no markup of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from pages.shared.components.passage_view import passage_view


def rendered_markdown(text: str, *, words: Iterable[str] = (), key: str | None = None) -> None:
    """Draw a Markdown text; `words` are marked in it."""
    passage_view(html=inert_html(text), words=words, key=key)


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
