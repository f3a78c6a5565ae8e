"""Workbooks: each sheet a heading and a table without the blank rows and columns around it."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from ragnar_core.documents.archives import check_bounds
from ragnar_core.documents.read import Reading, ReadOptions, Source
from ragnar_core.documents.readers import damaged
from ragnar_core.documents.tables import drop_blank_columns, markdown_table
from ragnar_core.errors import DocumentError

FORMULA = re.compile(rb"<f[ >/]")


def read_xlsx(source: Source) -> Reading:
    """An Excel workbook. A formula without a stored result is shown as the formula, and noted."""
    check_bounds(source, "Excel")
    try:
        sheets, notes = _openpyxl_sheets(source.data)
    except Exception as error:
        raise damaged(source, "Excel", error) from None
    return _as_reading(sheets, notes, "openpyxl")


def read_xls(source: Source) -> Reading:
    """A workbook of Excel 97 to 2003."""
    try:
        sheets = _xlrd_sheets(source.data)
    except Exception as error:
        raise damaged(source, "Excel", error) from None
    return _as_reading(sheets, [], "xlrd")


def grid(data: bytes, name: str, sheet: int | str = 0) -> list[list[str]]:
    """All rows of one sheet as text, from its first row and column on, blank ones included.

    Raises:
        DocumentError: the file is damaged, or has no such sheet (the message names those there are).
    """
    from ragnar_core.documents.sniff import kind_of

    source = Source(data, name, name, ReadOptions(), kind_of(data, name))
    try:
        if source.kind == "xls":
            return _xlrd_grid(data, sheet)
        check_bounds(source, "Excel")
        return _openpyxl_grid(data, sheet)
    except (KeyError, IndexError) as error:
        raise DocumentError(f"{name} has no sheet {sheet!r}; it has {error.args[0]}.") from None
    except DocumentError:
        raise
    except Exception as error:
        raise damaged(source, "Excel", error) from None


def _as_reading(sheets: Sequence[tuple[str, list[list[str]]]], notes: list[str], converter: str) -> Reading:
    parts = []
    for name, rows in sheets:
        body = sheet_markdown(rows)
        if body:
            parts.append(f"## {name}\n\n{body}")
        else:
            notes.append(f"Sheet {name!r} is empty.")
    return Reading("\n\n".join(parts), converter, notes=tuple(notes))


def sheet_markdown(rows: Sequence[Sequence[str]]) -> str:
    """One sheet: lines above the table (titles), the table, and lines below it (sources, footnotes).

    A row with one used cell before the first row with several is a title; so is one after a blank row
    behind the last row with several.
    """
    used = [[text.strip() for text in row] for row in rows]
    filled = [len({text for text in row if text}) for row in used]
    table = [index for index, count in enumerate(filled) if count > 1]
    if not table:
        lines = [next(text for text in row if text) for row, count in zip(used, filled, strict=True) if count]
        return "\n\n".join(lines)
    first, last = table[0], table[-1]
    end = next((i for i in range(last + 1, len(used)) if not filled[i]), len(used))
    above = [next(text for text in row if text) for row in used[:first] if any(row)]
    below = [next(text for text in row if text) for row in used[end:] if any(row)]
    body = [row for row in used[first:end] if any(row)]
    return "\n\n".join([*above, markdown_table(drop_blank_columns(body)), *below])


def _openpyxl_sheets(data: bytes) -> tuple[list[tuple[str, list[list[str]]]], list[str]]:
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and extensions that openpyxl leaves out
        values = load_workbook(io.BytesIO(data), data_only=True)
        formulas = load_workbook(io.BytesIO(data)) if _has_formulas(data) else None
    sheets, notes = [], []
    for sheet in values.worksheets:
        source = formulas[sheet.title] if formulas is not None else None
        rows, bare = _cells(sheet, source)
        if bare:
            notes.append(
                f"{bare} formulas of sheet {sheet.title!r} have no stored result; the formulas are shown. "
                "Open and save the file in a spreadsheet program to have results."
            )
        if sheet.sheet_state != "visible":
            notes.append(f"Sheet {sheet.title!r} is hidden; it was read.")
        sheets.append((sheet.title, rows))
    return sheets, notes


def _cells(sheet: Any, formulas: Any) -> tuple[list[list[str]], int]:
    cells: dict[tuple[int, int], str] = {}
    bare = 0
    for (row, column), item in sheet._cells.items():
        value = item.value
        if value is None and formulas is not None:
            value = formulas._cells[(row, column)].value if (row, column) in formulas._cells else None
            bare += value is not None
            value = getattr(value, "text", value)
        if value is not None:
            cells[row, column] = as_text(value, item.number_format)
    for merged in sheet.merged_cells.ranges:
        text = cells.get((merged.min_row, merged.min_col))
        if text and merged.size["rows"] * merged.size["columns"] <= 10_000:
            for row in range(merged.min_row, merged.max_row + 1):
                for column in range(merged.min_col, merged.max_col + 1):
                    cells[row, column] = text
    return _matrix(cells), bare


def _matrix(cells: dict[tuple[int, int], str]) -> list[list[str]]:
    """The rows between the first and the last used one; a far-off stray cell costs no more than its row."""
    by_row: dict[int, dict[int, str]] = {}
    for (row, column), text in cells.items():
        by_row.setdefault(row, {})[column] = text
    columns = sorted({column for row in by_row.values() for column in row})
    rows: list[list[str]] = []
    previous = None
    for row in sorted(by_row):
        if previous is not None and row > previous + 1:
            rows.append([])
        rows.append([by_row[row].get(column, "") for column in columns])
        previous = row
    return rows


def _has_formulas(data: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return any(
            FORMULA.search(archive.read(name)) is not None
            for name in archive.namelist()
            if name.startswith("xl/worksheets/") and name.endswith(".xml")
        )


def _openpyxl_grid(data: bytes, sheet: int | str) -> list[list[str]]:
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(data), data_only=True)
    found = _pick(book.sheetnames, sheet)
    rows = book[found].iter_rows()
    return [["" if c.value is None else as_text(c.value, c.number_format) for c in row] for row in rows]


def _xlrd_grid(data: bytes, sheet: int | str) -> list[list[str]]:
    import xlrd  # type: ignore[import-untyped]

    book = xlrd.open_workbook(file_contents=data)
    found = book.sheet_by_name(_pick(book.sheet_names(), sheet))
    return [
        [_xlrd_text(found.cell(r, c), book.datemode) for c in range(found.ncols)] for r in range(found.nrows)
    ]


def _pick(names: list[str], sheet: int | str) -> str:
    there = ", ".join(map(repr, names))
    if isinstance(sheet, str):
        if sheet not in names:
            raise KeyError(there)
        return sheet
    if not -len(names) <= sheet < len(names):
        raise IndexError(there)
    return names[sheet]


def _xlrd_sheets(data: bytes) -> list[tuple[str, list[list[str]]]]:
    import xlrd

    book = xlrd.open_workbook(file_contents=data, formatting_info=True)
    sheets: list[tuple[str, list[list[str]]]] = []
    for sheet in book.sheets():
        cells: dict[tuple[int, int], str] = {}
        for row in range(sheet.nrows):
            for column in range(sheet.row_len(row)):
                text = _xlrd_text(sheet.cell(row, column), book.datemode)
                if text:
                    cells[row, column] = text
        for top, bottom, left, right in sheet.merged_cells:
            merged = cells.get((top, left))
            if merged:
                cells.update({(r, c): merged for r in range(top, bottom) for c in range(left, right)})
        sheets.append((sheet.name, _matrix(cells)))
    return sheets


def _xlrd_text(item: Any, datemode: int) -> str:
    import xlrd

    value: Any = item.value
    if item.ctype == xlrd.XL_CELL_DATE:
        value = xlrd.xldate_as_datetime(value, datemode)
    elif item.ctype == xlrd.XL_CELL_BOOLEAN:
        value = bool(value)
    elif item.ctype == xlrd.XL_CELL_ERROR:
        value = xlrd.error_text_from_code.get(value, "#ERROR")
    return "" if value == "" else as_text(value)


def as_text(value: Any, number_format: str = "General") -> str:
    """A cell's value as a person would write it: ISO dates, 12 rather than 12.0, 12.5% where so formatted."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        if "%" in number_format:
            return f"{value * 100:.12g}%"
        return str(value) if isinstance(value, int) else f"{value:.15g}"
    if isinstance(value, datetime):
        at_midnight = value.time() == time(0)
        return value.date().isoformat() if at_midnight else value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    return str(value)
