"""Character classes for regular expressions: scripts that are written without spaces, marks that belong to a word."""

from __future__ import annotations

import unicodedata

# Han, kana, Hangul (with the jamo that decomposed Korean consists of) and their half-width forms.
CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3105-\u312f\u3130-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc"
    "\U00020000-\U0003ffff"
)
# Thai, Lao, Myanmar, Khmer: words are found by dictionary.
UNSPACED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc-\u17e9"
EMOJI = "\U0001f300-\U0001faff"


def _marks() -> str:
    """Combining marks of the basic plane, soft hyphen and joiners: inside a word they do not end it."""
    found = [0xAD, 0x200C, 0x200D]
    found += [c for c in range(0x300, 0x3100) if unicodedata.category(chr(c))[0] == "M"]
    found += [c for c in range(0xA66F, 0xABF0) if unicodedata.category(chr(c))[0] == "M"]
    skipped = {*range(0xE00, 0xF00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800)}
    pieces: list[str] = []
    start = previous = -2
    for code in [*found, -2]:
        if code in skipped:
            continue
        if code == previous + 1:
            previous = code
            continue
        if start >= 0:
            pieces.append(chr(start) if start == previous else f"{chr(start)}-{chr(previous)}")
        start = previous = code
    return "".join(pieces)


MARKS = _marks()

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
