"""Character classes for regular expressions: scripts that are written without spaces, marks that belong to a word."""

from __future__ import annotations

import functools
import re
import unicodedata

# Han, kana, Hangul (with the jamo that decomposed Korean consists of) and their half-width forms.
CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3105-\u312f\u3130-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc"
)
# `re` looks a character of a class up in one step only where the class ends with the basic plane.
CJK_ASTRAL = "\U00020000-\U0003ffff"
ASTRAL = "\U00010000-\U0001efff"
# Thai, Lao, Myanmar, Khmer: words are found by dictionary.
UNSPACED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc-\u17e9"
EMOJI = "\U0001f300-\U0001faff"


@functools.cache
def marks() -> str:
    """Combining marks, soft hyphen and joiners, as ranges: inside a word they do not end it."""
    codes = [0xAD, 0x200C, 0x200D]
    codes += [c for c in range(0x300, 0x10000) if unicodedata.category(chr(c))[0] == "M"]
    return _ranges(codes)


@functools.cache
def word_characters() -> str:
    """Letters, digits and marks of scripts with spaces between words, as ranges for a character class.

    One class of ranges: several times faster in `re` than a choice between a negated class and the marks.
    """
    letters = [c for c in range(0x80, 0x10000) if chr(c).isalnum()]
    other = re.compile(f"[{CJK}{UNSPACED}]")
    codes = {*letters, *map(ord, re.findall(f"[{marks()}]", "".join(map(chr, range(0x80, 0x10000)))))}
    return "A-Za-z0-9" + _ranges(sorted(c for c in codes if not other.match(chr(c))))


def _ranges(codes: list[int]) -> str:
    pieces: list[str] = []
    start = previous = -2
    for code in [*codes, -2]:
        if code == previous + 1:
            previous = code
            continue
        if start >= 0:
            pieces.append(chr(start) if start == previous else f"{chr(start)}-{chr(previous)}")
        start = previous = code
    return "".join(pieces)


STEMMER_BY_SCRIPT = (
    ("\u0400", "\u052f", "russian"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
    ("\u0530", "\u058f", "armenian"),
)
"""First and last character of a script and the stemmer for its words when the store's language has another script."""


def script_stemmer(character: str) -> str | None:
    for first, last, name in STEMMER_BY_SCRIPT:
        if first <= character <= last:
            return name
    return None
