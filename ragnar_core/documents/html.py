"""HTML to Markdown: markitdown's conversion, with selectors, whole tables, code languages and inert text.

The converter is a subclass with its own options; nothing of markitdown or markdownify is changed for the
process, so that threads with different selectors do not mix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ragnar_core.documents.tables import markdown_table
from ragnar_core.errors import DocumentError

SAFE_SCHEMES = ("http", "https", "file", "")  # pictures in data: are no text, their description is
RAW_START, RAW_END = "\ue0a1", "\ue0a2"  # around text of our own that is Markdown already (formulas)
DEEPEST = 120  # nested elements that the recursive conversion takes within Python's default limit
NEUTRAL = frozenset((
    "div", "span", "font", "section", "article", "center", "b", "i", "em", "strong", "u", "s", "small", "big",
    "a", "p", "blockquote", "ul", "ol", "li", "dl", "dd",
))  # fmt: skip
MOST_UNWRAPPED = 400  # moving a child costs as much as it has elements below it
MOST_OPEN = 20  # `<` before the next `>`; a script's closing tag is always among the last
TOO_DEEP = "Parts of the page are nested too deeply to keep their headings and lists; their text was taken."
NOT_A_LANGUAGE = re.compile(
    r"code|highlight|block|pretty|source|output|literal|screen|listing|cell|wrap|line|hljs|downlit"
)
LANGUAGE_PREFIX = re.compile(r"^(?:language-|lang-|highlight-source-|highlight-|brush:)(.+)$")

LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
INLINE_MARKS = re.compile(r"`|\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w{1,31};)|\](?=[(\[])")
EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)|(?<!\s)\*|\*(?!\s)")
LINE_OPENER = re.compile(
    r"(?m)^([ ]{0,3})(?:"
    r"(#{1,6}(?=\s|$)|[-+](?=\s|$)|>|={2,}[ ]*$|-{2,}[ ]*$|~~~|\[(?=[^\]\n]+\]:))"
    r"|(\d{1,9})(?=[.)](?:\s|$)))"
)


@dataclass(frozen=True)
class Converted:
    """Markdown, the title that the source states, and what a person should know."""

    markdown: str
    title: str | None = None
    notes: tuple[str, ...] = ()


def html_to_markdown(
    html: str,
    *,
    extract: Sequence[str] = (),
    zap: Sequence[str] = (),
    **options: Any,
) -> Converted:
    """Convert one HTML page or fragment.

    For each selector of `extract` that matches, only the first match is kept; each match of a selector in
    `zap` is removed. Selectors are CSS as soupsieve reads it. `options` go to the Markdown converter.

    Raises:
        DocumentError: a selector does not parse.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(_defused(html), "html.parser")
    title = _take_title(soup)
    for element in soup(["script", "style", "template"]):
        element.decompose()
    content: Any = soup.find("body") or soup
    for selector in extract:
        found = next(iter(_select(content, selector, first=True)), None)
        # An empty match (a frame that scripts fill) must not hide the text that is there.
        if found is not None and next(found.stripped_strings, None) is not None:
            content = found
    for selector in zap:
        for element in _select(content, selector):
            if not element.decomposed:
                element.decompose()
    markdown, notes = _convert(content, options)
    return Converted(LEADING_BLANK_LINES.sub("", markdown).rstrip(), title, notes)


def html_converter(extract: Sequence[str], zap: Sequence[str]) -> Any:
    """An HtmlConverter that converts our way, for markitdown's Word, PowerPoint and EPUB converters."""
    return _html_converter_class()(extract, zap)


def _defused(html: str) -> str:
    """The page without what takes the parser quadratic time: open comments, and many `<` without a `>`.

    They become text, as they would in the end.
    """
    html = ">".join(
        [_few_open(piece) if piece.count("<") > MOST_OPEN else piece for piece in html.split(">")]
    )
    closed = html.rfind("-->") + 3 if "-->" in html else 0
    if html.find("<!--", closed) < 0:
        return html
    return html[:closed] + html[closed:].replace("<!--", "&lt;!--")


def _few_open(piece: str) -> str:
    parts = piece.split("<")
    return "&lt;".join(parts[:-MOST_OPEN]) + "<" + "<".join(parts[-MOST_OPEN:])


def _take_title(soup: Any) -> str | None:
    element = soup.find("title")
    if element is None or element.find_parent("svg") is not None:
        return None
    element.extract()  # a page without <body> would show it as text
    return " ".join(element.get_text().split()) or None


