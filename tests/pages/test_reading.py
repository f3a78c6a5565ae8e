from __future__ import annotations

from pathlib import Path

import pytest

from pages.shared.jobs import Job
from pages.shared.reading import (
    Crawls,
    Selectors,
    Source,
    allow_private,
    files_below,
    read_all,
    read_one,
    split_selectors,
)
from ragnar_core import CrawlState, DocumentError, Shelf

KINDS = ["md", "txt"]


def job() -> Job:
    return Job(1, "read", "Reading", "k")


def test_reading_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    shelf, work = Shelf(tmp_path), job()
    sources = [
        Source("a.md", b"# A"),
        Source("bad.pdf", b"%PDF-1.7 nonsense"),
        Source("p.html", b"<main><p>Eel</p></main><p>x</p>"),
    ]

    assert read_all(work, sources, shelf, Selectors()) == ["a.md", "p.html"]

    assert (work.done, work.total) == (3, 3)
    assert [what for what, _ in work.problems] == ["bad.pdf"]
    assert "damaged" in work.problems[0][1]
    assert [source.name for source in work.retry] == ["bad.pdf"]
    assert shelf.get("p.html").text == "Eel"
    assert shelf.original("p.html") == b"<main><p>Eel</p></main><p>x</p>"
    assert shelf.original("a.md") is None


def test_cancel_keeps_what_was_read(tmp_path: Path) -> None:
    shelf, work = Shelf(tmp_path), job()
    work.cancel.set()
    assert read_all(work, [Source("a.md", b"# A")], shelf, Selectors()) == []
    assert len(shelf) == 0


def test_selectors_are_a_value() -> None:
    page = Source("p.html", b"<main><p>keep</p></main><aside><p>side</p></aside>")
    assert read_one(page, Selectors()).text == "keep"
    assert read_one(page, Selectors(("aside",), ())).text == "side"
    assert split_selectors(" main , .content,") == ("main", ".content")


def test_paths_stay_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "a.md").write_text("a")
    (root / "sub" / "b.txt").write_text("b")
    (root / "sub" / "c.bin").write_text("c")
    (root / "sub" / ".git" / "d.md").write_text("d")
    (tmp_path / "secret.md").write_text("s")
    (root / "sub" / "link.md").symlink_to(tmp_path / "secret.md")

    assert files_below(".", root, KINDS) == [root / "a.md", root / "sub" / "b.txt"]
    assert files_below("sub/c.bin", root, KINDS) == [root / "sub" / "c.bin"]
    for outside in ("..", "/etc/passwd", "sub/../../secret.md", "sub/link.md"):
        with pytest.raises(DocumentError, match="only folder that may be read"):
            files_below(outside, root, KINDS)
    with pytest.raises(DocumentError, match="no file or folder"):
        files_below("nowhere", root, KINDS)
    (root / "empty").mkdir()
    with pytest.raises(DocumentError, match="no file of a kind"):
        files_below("empty", root, KINDS)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("", False),
        ("0", False),
        ("1", True),
        ("true", True),
        ("10.0.0.0/8, wiki.intern", ("10.0.0.0/8", "wiki.intern")),
    ],
)
def test_private_addresses_by_environment(
    value: str, meaning: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGNAR_ALLOW_PRIVATE", value)
    assert allow_private() == meaning


def test_crawl_states_come_back(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path / "crawls")
    assert crawls.load("https://example.org/") is None
    state = CrawlState(starts=("https://example.org/",), waiting=(("https://example.org/b", 1),))
    crawls.save("https://example.org/", state)
    assert crawls.load("https://example.org/") == state
    next(crawls.folder.glob("*.json")).write_text("{")
    assert crawls.load("https://example.org/") is None
