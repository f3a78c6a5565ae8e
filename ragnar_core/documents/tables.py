"""Markdown tables, and CSV as one."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence

DELIMITERS = ",;\t|"
SNIFFED_CHARACTERS = 65_536
LINE_BREAK = re.compile(r"[ \t]*(?:\r\n|[\r\n\v\f\x85\u2028\u2029])[ \t]*")
UNESCAPED_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
ANY_PIPE = re.compile(r"(?<!\\)(\\*)\|")


def markdown_table(rows: Sequence[Sequence[str]], *, escaped: bool = False) -> str:
    """A GitHub-flavoured table; the first row is the header.

    Each row gets as many cells as the longest one. Pipes are escaped and line breaks become `<br>`, so that
    parsing the table again gives the same cells. `escaped=True` says that the cells are Markdown already, in
    which a backslash before a pipe is an escape. An empty string for no rows.
    """
    width = max((len(row) for row in rows), default=0)
    if width == 0:
        return ""
    lines = [_line(row, width, escaped) for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * width) + " |")
    return "\n".join(lines)


def sniff_delimiter(text: str) -> str:
    """The character that parts the fields of `text`: it gives most records the same number of them.

    A first line `sep=;`, as spreadsheet programs write it, settles it. A comma if nothing speaks for another.
    """
    stated = re.match(r"\ufeff?sep=(.)\r?\n", text)
    if stated:
        return stated[1]
    head = text[:SNIFFED_CHARACTERS]
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        widths = [len(row) for row in _records(head, delimiter) if row][:200]
        widths = widths[:-1] if len(text) > len(head) else widths
        if not widths:
            continue
        width, count = Counter(widths).most_common(1)[0]
        score = count / len(widths) * min(width - 1, 3) if width > 1 else 0.0
        if score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def read_csv(text: str, delimiter: str | None = None) -> list[list[str]]:
    """The records of a CSV text; blank ones are left out. `delimiter=None` finds it out."""
    text = text.removeprefix("\ufeff")
    delimiter = delimiter or sniff_delimiter(text)
    text = re.sub(r"^sep=.\r?\n", "", text)
    return [row for row in _records(text, delimiter) if any(field.strip() for field in row)]


def csv_to_markdown(text: str, delimiter: str | None = None) -> str:
    """A CSV text as one Markdown table, its first record the header; columns without any text are dropped."""
    return markdown_table(drop_blank_columns(read_csv(text, delimiter)))


def drop_blank_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without the columns in which every cell is blank."""
    width = max((len(row) for row in rows), default=0)
    used = [False] * width
    for row in rows:
        for index, field in enumerate(row):
            if not used[index] and field.strip():
                used[index] = True
    if all(used):
        return [list(row) for row in rows]
    return [[field for index, field in enumerate(row) if used[index]] for row in rows]


def _line(row: Sequence[str], width: int, escaped: bool) -> str:
    cells = [_cell(text, escaped) if text else "" for text in row]
    return "| " + " | ".join(cells + [""] * (width - len(cells))) + " |"


def _cell(text: str, escaped: bool) -> str:
    text = text.strip()
    if "|" in text:
        pipe = UNESCAPED_PIPE if escaped else ANY_PIPE
        text = pipe.sub(lambda match: match[1] * (1 if escaped else 2) + r"\|", text)
    if not text.isprintable():
        text = LINE_BREAK.sub("<br>", text).replace("\t", " ")
    return text


def _records(text: str, delimiter: str) -> Iterable[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:  # a field over the module's limit, which is one setting for the whole process
        return list(_plain_records(text, delimiter))


def _plain_records(text: str, delimiter: str) -> Iterable[list[str]]:
    row: list[str] = []
    field = re.compile(
        rf'(?:"((?:[^"]|"")*)"([^{re.escape(delimiter)}\r\n]*)|([^{re.escape(delimiter)}\r\n]*))(\r\n|[{re.escape(delimiter)}\r\n]|$)'
    )
    position = 0
    while position < len(text):
        match = field.match(text, position)
        if match is None:  # a quote that never closes: the rest is its field
            row.append(text[position:].lstrip('"'))
            break
        quoted, tail, plain, end = match.groups()
        row.append(quoted.replace('""', '"') + tail if quoted is not None else plain)
        position = match.end()
        if end != delimiter:
            yield row
            row = []
    if row:
        yield row