def _select(content: Any, selector: str, *, first: bool = False) -> list[Any]:
    from soupsieve import SelectorSyntaxError

    if selector.isalpha():  # a plain element name, by far the most frequent: no need of the CSS engine
        return list(content.find_all(selector.lower(), limit=1 if first else None))
    try:
        return list(content.select(selector, limit=1 if first else 0))
    except (SelectorSyntaxError, NotImplementedError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DocumentError(f"The selector {selector!r} is not valid CSS: {reason}.") from None


def _convert(content: Any, options: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    make = _markdown_class()
    if _depth(content) <= DEEPEST:
        return make(**options).convert_soup(content), ()
    notes = _flatten(content)
    try:
        return make(**options).convert_soup(content), notes
    except RecursionError:
        return content.get_text("\n", strip=True), (TOO_DEEP,)


def _depth(content: Any) -> int:
    deepest, depth = 0, 0
    stack = [(content, 0)]
    while stack:
        element, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in element.children if getattr(child, "name", None))
    return deepest


def _flatten(content: Any) -> tuple[str, ...]:
    """Take out the wrappers below DEEPEST, what they hold stays in place; when they are many, leave text only."""
    stack, deep, edge = [(content, 0)], [], []
    while stack:
        element, depth = stack.pop()
        if depth == DEEPEST - 40:
            edge.append(element)
        elif depth > DEEPEST - 40 and element.name in NEUTRAL:
            deep.append(element)
        stack.extend((child, depth + 1) for child in element.children if getattr(child, "name", None))
    if len(deep) <= MOST_UNWRAPPED:
        for element in reversed(deep):  # innermost first: each then moves few children
            element.unwrap()
        return ()
    for element in edge:
        element.string = element.get_text("\n", strip=True)
    return (TOO_DEEP,)


@cache
def _html_converter_class() -> Any:
    from markitdown import DocumentConverterResult
    from markitdown.converters import HtmlConverter

    from ragnar_core.documents.encoding import decode

    class SelectingHtmlConverter(HtmlConverter):
        def __init__(self, extract: Sequence[str], zap: Sequence[str]) -> None:
            super().__init__()
            self._extract, self._zap = tuple(extract), tuple(zap)

        def convert(self, file_stream: Any, stream_info: Any, **kwargs: Any) -> Any:
            text = decode(file_stream.read(), declared=stream_info.charset, markup=True).text
            converted = html_to_markdown(text, extract=self._extract, zap=self._zap)
            return DocumentConverterResult(markdown=converted.markdown, title=converted.title)

    return SelectingHtmlConverter


@cache
def _markdown_class() -> Any:
    from markitdown.converters import _markdownify

    base: Any = _markdownify._CustomMarkdownify

    class Markdown(base):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            super().__init__(**{"code_language_callback": code_language, **options})
            self._cells: dict[int, str] = {}
            self._numbers: dict[int, int] = {}

        def escape(self, text: str, parent_tags: Any) -> str:
            if RAW_START not in text:
                return escape_inline(text)
            parts = re.split(f"{RAW_START}(.*?){RAW_END}", text, flags=re.S)
            return "".join(part if i % 2 else escape_inline(part) for i, part in enumerate(parts))

        def process_text(self, el: Any, parent_tags: Any = None) -> str:
            text = super().process_text(el, parent_tags)
            if parent_tags and ("_noformat" in parent_tags or "_inline" in parent_tags):
                return str(text)
            first, rest = ("", text) if _opens_block(el) else (text.partition("\n")[0], None)
            rest = text[len(first) :] if rest is None else rest
            return first + LINE_OPENER.sub(_escape_opener, rest) if rest else first

        def convert_img(self, el: Any, text: str, *args: Any, **kwargs: Any) -> str:
            scheme = str(el.get("src") or "").partition(":")
            if scheme[1] and scheme[0].strip().lower() not in SAFE_SCHEMES and "/" not in scheme[0]:
                alt = " ".join(str(el.get("alt") or "").split())
                return f" {escape_inline(alt)} " if alt else ""
            return str(super().convert_img(el, text, *args, **kwargs))

        def convert_br(self, el: Any, text: str, parent_tags: Any) -> str:
            if "td" in parent_tags or "th" in parent_tags:
                return "\n"
            return str(super().convert_br(el, text, parent_tags))

        def convert_pre(self, el: Any, text: str, parent_tags: Any) -> str:
            fenced = str(super().convert_pre(el, text, parent_tags))
            runs = [len(run) for run in re.findall(r"`{3,}", text)]
            if not runs or not fenced.strip():
                return fenced
            fence = "`" * (max(runs) + 1)
            head, _, body = fenced.strip("\n").partition("\n")
            return f"\n\n{fence}{head[3:]}\n{body[: -len('```')]}{fence}\n\n"

        def convert_li(self, el: Any, text: str, parent_tags: Any) -> str:
            parent = el.parent
            if parent is None or parent.name != "ol" or not text.strip():
                return str(super().convert_li(el, text, parent_tags))
            # As markdownify does it, but counting on: it looks back over all items at each of them.
            start = str(parent.get("start") or "")
            number = self._numbers.get(id(parent), int(start) if start.isdigit() and len(start) < 9 else 1)
            self._numbers[id(parent)] = number + 1
            bullet = f"{number}. "
            lines = text.strip().split("\n")
            indent = " " * len(bullet)
            rest = "".join(f"\n{indent}{line}" if line.strip() else "\n" for line in lines[1:])
            return f"{bullet}{lines[0]}{rest}\n"

        def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
            self._cells[id(el)] = text.strip()
            return ""

        convert_th = convert_td

        def convert_tr(self, el: Any, text: str, parent_tags: Any) -> str:
            return ""

        def convert_table(self, el: Any, text: str, parent_tags: Any) -> str:
            rows = self._grid(el)
            caption = text.strip()
            if not rows or not any(any(row) for row in rows):
                return f"\n\n{caption}\n\n" if caption else ""
            if "td" in parent_tags or "th" in parent_tags:
                body = "\n".join(" ".join(filter(None, row)) for row in rows)
            elif len(rows) == 1 and len(rows[0]) == 1:
                body = rows[0][0]
            else:
                body = markdown_table(rows, escaped=True)
            return "\n\n" + (f"{caption}\n\n" if caption else "") + body + "\n\n"

        def _grid(self, table: Any) -> list[list[str]]:
            rows: list[list[str]] = []
            pending: dict[int, tuple[str, int]] = {}  # column -> text, rows still covered by a rowspan
            for tr in table.find_all("tr"):
                if tr.find_parent("table") is not table:
                    continue
                row: list[str] = []
                for cell in tr.find_all(["td", "th"], recursive=False):
                    _take_pending(row, pending)
                    content = self._cells.pop(id(cell), "")
                    rowspan, colspan = _span(cell, "rowspan", 65_534), _span(cell, "colspan", 1_000)
                    for _ in range(colspan):
                        if rowspan > 1:
                            pending[len(row)] = (content, rowspan - 1)
                        row.append(content)
                _take_pending(row, pending)
                rows.append(row)
            return [row for row in rows if any(row)]

    for name in ("b", "strong", "em", "i", "del", "s", "sub", "sup", "u", "a", "code", "kbd", "samp"):
        setattr(Markdown, f"convert_{name}", _keeping_blanks(getattr(Markdown, f"convert_{name}")))
    return Markdown


def _keeping_blanks(convert: Any) -> Any:
    """An inline element that holds only blanks still parts the words around it; in code it changes nothing."""

    def implementation(self: Any, el: Any, text: str, *args: Any, **kwargs: Any) -> str:
        parents = kwargs.get("parent_tags") or (args[0] if args else ())
        if "_noformat" in parents:  # in code each blank counts
            return text
        if text and not text.strip():
            return " "
        return str(convert(self, el, text, *args, **kwargs))

    return implementation


def _take_pending(row: list[str], pending: dict[int, tuple[str, int]]) -> None:
    while len(row) in pending:
        column = len(row)
        content, left = pending.pop(column)
        if left > 1:
            pending[column] = (content, left - 1)
        row.append(content)


def _span(cell: Any, name: str, most: int) -> int:
    value = str(cell.get(name) or "")
    return max(1, min(most, int(value))) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _opens_block(el: Any) -> bool:
    before = el.previous_sibling
    while before is not None and not getattr(before, "name", None) and not str(before).strip():
        before = before.previous_sibling
    if before is not None:
        return before.name in ("br", "p", "div", "ul", "ol", "table", "pre", "hr", "blockquote")
    return el.parent is None or el.parent.name not in (
        "a",
        "b",
        "strong",
        "em",
        "i",
        "span",
        "code",
        "sub",
        "sup",
    )


def _escape_opener(match: re.Match[str]) -> str:
    indent, mark, number = match.groups()
    return f"{indent}\\{mark}" if mark else f"{indent}{number}\\"


def code_language(pre: Any) -> str:
    """The language of a `<pre>`: from its classes, its `<code>`'s, or its wrapper's; "" when unstated."""
    code = pre.find("code")
    wrapper = pre.parent
    for element in (pre, code, wrapper, wrapper.parent if wrapper is not None else None):
        if element is None or element.name not in ("pre", "code", "div", "figure"):
            continue
        classes = element.get("class") or []
        if "sourceCode" in classes[:-1]:
            return str(classes[classes.index("sourceCode") + 1])
        for name in classes:
            found = LANGUAGE_PREFIX.match(name)
            if found and found[1] not in ("default", "none", "plaintext", "text", "source"):
                return found[1].strip()
    classes = pre.get("class") or []
    plain = [
        name
        for name in classes
        if re.fullmatch(r"[A-Za-z][\w+#.-]{0,19}", name) and not NOT_A_LANGUAGE.search(name)
    ]
    return plain[0] if len(plain) == 1 else ""


def escape_inline(text: str) -> str:
    """Literal text that Markdown leaves as it is: no markup, no tag, no entity."""
    text = INLINE_MARKS.sub(r"\\\g<0>", text)
    return EMPHASIS.sub(r"\\\g<0>", text) if "*" in text or "_" in text else text
