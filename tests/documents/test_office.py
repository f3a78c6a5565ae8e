from __future__ import annotations

import datetime
import io
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents import read_bytes
from ragnar_core.documents.sheets import as_text, sheet_markdown
from ragnar_core.errors import DocumentError

FRACTION = (
    '<m:oMathPara xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:oMath><m:f>'
    "<m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></m:oMathPara>"
)


def test_word_text_that_looks_like_markup_stays_text(make: ModuleType) -> None:
    def build(document: Any) -> None:
        from lxml import etree

        document.add_heading("T", 1)
        document.add_paragraph("## not a heading | pipe")
        document.add_paragraph("1. not a list")
        table = document.add_table(2, 2)
        for cell, text in zip(table._cells, ("a", "b|c", "d", "e"), strict=True):
            cell.text = text
        document.add_paragraph("Math: ")._p.append(etree.fromstring(FRACTION))

    document = read_bytes(make.docx(build), "x.docx")
    assert document.text == (
        "# T\n\n\\## not a heading | pipe\n\n1\\. not a list\n\n| a | b\\|c |\n| --- | --- |\n| d | e |\n\n"
        "Math: $$\\frac{a}{b}$$"
    )
    assert document.report.converter == "markitdown (docx)"


def titled(document: Any) -> None:
    document.add_paragraph("The *Whale*", style="Title")
    document.add_paragraph("or, the pursuit", style="Subtitle")
    document.add_paragraph("Call me Ishmael.")
    document.add_heading("Loomings", 1)
    document.add_paragraph("Some years ago.")
    document.add_heading("The sea", 2)


def test_a_title_of_word_is_a_heading_and_a_subtitle_a_line(make: ModuleType) -> None:
    assert read_bytes(make.docx(titled), "x.docx").text == (
        "# The \\*Whale\\*\n\n*or, the pursuit*\n\nCall me Ishmael.\n\n# Loomings\n\nSome years ago.\n\n## The sea"
    )


def test_a_style_map_of_the_person_comes_before_ours(make: ModuleType) -> None:
    ours = "p[style-name='Subtitle'] => h2:fresh"
    lines = read_bytes(make.docx(titled), "x.docx", style_map=ours).text.split("\n\n")
    assert lines[:2] == ["# The \\*Whale\\*", "## or, the pursuit"]


def test_merged_cells_of_word_do_not_shift(make: ModuleType) -> None:
    def build(document: Any) -> None:
        table = document.add_table(3, 3)
        for index, cell in enumerate(table._cells):
            cell.text = str(index)
        table.cell(1, 0).merge(table.cell(1, 1)).text = "wide"
        table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"

    assert read_bytes(make.docx(build), "x.docx").text.splitlines() == [
        "| 0 | 1 | 2 |",
        "| --- | --- | --- |",
        "| wide | wide | tall |",
        "| 6 | 7 | tall |",
    ]


def test_slides_with_tables_and_notes(make: ModuleType) -> None:
    def build(presentation: Any) -> None:
        from pptx.util import Inches

        slide = presentation.slides[1]
        table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
        for row, cells in enumerate((("k", "v"), ("a|b", "2"))):
            for column, text in enumerate(cells):
                table.cell(row, column).text = text
        slide.notes_slide.notes_text_frame.text = "Say this"

    text = read_bytes(make.pptx([("One", "first"), ("Two", "second")], build), "x.pptx").text
    assert "# One\nfirst" in text
    assert "# Two" in text
    assert "| k | v |\n| --- | --- |\n| a\\|b | 2 |" in text
    assert text.endswith("### Notes:\nSay this")
    assert read_bytes(make.pptx([("One", "first"), ("Two", "second")]), "x.pptx").report.pages == 2


def test_a_sheet_is_its_title_and_one_clean_table(make: ModuleType) -> None:
    def build(book: Any) -> None:
        sheet = book.active
        sheet.title = "Q1"
        sheet["A1"] = "Quarterly report"
        sheet.merge_cells("A1:C1")
        for column, text in enumerate(("id", "qty", "when"), 1):
            sheet.cell(3, column, text)
        sheet.append([1, 12, datetime.date(2024, 3, 1)])
        sheet.append([2])
        sheet["G9"] = None
        sheet["A8"] = "Source: us"
        book.create_sheet("Empty")

    document = read_bytes(make.xlsx(build), "x.xlsx")
    assert document.text == (
        "## Q1\n\nQuarterly report\n\n| id | qty | when |\n| --- | --- | --- |\n| 1 | 12 | 2024-03-01 |\n| 2 |  |  |"
        "\n\nSource: us"
    )
    assert document.report.notes == ("Sheet 'Empty' is empty.",)


