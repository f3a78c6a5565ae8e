"""YouTube pages: what the page says about the video, and its transcript in the form the caller asks for."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ragnar_core.documents.encoding import Decoded
from ragnar_core.documents.read import Reading, Source

HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com")
STATISTICS = (("Views", "interactionCount"), ("Keywords", "keywords"), ("Runtime", "duration"))


def is_video(url: str) -> bool:
    """True for the address of one video."""
    return video_id(url) is not None


def video_id(url: str) -> str | None:
    """The video's id, from any of the forms that YouTube's addresses take."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if part]
    host = (parts.hostname or "").lower()
    if host in ("youtu.be", "www.youtu.be"):
        return path[0] if path else None
    if host in HOSTS and path:
        if path[0] == "watch":
            return parse_qs(parts.query).get("v", [None])[0]
        if path[0] in ("shorts", "embed", "live") and len(path) > 1:
            return path[1]
    return None


def read_video(source: Source, decoded: Decoded) -> Reading:
    """Title, figures, description and transcript of a video page."""
    meta = _meta(decoded.text)
    title = meta.get("title") or meta.get("og:title") or meta.get("name")
    parts = ["# YouTube"]
    if title:
        parts.append(f"## {title}")
    figures = [f"- **{label}:** {meta[key]}" for label, key in STATISTICS if meta.get(key)]
    if figures:
        parts.append("### Video Metadata\n" + "\n".join(figures))
    description = meta.get("description") or meta.get("og:description")
    if description:
        parts.append(f"### Description\n{description}")
    notes = list(decoded.notes)
    transcript = _transcript(source, notes)
    if transcript:
        parts.append(f"### Transcript\n{transcript}")
    return Reading("\n\n".join(parts), "youtube", title=title, encoding=decoded.encoding, notes=tuple(notes))


def fetch_transcript(video: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The snippets (text, start, duration in seconds) and the facts about them, from YouTube."""
    listed = import_module("youtube_transcript_api").YouTubeTranscriptApi().list(video)
    languages = ["en", *(item.language_code for item in listed)]
    fetched = listed.find_transcript(languages).fetch()
    snippets = [{"text": s.text, "start": s.start, "duration": s.duration} for s in fetched]
    facts = {
        "language": fetched.language,
        "language_code": fetched.language_code,
        "video_id": fetched.video_id,
        "is_generated": fetched.is_generated,
    }
    return snippets, facts


def _transcript(source: Source, notes: list[str]) -> str:
    try:
        snippets, facts = fetch_transcript(video_id(source.url or "") or "")
    except ImportError:
        notes.append("The transcript was left out: install youtube-transcript-api to have it.")
        return ""
    except Exception as error:
        reason = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        notes.append(f"The transcript could not be fetched: {reason}")
        return ""
    formatter = source.options.youtube_transcript_formatter
    if formatter is None:
        return " ".join(str(snippet["text"]) for snippet in snippets)
    import pandas

    table = pandas.DataFrame(snippets, columns=["text", "start", "duration"])
    table.attrs["youtube_metadata"] = facts
    return str(formatter(table))


def _meta(html: str) -> dict[str, str]:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    found = {"title": " ".join(soup.title.get_text().split())} if soup.title else {}
    for tag in soup("meta"):
        key = next((str(tag[name]) for name in ("itemprop", "property", "name") if tag.get(name)), "")
        if key and tag.get("content"):
            found[key] = str(tag["content"])
    full = re.search(r'"attributedDescriptionBodyText":\{"content":("(?:[^"\\]|\\.)*")', html)
    if full:
        import json

        found["description"] = json.loads(full[1])
    return found
