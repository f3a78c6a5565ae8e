"""Tables and folders as many small documents: (text, metadata) for each row, file or page."""

from __future__ import annotations

import difflib
import glob
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragnar_core.documents.encoding import decode
from ragnar_core.documents.limits import Limits
from ragnar_core.documents.read import ReadOptions, Source, check_path, file_bytes
from ragnar_core.documents.tables import read_csv, sniff_delimiter
from ragnar_core.errors import DocumentError

HEADER_SEARCH_ROWS = 10  # titles may stand above a sheet's header

Metadata = dict[str, Any]


class Rows(list[tuple[str, Metadata]]):
    """A list of (text, metadata), and in `.problems` a sentence on each part that gave no text."""

    def __init__(self, rows: Sequence[tuple[str, Metadata]] = (), problems: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.problems = list(problems)


def load_documents_csv(
    path: str | Path,
    text_column: str = "text",
    delimiter: str | None = ",",
    encoding: str | None = "utf-8",
) -> Rows:
    """A document for each record of a CSV file.

    Args:
        path: the file.
        text_column: the column that holds the text; the other ones, where they are not blank, are metadata.
        delimiter: what parts the fields; None finds it out, and so does "," when it does not give the column.
        encoding: a file that is not valid in "utf-8" (the default) has its encoding found out; another
            name is taken as said.

    Raises:
        DocumentError: no such file, or no such column (the message names the columns there are).
    """
    check_path(path)
    text = _text(path, encoding)
    records = read_csv(text, delimiter)
    if delimiter == "," and records and text_column not in _stripped(records[0]):
        found = sniff_delimiter(text)
        if found != ",":
            records = read_csv(text, found)
    if not records:
        raise DocumentError(f"{path} holds no records.")
    header, *body = records
    header = _stripped(header)
    column = _column(path, header, text_column)
    rows, blank = [], 0
    for record in body:
        values = dict(zip(header, record, strict=False))
        content = record[column] if column < len(record) else ""
        if not content.strip():
            blank += 1
            continue
        rows.append((content, {name: v for name, v in values.items() if name != text_column and v != ""}))
    return Rows(rows, _blank_problem(path, blank, text_column))


def load_documents_txt(path: str | Path, encoding: str | None = "utf-8") -> Rows:
    """A document for each text file; `path` may be a pattern such as `notes/**/*.txt`, taken in sorted order.

    The metadata are `id` (the file's name without extension, with its folder where names recur) and `path`.
    `encoding` as in `load_documents_csv`.

    Raises:
        DocumentError: no such file, or nothing matches the pattern.
    """
    check_path(path)
    pattern = os.path.expanduser(str(path))
    if glob.has_magic(pattern) and not os.path.exists(pattern):
        paths = sorted(p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))
        if not paths:
            raise DocumentError(f"No file matches {path}; check the folder and the pattern.")
    else:
        paths = [pattern]
    rows, problems = [], []
    for file, name in zip(paths, _ids(paths), strict=True):
        text = _text(file, encoding)
        if text.strip():
            rows.append((text, {"id": name, "path": file}))
        else:
            problems.append(f"{file} holds no text.")
    return Rows(rows, problems)


def load_documents_pdf(path: str | Path, password: str | None = None) -> Rows:
    """A document for each page of a PDF that has text; metadata `id`, `path` and `page` (from 1).

    Raises:
        DocumentError: no such file, or it is damaged or protected.
    """
    from ragnar_core.documents.pdf import pdf_pages

    check_path(path)
    file = Path(path).expanduser()
    source = Source(file_bytes(file, Limits()), file.name, str(path), ReadOptions(password=password), "pdf")
    rows, problems = [], []
    for number, text in enumerate(pdf_pages(source), 1):
        if text.strip():
            rows.append((text, {"id": f"{file.stem}_{number}", "path": str(path), "page": number}))
        else:
            problems.append(f"Page {number} of {path} has no text; a scan needs OCR first.")
    return Rows(rows, problems)


def load_documents_excel(
    path: str | Path,
    text_column: str | int = "text",
    sheet: int | str = 0,
    skip_header: bool = True,
) -> Rows:
    """A document for each row of a workbook's sheet.

    Args:
        path: an .xlsx or .xls file.
        text_column: the column that holds the text; the others are metadata, with an `id` when there is none.
        sheet: name, or number from 0.
        skip_header: the first row names the columns (titles above it are passed over); otherwise they are
            called "0", "1", ...

    Raises:
        DocumentError: no such file, sheet or column (the message names those there are).
    """
    from ragnar_core.documents.sheets import grid

    check_path(path)
    file = Path(path).expanduser()
    rows = grid(file_bytes(file, Limits()), str(path), sheet)
    if not rows:
        raise DocumentError(f"Sheet {sheet!r} of {path} is empty.")
    text_column = str(text_column)
    header, body = (
        _header(rows, text_column) if skip_header else ([str(i) for i in range(len(rows[0]))], rows)
    )
    column = _column(path, header, text_column)
    found, blank = [], 0
    for number, row in enumerate(body, 1):
        record = dict(zip(header, row, strict=False))
        text = row[column]
        if not text.strip():
            blank += any(row)
            continue
        record.setdefault("id", f"{file.stem}_{number}")
        found.append((text, {name: value for name, value in record.items() if name != text_column}))
    return Rows(found, _blank_problem(path, blank, text_column))


def _text(path: str | Path, encoding: str | None) -> str:
    data = file_bytes(Path(path).expanduser(), Limits())
    given = (
        None
        if encoding is None or encoding.lower().replace("_", "-") in ("utf-8", "utf8", "auto")
        else encoding
    )
    return decode(data, encoding=given).text


def _header(rows: list[list[str]], text_column: str) -> tuple[list[str], list[list[str]]]:
    for index, row in enumerate(rows[:HEADER_SEARCH_ROWS]):
        if text_column in _stripped(row):
            return _stripped(row), rows[index + 1 :]
    return _stripped(rows[0]), rows[1:]


def _column(path: str | Path, header: list[str], name: str) -> int:
    if name in header:
        return header.index(name)
    there = ", ".join(repr(column) for column in header if column)
    close = difflib.get_close_matches(name.lower(), [column.lower() for column in header], 1)
    meant = next((column for column in header if close and column.lower() == close[0]), None)
    hint = f" Did you mean {meant!r}?" if meant else ""
    raise DocumentError(f"{path} has no column {name!r}; it has {there}.{hint}")


def _ids(paths: list[str]) -> list[str]:
    stems = Counter(Path(path).stem for path in paths)
    common = os.path.commonpath([os.path.dirname(path) for path in paths]) if len(paths) > 1 else ""
    names = []
    for path in paths:
        stem = Path(path).stem
        if stems[stem] > 1:
            stem = Path(os.path.relpath(path, common or ".")).with_suffix("").as_posix()
        names.append(stem)
    repeated = Counter(names)
    return [
        name if repeated[name] == 1 else name + Path(path).suffix
        for name, path in zip(names, paths, strict=True)
    ]


def _stripped(row: Sequence[str]) -> list[str]:
    return [name.strip() for name in row]


def _blank_problem(path: str | Path, blank: int, column: str) -> list[str]:
    return [f"{blank} rows of {path} have nothing in column {column!r} and were left out."] if blank else []
