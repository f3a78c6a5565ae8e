from __future__ import annotations

import datetime
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ragnar_core.documents import (
    load_documents_csv,
    load_documents_excel,
    load_documents_pdf,
    load_documents_txt,
)
from ragnar_core.errors import DocumentError


def test_csv_rows_are_text_and_metadata(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes('\ufefftext,id,note\nfirst é,1,\n,2,left out\n"third, with comma",3,n\n'.encode())
    rows = load_documents_csv(path)
    assert rows == [("first é", {"id": "1"}), ("third, with comma", {"id": "3", "note": "n"})]
    assert rows.problems == [f"1 rows of {path} have nothing in column 'text' and were left out."]


def test_csv_columns_delimiters_and_encodings(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("Größe;text\n5;Straße\n".encode("cp1252"))
    assert load_documents_csv(path) == [("Straße", {"Größe": "5"})]
    assert load_documents_csv(path, delimiter=";", encoding="cp1252") == [("Straße", {"Größe": "5"})]
    assert load_documents_csv(path, text_column="Größe", delimiter=None) == [("5", {"text": "Straße"})]


def test_a_missing_column_names_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"text,id\na,1\n")
    with pytest.raises(DocumentError) as caught:
        load_documents_csv(path, text_column="Text")
    assert str(caught.value) == f"{path} has no column 'Text'; it has 'text', 'id'. Did you mean 'text'?"
    with pytest.raises(DocumentError, match="There is no file"):
        load_documents_csv(tmp_path / "none.csv")
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"\n")
    with pytest.raises(DocumentError, match="holds no records"):
        load_documents_csv(empty)


def test_text_files_by_pattern_in_order_with_ids_of_their_own(tmp_path: Path) -> None:
    for name, text in (
        ("b.txt", "B"),
        ("a.txt", "café"),
        ("sub/a.txt", "sub"),
        ("c.txt", " "),
        ("d.md", "no"),
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode("cp1252"))
    flat = load_documents_txt(tmp_path / "*.txt")
    assert flat == [
        ("café", {"id": "a", "path": str(tmp_path / "a.txt")}),
        ("B", {"id": "b", "path": str(tmp_path / "b.txt")}),
    ]
    assert flat.problems == [f"{tmp_path / 'c.txt'} holds no text."]
    deep = load_documents_txt(os.path.join(tmp_path, "**", "*.txt"))
    assert [meta["id"] for _, meta in deep] == ["a", "b", "sub/a"]
    assert load_documents_txt(tmp_path / "b.txt") == [("B", {"id": "b", "path": str(tmp_path / "b.txt")})]
    with pytest.raises(DocumentError, match="No file matches"):
        load_documents_txt(tmp_path / "*.nothing")


def test_a_document_for_each_page(tmp_path: Path, make: ModuleType) -> None:
    path = tmp_path / "r.pdf"
    path.write_bytes(make.pdf([["One"], None, ["Three"]]))
    rows = load_documents_pdf(path)
    assert rows == [
        ("One", {"id": "r_1", "path": str(path), "page": 1}),
        ("Three", {"id": "r_3", "path": str(path), "page": 3}),
    ]
    assert rows.problems == [f"Page 2 of {path} has no text; a scan needs OCR first."]


def test_rows_of_a_workbook(tmp_path: Path, make: ModuleType) -> None:
    def build(book: Any) -> None:
        book.active.title = "Data"
        book.active.append(["text", "n", "when"])
        book.active.append(["first", 1, datetime.date(2024, 3, 1)])
        book.active.append([None, 2, None])
        other = book.create_sheet("Other")
        other.append(["A title"])
        other.append(["id", "text"])
        other.append(["k", "titled"])

    path = tmp_path / "w.xlsx"
    path.write_bytes(make.xlsx(build))
    assert load_documents_excel(path) == [("first", {"n": "1", "when": "2024-03-01", "id": "w_1"})]
    assert load_documents_excel(path, sheet="Other") == [("titled", {"id": "k"})]
    assert load_documents_excel(path, sheet=1)[0][0] == "titled"
    raw = load_documents_excel(path, text_column=0, skip_header=False)
    assert [text for text, _ in raw] == ["text", "first"]
    assert raw[0][1] == {"1": "n", "2": "when", "id": "w_1"}
    with pytest.raises(DocumentError, match=r"has no column 'body'; it has 'text', 'n', 'when'"):
        load_documents_excel(path, text_column="body")
    with pytest.raises(DocumentError, match=r"has no sheet 'Nope'; it has 'Data', 'Other'"):
        load_documents_excel(path, sheet="Nope")
    with pytest.raises(DocumentError, match=r"has no sheet 7; it has 'Data', 'Other'"):
        load_documents_excel(path, sheet=7)
