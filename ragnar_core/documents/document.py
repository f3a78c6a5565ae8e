"""A document: Markdown text, where it came from, and what happened while it was read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from ragnar_core.errors import DocumentError

# Unicode's White_Space, minus the characters that end a line. `str.rstrip` and `str.splitlines` would
# also take U+001C to U+001F, which ragnar keeps.
BLANKS = "\t \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
OTHER_LINE_ENDS = "\r\v\f\x85\u2028\u2029"
LINE_END = re.compile(f"\r\n|[\n{OTHER_LINE_ENDS}]")
BYTE_ORDER_MARK = "\ufeff"
PAGES_NAMED = 12


@dataclass(frozen=True)
class ReadReport:
    """How a document was read and what could not be.

    Attributes:
        converter: what turned the file into Markdown ("markitdown", "text", "csv", ...).
        encoding: the character encoding that was used, None for binary formats.
        encoding_confidence: 0 to 1, None when the encoding was declared or does not apply.
        bytes: size of the input, None when unknown.
        pages: number of pages, None where the format has none.
        pages_without_text: 1-based numbers of pages that gave no text (scans, pictures).
        characters: length of the Markdown in code points.
        suspicious_glyphs: characters that hint at a failed decoding (U+FFFD, private use, "(cid:7)").
        notes: further sentences for a person.
        title: the document's own title, None when it has none.
    """

    converter: str
    encoding: str | None = None
    encoding_confidence: float | None = None
    bytes: int | None = None
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()
    characters: int = 0
    suspicious_glyphs: int = 0
    notes: tuple[str, ...] = ()
    title: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The report that `to_dict` described. Names it does not know are left out."""
        known = {name: values[name] for name in (f.name for f in fields(cls)) if name in values}
        for name in ("pages_without_text", "notes"):
            known[name] = tuple(known.get(name) or ())
        return cls(**known)

    @property
    def problems(self) -> list[str]:
        """What was lost, one sentence each; empty when nothing was."""
        found: list[str] = []
        if self.characters == 0:
            found.append("No text was found.")
        if self.pages_without_text:
            found.append(self._pages_sentence())
        if self.suspicious_glyphs:
            found.append(
                f"{self.suspicious_glyphs:,} of {self.characters:,} characters look wrongly decoded; "
                "compare the text with the original."
            )
        if self.encoding_confidence is not None and self.encoding_confidence < 0.5:
            found.append(
                f"The encoding was guessed as {self.encoding} with little confidence "
                f"({self.encoding_confidence:.0%}); check the accented letters."
            )
        return [*found, *self.notes]

    def _pages_sentence(self) -> str:
        named = ", ".join(map(str, self.pages_without_text[:PAGES_NAMED]))
        if len(self.pages_without_text) > PAGES_NAMED:
            named += ", ..."
        total = f" of {self.pages:,} pages" if self.pages else ""
        return (
            f"Without text: {len(self.pages_without_text):,}{total} (page {named}). "
            "Scanned pages need OCR first."
        )


@dataclass(frozen=True)
class MarkdownDocument:
    """Markdown text and its origin.

    The text is normalised when the document is made (see `normalise`), so that positions in chunks,
    in the store and on the page all refer to the same characters. `len(document)` counts code points.

    Attributes:
        text: the normalised text.
        origin: path or URL, unique in a store; None for text that came from nowhere in particular.
        report: how it was read; not part of equality.

    Raises:
        DocumentError: the text is no string, or holds half a surrogate pair (no valid Unicode).
    """

    text: str
    origin: str | None = None
    report: ReadReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", normalise(self.text, origin=self.origin))

    def __len__(self) -> int:
        return len(self.text)

    def __bool__(self) -> bool:
        return True  # an empty document is still a document, `document or other` must not drop it

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the UTF-8 text, in hex: equal exactly when the text is."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()


def normalise(text: str, *, origin: str | None = None) -> str:
    """The text with one kind of line end, no blanks at line ends, no byte order marks and no NUL.

    As `unify_lines`, and blanks (Unicode's White_Space) at the end of a line go. Normalising twice
    changes nothing.

    Raises:
        DocumentError: the text is no string, or holds half a surrogate pair.
    """
    text = unify_lines(text, origin=origin)
    lines = text.split("\n")
    if {line[-1:] for line in lines}.isdisjoint(BLANKS):
        return text
    return "\n".join([line.rstrip(BLANKS) for line in lines])


def unify_lines(text: str, *, origin: str | None = None) -> str:
    """The text with one kind of line end, no byte order marks and no NUL.

    Lines end at CR LF, LF, CR, VT, FF, NEL, LS or PS and are joined by LF; U+FEFF at the start of a line goes.
    NUL becomes U+FFFD, as CommonMark asks (section 2.3).

    Raises:
        DocumentError: the text is no string, or holds half a surrogate pair.
    """
    if not isinstance(text, str):
        raise DocumentError(f"{_name(origin)} must be a string of Markdown, not {type(text).__name__}.")
    _refuse_surrogates(text, origin)
    text = text.replace("\0", "\ufffd")
    if any(end in text for end in OTHER_LINE_ENDS):
        text = "\n".join(LINE_END.split(text))
    if BYTE_ORDER_MARK in text:
        text = "\n".join([line.lstrip(BYTE_ORDER_MARK) for line in text.split("\n")])
    return text


def _refuse_surrogates(text: str, origin: str | None) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise DocumentError(
            f"{_name(origin)} is not valid Unicode: half a surrogate pair (U+{ord(text[error.start]):04X}) "
            f"at character {error.start}, line {line}; decode the file again with errors='replace'."
        ) from None


def _name(origin: str | None) -> str:
    return f"The document {origin}" if origin else "The document"
