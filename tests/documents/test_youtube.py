from __future__ import annotations

from typing import Any

import pytest

from ragnar_core.documents import read_as_markdown
from ragnar_core.documents import youtube as module
from ragnar_core.documents.read import Source, read_fetched, read_options
from ragnar_core.documents.youtube import video_id

PAGE = (
    b"<html><head><title>A Talk - YouTube</title><meta property='og:description' content='About things'>"
    b"<meta itemprop='interactionCount' content='1234'><meta itemprop='duration' content='PT3M'></head>"
    b"<body><nav>n</nav></body></html>"
)
SNIPPETS = [
    {"text": "Hello there", "start": 0.0, "duration": 2.5},
    {"text": "and more", "start": 65.2, "duration": 2.0},
]
FACTS = {"language": "English", "language_code": "en", "video_id": "abc", "is_generated": True}


def read(**options: Any) -> Any:
    how = read_options(**options)
    url = "https://www.youtube.com/watch?v=abc"
    return read_fetched(PAGE, "watch", url, how, content_type="text/html", url=url)


@pytest.fixture
def transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fetch_transcript", lambda video: (SNIPPETS, FACTS))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.youtube.com/watch?v=abc&t=3", "abc"),
        ("https://youtu.be/abc?t=1", "abc"),
        ("https://m.youtube.com/shorts/abc", "abc"),
        ("https://youtube.com/embed/abc", "abc"),
        ("https://www.youtube.com/", None),
        ("https://youtube.com.evil.test/watch?v=abc", None),
    ],
)
def test_the_id_of_a_video(url: str, expected: str | None) -> None:
    assert video_id(url) == expected


def test_a_video_is_its_facts_and_its_transcript(transcript: None) -> None:
    document = read()
    assert document.text == (
        "# A Talk - YouTube\n\n# YouTube\n\n## A Talk - YouTube\n\n### Video Metadata\n- **Views:** 1234\n"
        "- **Runtime:** PT3M\n\n### Description\nAbout things\n\n### Transcript\nHello there and more"
    )
    assert document.report.converter == "youtube"


def test_a_formatter_gets_the_snippets_and_the_facts(transcript: None) -> None:
    seen: list[Any] = []

    def formatter(table: Any) -> str:
        seen.append((list(table.columns), table.attrs["youtube_metadata"]["language_code"]))
        return "\n".join(
            f"[{start:.0f}] {text}" for text, start in zip(table["text"], table["start"], strict=True)
        )

    assert read(youtube_transcript_formatter=formatter).text.endswith(
        "### Transcript\n[0] Hello there\n[65] and more"
    )
    assert seen == [(["text", "start", "duration"], "en")]


def test_a_missing_transcript_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(video: str) -> Any:
        raise RuntimeError("\nSubtitles are disabled\nmore")

    monkeypatch.setattr(module, "fetch_transcript", fail)
    assert read().report.notes == ("The transcript could not be fetched: Subtitles are disabled",)


def test_sources_carry_what_is_known() -> None:
    source = Source(b"x", "n", "o", read_options())
    assert (source.kind, source.url, source.depth) == ("", None, 0)
    assert callable(read_as_markdown)
