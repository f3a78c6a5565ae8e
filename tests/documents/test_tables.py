from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragnar_core.documents import read_bytes
from ragnar_core.documents.tables import markdown_table, read_csv, sniff_delimiter

CELLS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")) | st.sampled_from("|\\\n")
)


def parsed(table: str) -> list[list[str]]:
    """The cells of a table as GitHub-flavoured Markdown reads them."""
    import cmarkgfm
    from lxml import html

    tree = html.fragment_fromstring(cmarkgfm.github_flavored_markdown_to_html(table), create_parent="div")
    rows = tree.iter("tr")
    return [["\n".join(cell.itertext()).strip() for cell in row] for row in rows]


def split(line: str) -> list[str]:
    cells, cell, position = [], "", 1
    while position < len(line):
        if line[position] == "\\" and position + 1 < len(line):
            run = len(line) - position - len(line[position:].lstrip("\\"))
            after = line[position + run : position + run + 1]
            if after == "|":
                cell += "\\" * (run // 2) + ("|" if run % 2 else "")
                position += run + (run % 2)
                continue
            cell += "\\" * run
            position += run
        elif line[position] == "|":
            cells.append(cell.strip(" ").replace("<br>", "\n"))
            cell, position = "", position + 1
        else:
            cell, position = cell + line[position], position + 1
    return cells


@given(st.lists(st.lists(CELLS.map(str.strip), min_size=2, max_size=2), min_size=1, max_size=4))
def test_parsing_a_table_again_gives_the_same_cells(rows: list[list[str]]) -> None:
    rows = [[" ".join(cell.replace("<br>", "").split(" ")).strip() for cell in row] for row in rows]
    lines = markdown_table(rows).split("\n")
    del lines[1]
    again = [split(line) for line in lines]
    assert again == [
        ["\n".join(part.strip(" \t") for part in cell.split("\n")) for cell in row] for row in rows
    ]


def test_rows_get_the_same_number_of_cells() -> None:
    assert markdown_table([["a", "b"], ["1"], ["x", "y", "z"]]) == (
        "| a | b |  |\n| --- | --- | --- |\n| 1 |  |  |\n| x | y | z |"
    )
    assert markdown_table([]) == ""


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("name;price\nbolt;1,50\nnut;0,20\n", ";"),
        ("a\tb\n1\t2,5\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('a;b\n"x;y";2\n', ";"),
        ("sep=;\na;b,c\n", ";"),
        ("only one column\nwith, commas\nhere\n", ","),
        ("one\ntwo\n", ","),
        ("", ","),
    ],
)
def test_the_delimiter_is_found(text: str, delimiter: str) -> None:
    assert sniff_delimiter(text) == delimiter


def test_csv_is_a_table_with_its_pipes_and_line_breaks() -> None:
    document = read_bytes(b'name,note\nbolt,"a|b"\nnut,"line1\nline2"\n', "x.csv")
    assert document.text == "| name | note |\n| --- | --- |\n| bolt | a\\|b |\n| nut | line1<br>line2 |"
    assert parsed(document.text) == [["name", "note"], ["bolt", "a|b"], ["nut", "line1\nline2"]]
    assert document.report.converter == "csv"


def test_semicolons_and_a_legacy_encoding() -> None:
    document = read_bytes("Straße;Größe\nAllee;3,5\n".encode("cp1252"), "x.csv")
    assert document.text == "| Straße | Größe |\n| --- | --- |\n| Allee | 3,5 |"
    assert document.report.encoding == "cp1252"
    japanese = read_bytes("品名,数量\nりんご,3\n".encode("cp932"), "jp.csv")
    assert japanese.text.startswith("| 品名 | 数量 |")


def test_a_delimiter_can_be_given_and_blank_parts_go() -> None:
    document = read_bytes(b"a:b::\n\n1:2::\n:::\n", "x.csv", delimiter=":")
    assert document.text == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_field_of_any_length_is_read_without_touching_the_csv_module() -> None:
    before = csv.field_size_limit()
    long = "x" * 200_000
    assert read_csv(f'a,b\n"{long}","say ""hi"""\n1,2') == [["a", "b"], [long, 'say "hi"'], ["1", "2"]]
    assert csv.field_size_limit() == before
