"""Where the blocks of a Markdown text stand: cmark-gfm's syntax tree, read through the cmarkgfm wheel.

cmarkgfm's Python functions only render HTML. Its shared library, however, exports the accessor functions
of cmark's public C interface, so the same file is opened a second time to walk the tree. Lines and columns
are 1-based and columns count bytes, as in cmark; `boundaries.py` turns them into code points.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import cffi
import numpy as np
from cmarkgfm import _cmark
from cmarkgfm.cmark import Options, core_extensions_ensure_registered
from numpy.typing import NDArray

# Only these two move a block; the others (autolink is quadratic on some inputs) act inside a line.
BLOCK_EXTENSIONS = ("table", "tasklist")
ALL_EXTENSIONS = ("table", "strikethrough", "autolink", "tagfilter", "tasklist")
PARSE_OPTIONS = (
    Options.CMARK_OPT_SOURCEPOS
    | Options.CMARK_OPT_FOOTNOTES
    | Options.CMARK_OPT_UNSAFE
    | Options.CMARK_OPT_STRIKETHROUGH_DOUBLE_TILDE
)

CODE_BLOCK, HTML_BLOCK, PARAGRAPH, HEADING, THEMATIC_BREAK = 0x8005, 0x8006, 0x8008, 0x8009, 0x800A
FOOTNOTE = 0x800B
LEAVES = frozenset({CODE_BLOCK, HTML_BLOCK, PARAGRAPH, HEADING, THEMATIC_BREAK})

ORDERED = 2
ITEMS = frozenset({"item", "tasklist"})
CONTAINERS = ITEMS | {"block_quote", "list", "table", "table_header", "table_row"}
TAGS = {
    "paragraph": "p",
    "code_block": "pre",
    "block_quote": "blockquote",
    "item": "li",
    "tasklist": "li",
    "thematic_break": "hr",
    "table": "table",
    "table_header": "tr",
    "table_row": "tr",
}

_ffi = cffi.FFI()
_ffi.cdef(
    """
    typedef struct cmark_node cmark_node;
    cmark_node *cmark_node_first_child(cmark_node *);
    cmark_node *cmark_node_next(cmark_node *);
    int cmark_node_get_type(cmark_node *);
    const char *cmark_node_get_type_string(cmark_node *);
    int cmark_node_get_heading_level(cmark_node *);
    int cmark_node_get_list_type(cmark_node *);
    int cmark_node_get_list_tight(cmark_node *);
    int cmark_node_get_start_line(cmark_node *);
    int cmark_node_get_start_column(cmark_node *);
    int cmark_node_get_end_line(cmark_node *);
    int cmark_node_get_end_column(cmark_node *);
    void cmark_node_free(cmark_node *);
    """
)
_nodes: Any = _ffi.dlopen(_cmark.__file__)
core_extensions_ensure_registered()

# Extensions that act inside a line add their characters to a table that all of cmark's parsers share.
_inline_extensions = threading.Lock()


class Blocks(NamedTuple):
    """The leaf blocks and tables of a text, in the order they stand in it, one int64 row each.

    Lines and columns are 1-based, columns count bytes. Blocks without a position (a paragraph that cmark
    split off before a table) are left out, as ragnar does.
    """

    headings: NDArray[np.int64]  # start line, start column, end line, end column, level
    paragraphs: NDArray[np.int64]  # start line, start column
    code: NDArray[np.int64]  # start line, start column, end line
    tables: NDArray[np.int64]  # line of the column names, end line


def parse_blocks(data: bytes) -> Blocks:
    """Parse UTF-8 Markdown and return where its blocks are; time and memory grow linearly."""
    headings: list[int] = []
    paragraphs: list[int] = []
    code: list[int] = []
    tables: list[int] = []
    table = _table_type()
    # Local names, no helper calls and no tuples: this loop is where the time goes that parsing does not take.
    kind_of, child_of, next_of = (
        _nodes.cmark_node_get_type,
        _nodes.cmark_node_first_child,
        _nodes.cmark_node_next,
    )
    line_of, column_of = _nodes.cmark_node_get_start_line, _nodes.cmark_node_get_start_column
    last_line_of, last_column_of = _nodes.cmark_node_get_end_line, _nodes.cmark_node_get_end_column
    level_of = _nodes.cmark_node_get_heading_level
    add_paragraph = paragraphs.append
    with _tree(data, BLOCK_EXTENSIONS) as root:
        parents: list[Any] = []
        node = child_of(root)
        while True:
            if not node:
                if not parents:
                    break
                node = next_of(parents.pop())
                continue
            kind = kind_of(node)
            if kind == PARAGRAPH:
                add_paragraph(line_of(node))
                add_paragraph(column_of(node))
            elif kind == CODE_BLOCK:
                code += line_of(node), column_of(node), last_line_of(node)
            elif kind == HEADING:
                headings += line_of(node), column_of(node), last_line_of(node), last_column_of(node)
                headings.append(level_of(node))
            elif kind == table:
                # cmark gives a table that interrupts a paragraph the paragraph's first line; rows are right.
                row = next_of(child_of(node))
                last_line = last_line_of(node)
                tables += line_of(row) - 2 if row else last_line - 1, last_line
            elif kind not in LEAVES:
                parents.append(node)
                node = child_of(node)
                continue
            node = next_of(node)
    return Blocks(_rows(headings, 5), _rows(paragraphs, 2), _rows(code, 3), _rows(tables, 2))


def _rows(numbers: list[int], width: int) -> NDArray[np.int64]:
    rows = np.array(numbers, np.int64).reshape(-1, width)
    return rows[rows[:, 0] > 0]


def parse_nodes(data: bytes) -> list[tuple[str, int, int, int, int]]:
    """Every node of the tree, inline ones included: type, start line and column, end line and column."""
    found = []
    with _tree(data, ALL_EXTENSIONS) as root:
        parents: list[Any] = []
        node = root
        while True:
            if not node:
                if not parents:
                    break
                node = _nodes.cmark_node_next(parents.pop())
                continue
            name = _type_name(node)
            first = _nodes.cmark_node_get_start_line(node), _nodes.cmark_node_get_start_column(node)
            last = _nodes.cmark_node_get_end_line(node), _nodes.cmark_node_get_end_column(node)
            found.append((name, *first, *last))
            parents.append(node)
            node = _nodes.cmark_node_first_child(node)
    return [row for row in found if row[1] > 0]


class Element(NamedTuple):
    """An HTML element that a block becomes, and where the block stands (as in `Blocks`)."""

    tag: str
    first_line: int
    first_column: int
    last_line: int
    last_column: int


def parse_elements(data: bytes) -> list[Element]:
    """The block elements of the HTML that cmark would render, outer ones first.

    Footnotes are read as ordinary paragraphs, as ragnar reads them here.
    """
    found = []
    with _tree(data, BLOCK_EXTENSIONS, PARSE_OPTIONS & ~Options.CMARK_OPT_FOOTNOTES) as root:
        todo = [(_nodes.cmark_node_first_child(root), "")]
        while todo:
            node, parent = todo.pop()
            if not node:
                continue
            todo.append((_nodes.cmark_node_next(node), parent))
            kind = _type_name(node)
            tag = _tag(node, kind, parent)
            if tag:
                first = _nodes.cmark_node_get_start_line(node), _nodes.cmark_node_get_start_column(node)
                last = _nodes.cmark_node_get_end_line(node), _nodes.cmark_node_get_end_column(node)
                found.append(Element(tag, *first, *last))
            if kind in CONTAINERS:
                tight = kind == "list" and _nodes.cmark_node_get_list_tight(node)
                inner = "tight" if tight or (parent == "tight" and kind in ITEMS) else kind
                todo.append((_nodes.cmark_node_first_child(node), inner))
    return [element for element in found if element.first_line > 0]


def _type_name(node: Any) -> str:
    name = _ffi.string(_nodes.cmark_node_get_type_string(node)).decode()
    if name == "<unknown>":  # cmark has no names for footnotes
        return "fn" if _nodes.cmark_node_get_type(node) == FOOTNOTE else "fnref"
    return str(name)


def _tag(node: Any, kind: str, parent: str) -> str:
    if kind == "heading":
        return f"h{_nodes.cmark_node_get_heading_level(node)}"
    if kind == "list":
        return "ol" if _nodes.cmark_node_get_list_type(node) == ORDERED else "ul"
    if kind == "paragraph" and parent == "tight":
        return ""
    if kind == "table_cell":
        return "th" if parent == "table_header" else "td"
    return TAGS.get(kind, "")


@contextmanager
def _tree(data: bytes, extensions: tuple[str, ...], options: int = PARSE_OPTIONS) -> Iterator[Any]:
    """The root of the parsed tree; freed afterwards, which cmarkgfm's own functions do not do."""
    lib, ffi = _cmark.lib, _cmark.ffi
    parser = lib.cmark_parser_new(options)
    for name in extensions:
        lib.cmark_parser_attach_syntax_extension(parser, lib.cmark_find_syntax_extension(name.encode()))
    with _inline_extensions if extensions is ALL_EXTENSIONS else nullcontext():
        lib.cmark_parser_feed(parser, ffi.from_buffer("char[]", data), len(data))
        address = int(ffi.cast("uintptr_t", lib.cmark_parser_finish(parser)))
    lib.cmark_parser_free(parser)
    root = _ffi.cast("cmark_node *", address)
    try:
        yield root
    finally:
        _nodes.cmark_node_free(root)


@cache
def _table_type() -> int:
    """The number of table nodes: extensions get theirs when they are registered."""
    with _tree(b"a|b\n-|-\n", BLOCK_EXTENSIONS) as root:
        return int(_nodes.cmark_node_get_type(_nodes.cmark_node_first_child(root)))
