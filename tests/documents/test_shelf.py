from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.documents.shelf import Shelf
from ragnar_core.errors import DocumentError


def test_documents_come_back_after_a_restart(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    assert shelf.add(MarkdownDocument("# Würst\n\ntext", origin="a.md")) is False
    assert shelf.add(MarkdownDocument("second", origin="https://example.org/b?x=1#y")) is False

    again = Shelf(tmp_path / "shelf")

    assert [(e.origin, e.document.text) for e in again.entries()] == [
        ("a.md", "# Würst\n\ntext"),
        ("https://example.org/b?x=1#y", "second"),
    ]


def test_same_origin_replaces(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.add(MarkdownDocument("old", origin="a.md"))

    assert shelf.add(MarkdownDocument("new", origin="a.md")) is True
    assert len(shelf) == 1
    assert [e.document.text for e in Shelf(tmp_path).entries()] == ["new"]


def test_the_original_is_kept_beside_its_document(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.add(MarkdownDocument("text", origin="a.html"), original=b"<p>text</p>")
    assert Shelf(tmp_path).original("a.html") == b"<p>text</p>"
    assert shelf.original("b.html") is None

    shelf.add(MarkdownDocument("other", origin="a.html"))
    assert shelf.original("a.html") is None


def test_removed_stays_removed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.add(MarkdownDocument("text", origin="../../etc/passwd"), original=b"x")
    shelf.remove("../../etc/passwd")
    shelf.remove("never there")

    assert Shelf(tmp_path).entries() == []
    assert list(tmp_path.iterdir()) == []


def test_document_without_origin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="needs an origin"):
        Shelf(tmp_path).add(MarkdownDocument("text"))


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[]",
        json.dumps({"origin": "a"}),
        json.dumps({"origin": "a", "text": 3, "report": None, "added": ""}),
    ],
)
def test_damaged_file_is_named_and_kept(tmp_path: Path, damage: str) -> None:
    (tmp_path / "broken.json").write_text(damage)

    shelf = Shelf(tmp_path)

    assert len(shelf) == 0
    assert shelf.problems[0].startswith("broken.json could not be read back")
    assert (tmp_path / "broken.json").read_text() == damage
