"""Text on its way to the browser: JavaScript counts UTF-16 units, Python counts code points."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np


def utf16_offsets(text: str, positions: Sequence[int] | np.ndarray) -> np.ndarray:
    """Code point positions as UTF-16 positions, int64."""
    at = np.asarray(positions, np.int64)
    if text.isascii():
        return at
    points = np.frombuffer(text.encode("utf-32-le"), "<u4")
    return at + np.concatenate(([0], np.cumsum(points > 0xFFFF)))[at]


def utf16_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    if not spans:
        return []
    return utf16_offsets(text, np.array(spans).ravel()).reshape(-1, 2).tolist()


def best_window(spans: Sequence[tuple[int, int]], length: int, width: int) -> tuple[int, int]:
    """The stretch of `width` characters that holds most spans (the first of the best), with a little lead-in."""
    if length <= width or not spans:
        return 0, min(length, width)
    starts = np.array([s for s, _ in spans])
    inside = np.searchsorted(starts, starts + width * 3 // 4, "right") - np.arange(len(starts))
    first = int(starts[int(np.argmax(inside))])
    start = max(0, min(first - width // 5, length - width))
    return start, start + width


def snippet(text: str, spans: Sequence[tuple[int, int]], width: int = 260) -> tuple[str, list[list[int]]]:
    """A one-paragraph excerpt around the most matches, and the matches in it as UTF-16 ranges."""
    start, end = best_window(spans, len(text), width)
    if start > 0:
        space = text.find(" ", start, start + 25)
        start = space + 1 if space >= 0 else start
    lead, tail = ("… " if start > 0 else ""), (" …" if end < len(text) else "")
    kept = [(s, e) for s, e in spans if start <= s and e <= end]
    body, shift = _collapse(text[start:end])
    inner = [(len(lead) + shift[s - start], len(lead) + shift[e - start]) for s, e in kept]
    shown = lead + body + tail
    return shown, utf16_spans(shown, inner)


def _collapse(text: str) -> tuple[str, list[int]]:
    """One line without Markdown's marks, and for each old position (and the end) its new one.

    Runs of white space become one blank; heading hashes, emphasis stars, backticks, table rules and the backslashes
    before marks go. Within code only the backticks do.
    """
    silent = np.zeros(len(text), bool)
    for mark in _MARKS.finditer(text):
        if mark["code"]:
            silent[mark.start() : mark.end()] = [char == "`" for char in mark[0]]
        else:
            silent[mark.start() : mark.start() + 1 if mark["escape"] else mark.end()] = True
    out: list[str] = []
    shift: list[int] = []
    blank = True
    for char, skip in zip(text, silent.tolist(), strict=True):
        shift.append(len(out))
        if char.isspace() or (skip and char in "#|-:"):
            if not blank:
                out.append(" ")
            blank = True
        elif not skip:
            out.append(char)
            blank = False
    shift.append(len(out))
    return "".join(out), shift


_MARKS = re.compile(
    r"(?P<code>^```(?s:.*?)(?:^```|\Z)|(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`))|(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|^#{1,6}(?= )|\*{1,3}|`+|^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$",
    re.MULTILINE,
)