def test_formulas_show_their_result_or_themselves(make: ModuleType) -> None:
    def build(book: Any) -> None:
        book.active.append(["n", "twice"])
        book.active.append([21, "=A2*2"])

    bare = make.xlsx(build)
    document = read_bytes(bare, "x.xlsx")
    assert document.text.endswith("| 21 | =A2*2 |")
    assert document.report.notes[0].startswith("1 formulas of sheet 'Sheet' have no stored result")

    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(bare)) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("sheet1.xml"):
                assert b"<f>A2*2</f><v" in data
                data = data.replace(b"<f>A2*2</f><v/>", b"<f>A2*2</f><v>42</v>").replace(
                    b"<f>A2*2</f><v></v>", b"<f>A2*2</f><v>42</v>"
                )
            target.writestr(name, data)
    calculated = read_bytes(buffer.getvalue(), "x.xlsx")
    assert calculated.text.endswith("| 21 | 42 |")
    assert calculated.report.notes == ()


def test_merged_cells_and_pipes_of_sheets(make: ModuleType) -> None:
    def build(book: Any) -> None:
        sheet = book.active
        sheet.append(["region", "year", "n"])
        sheet.append(["North", 2023, "a|b"])
        sheet.append([None, 2024, "x\ny"])
        sheet.merge_cells("A2:A3")
        hidden = book.create_sheet("Secret")
        hidden.append(["a", "b"])
        hidden.sheet_state = "hidden"

    document = read_bytes(make.xlsx(build), "x.xlsx")
    assert "| North | 2023 | a\\|b |\n| North | 2024 | x<br>y |" in document.text
    assert document.report.notes == ("Sheet 'Secret' is hidden; it was read.",)


def test_a_stray_cell_far_away_costs_nothing(make: ModuleType) -> None:
    def build(book: Any) -> None:
        book.active.append(["a", "b"])
        book.active["XFD1048576"] = "far"

    assert read_bytes(make.xlsx(build), "x.xlsx").text == "## Sheet\n\n| a | b |\n| --- | --- |\n\nfar"


def test_old_workbooks_are_read() -> None:
    xlwt = pytest.importorskip("xlwt")
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    for row, cells in enumerate((("a", "b"), (1.0, 2.5), ("", True))):
        for column, value in enumerate(cells):
            sheet.write(row, column, value)
    buffer = io.BytesIO()
    book.save(buffer)
    document = read_bytes(buffer.getvalue(), "x.xls")
    assert document.text == "## Old\n\n| a | b |\n| --- | --- |\n| 1 | 2.5 |\n|  | TRUE |"
    assert document.report.converter == "xlrd"


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (12.0, "General", "12"),
        (0.1 + 0.2, "General", "0.3"),
        (0.125, "0.0%", "12.5%"),
        (True, "General", "TRUE"),
        (datetime.datetime(2024, 3, 1), "General", "2024-03-01"),
        (datetime.datetime(2024, 3, 1, 9, 30), "General", "2024-03-01 09:30:00"),
        (datetime.time(9, 30), "General", "09:30:00"),
        (1e20, "General", "1e+20"),
        ("  x ", "General", "  x "),
    ],
)
def test_values_are_written_as_people_do(value: Any, number_format: str, text: str) -> None:
    assert as_text(value, number_format) == text


def test_a_sheet_of_single_lines_is_text() -> None:
    assert sheet_markdown([["Title"], [], ["", "a line"]]) == "Title\n\na line"
    assert sheet_markdown([]) == ""


def test_damaged_office_files_are_told(make: ModuleType) -> None:
    broken = make.zipped({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": b"<oops"})
    for name in ("x.xlsx", "x.docx"):
        with pytest.raises(DocumentError, match=f"{name} is damaged"):
            read_bytes(broken, name)
    whole = make.docx(lambda d: d.add_paragraph("x"))
    with pytest.raises(DocumentError, match=r"cut\.docx is damaged"):
        read_bytes(whole[: len(whole) // 2], "cut.docx")
