"""How a text becomes the terms that BM25 counts; the same way for chunks and for queries."""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import Stemmer

from ragnar_core.errors import StoreError
from ragnar_core.store import scripts
from ragnar_core.store.stopwords import DUCKDB, SHORT

Piece = tuple[str, int, int]
"""A term and the range of characters, within its raw token, that it stands for."""

LONGEST = 100
"""Characters of a token that are looked at; the rest is not part of the term."""

_CACHE_SIZE = 1_000_000


@dataclass(frozen=True)
class AnalyzerOptions:
    """What counts as the same word. Belongs to the store; `Store.set_analyzer` changes it and indexes again.

    method: "words" (ours) or "duckdb" (the tokens of DuckDB's `match_bm25`; then nothing else but `language`, which
        must be "porter", and `stop_words` applies).
    language: a Snowball stemmer by name ("english", "german", ...), or None for no stemming. Words in another script
        get the stemmer of that script.
    stop_words: "default" (a short list for the language), or words. They are indexed all the same, so that a query of
        nothing else still finds, but a query with other words ignores them and they do not count as length.
    accents: take accents off ("résumé" = "resume"). ß is always ss.
    lower: upper and lower case are the same.
    identifiers: `read_as_markdown`, `node.js`, `readAsMarkdown`, `C++` are terms as a whole and by their parts.
    cjk: Chinese, Japanese, Korean text by "bigram" (pairs of characters, and single ones), "unigram", or "none".
    token_pattern: a regular expression that finds the words, in place of ours.
    """

    method: str = "words"
    language: str | None = "english"
    stop_words: str | tuple[str, ...] = "default"
    accents: bool = True
    lower: bool = True
    identifiers: bool = True
    cjk: str = "bigram"
    token_pattern: str | None = None

    def __post_init__(self) -> None:
        if self.method not in ("words", "duckdb"):
            raise StoreError(f"the analyzer method {self.method!r} is not known; use 'words' or 'duckdb'")
        if self.language is not None and self.language not in Stemmer.algorithms():
            known = ", ".join(Stemmer.algorithms())
            raise StoreError(f"there is no stemmer for {self.language!r}; use None or one of {known}")
        if self.cjk not in ("bigram", "unigram", "none"):
            raise StoreError(f"cjk must be 'bigram', 'unigram' or 'none', not {self.cjk!r}")
        if isinstance(self.stop_words, str) and self.stop_words != "default":
            raise StoreError("stop_words must be 'default' or a tuple of words; () for none")
        if self.token_pattern is not None:
            try:
                re.compile(self.token_pattern)
            except re.error as error:
                raise StoreError(
                    f"the token pattern {self.token_pattern!r} is no regular expression: {error}"
                ) from error

    @classmethod
    def duckdb(cls) -> AnalyzerOptions:
        """What `PRAGMA create_fts_index` does when nothing is said: Porter's stemmer and 571 stop words."""
        return cls(method="duckdb", language="porter")

    def to_dict(self) -> dict[str, Any]:
        shown = asdict(self)
        if not isinstance(self.stop_words, str):
            shown["stop_words"] = list(self.stop_words)
        return shown

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> AnalyzerOptions:
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in settings.items() if name in known}
        if isinstance(given.get("stop_words"), list):
            given["stop_words"] = tuple(given["stop_words"])
        return cls(**given)


class Analyzer:
    """Turns text into terms. Safe to share between threads."""

    def __init__(self, options: AnalyzerOptions | None = None) -> None:
        self.options = AnalyzerOptions() if options is None else options
        if not isinstance(self.options, AnalyzerOptions):
            raise StoreError(f"an Analyzer takes AnalyzerOptions, not {type(options).__name__}")
        # A table of stems belongs to one thread at a time.
        self._lock = threading.RLock()
        self._stemmers: dict[str, Any] = {}
        self._cache: dict[str, tuple[Piece, ...]] = {}
        stop_words = self.options.stop_words
        if self.options.method == "duckdb":
            self.stop_terms = frozenset(DUCKDB if stop_words == "default" else stop_words)
            self._split: Callable[[str], tuple[Piece, ...]] = self._split_duckdb
            self._plain = self._any = _DUCKDB_TOKEN
        else:
            words = (
                SHORT.get(self.options.language or "", frozenset()) if stop_words == "default" else stop_words
            )
            self._split = self._split_word
            self._plain, self._any = _patterns(self.options.token_pattern)
            # A word is a stop word by what it becomes, so that "The" and "THE" are both.
            self.stop_terms = frozenset(
                term for word in words for term, _, _ in (self._split_word(word) or ((word, 0, 0),))
            )

    @property
    def splits_at_spaces(self) -> bool:
        """Whether a text may be cut at a space or line break and its parts looked at one by one."""
        return self.options.token_pattern is None

    def tokens(self, text: str) -> list[str]:
        """The terms of a query, in order, with repetitions; stop words only when there is nothing else."""
        terms = [term for raw in self.raw_tokens(text) for term, _, _ in self.pieces(raw)]
        if self.options.method == "duckdb":
            return terms
        return [term for term in terms if term not in self.stop_terms] or terms

    def spans(self, text: str) -> list[Piece]:
        """Every term, stop words as well, with the range of characters of `text` it came from: `text[start:end]`."""
        pattern = self._plain if text.isascii() else self._any
        return [
            (term, match.start() + start, match.start() + end)
            for match in pattern.finditer(text)
            for term, start, end in self.pieces(match.group())
        ]

    def raw_tokens(self, text: str) -> list[str]:
        """The text cut into words as written; `pieces` gives the terms of one."""
        return (self._plain if text.isascii() else self._any).findall(text)

    def pieces(self, raw: str) -> tuple[Piece, ...]:
        """The terms of one raw token, with their ranges in it."""
        found = self._cache.get(raw)
        if found is None:
            with self._lock:
                if len(self._cache) >= _CACHE_SIZE:
                    self._cache.clear()
                found = self._cache[raw] = self._split(raw)
        return found

    def indexed(self, raw: str) -> tuple[tuple[str, ...], int]:
        """The terms to index for a raw token, and how many of them count as length."""
        if self.options.method == "duckdb":
            # DuckDB looks for stop words before it stems.
            if _fold_duckdb(raw) in self.stop_terms:
                return (), 0
            terms = tuple(term for term, _, _ in self._split(raw))
            return terms, len(terms)
        terms = tuple(term for term, _, _ in self._split(raw))
        return terms, sum(term not in self.stop_terms for term in terms)

    def _split_duckdb(self, raw: str) -> tuple[Piece, ...]:
        term = _fold_duckdb(raw)
        if self.options.language:
            term = self._stem(term, self.options.language)
        return ((term, 0, len(raw)),)

    def _split_word(self, raw: str) -> tuple[Piece, ...]:
        if raw.isascii() and raw.isalpha() and (raw.islower() or raw[1:].islower() or raw.isupper()):
            return self._terms([(raw, 0, len(raw))])
        kind = _KIND.match(raw)
        if kind is not None and self.options.token_pattern is None:
            if kind.lastgroup == "cjk":
                return self._split_cjk(raw)
            if kind.lastgroup == "unspaced":
                return tuple((raw[start:end], start, end) for start, end in _dictionary_words(raw))
            return ((raw, 0, len(raw)),)
        if self.options.token_pattern is not None or not self.options.identifiers:
            return self._terms([(raw, 0, len(raw))])
        contraction = _CONTRACTION.fullmatch(raw)
        if contraction is not None:
            word, ending = contraction.groups()
            kept = word if ending == "s" else word + ending
            return self._terms([(kept, 0, len(raw))])
        return self._terms(_identifier(raw))

    def _split_cjk(self, raw: str) -> tuple[Piece, ...]:
        if self.options.cjk == "none":
            return ((unicodedata.normalize("NFKC", raw).casefold(), 0, len(raw)),)
        text = unicodedata.normalize("NFKC", raw)
        same = len(text) == len(raw)
        sizes = (1,) if self.options.cjk == "unigram" else (2, 1)
        return tuple(
            (text[i : i + size], i if same else 0, i + size if same else len(raw))
            for size in sizes
            for i in range(len(text) - size + 1)
        )

    def _terms(self, parts: list[Piece]) -> tuple[Piece, ...]:
        found: dict[str, Piece] = {}
        for part, start, end in parts:
            # In the file terms stand one a line; a pattern of one's own may find anything.
            term = " ".join(self._normal(part[:LONGEST]).splitlines())
            if term:
                found.setdefault(term, (term, start, end))
        return tuple(found.values())

    def _normal(self, word: str) -> str:
        term = word
        if not term.isascii():
            term = unicodedata.normalize("NFKC", term).translate(_IGNORED)
            if self.options.accents:
                term = _strip_accents(term)
        if self.options.lower:
            term = term.casefold()
        language = self.options.language
        if language is None or not term or not _is_letters(term):
            return term
        if not term.isascii():
            language = _stemmer_for(term, language)
        return self._stem(term, language)

    def _stem(self, term: str, language: str) -> str:
        with self._lock:
            stemmer = self._stemmers.get(language)
            if stemmer is None:
                stemmer = self._stemmers[language] = Stemmer.Stemmer(language, 0)
            return str(stemmer.stemWord(term))


_IGNORED = dict.fromkeys((0xAD, 0x200C, 0x200D))
_CONTRACTION = re.compile(r"(\w+)['’](s|t|re|ve|ll|d|m)", re.IGNORECASE)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_HUMP = re.compile(r"[a-z][A-Z]")
_CONNECTED = re.compile(r"[^_.'’+#]+")
_KIND = re.compile(
    rf"(?P<cjk>[{scripts.CJK}])|(?P<unspaced>[{scripts.UNSPACED}])|(?P<emoji>[{scripts.EMOJI}])"
)
# What DuckDB's fts replaces by spaces before it splits at white space (fts 1.5, the default of `ignore`).
_DUCKDB_TOKEN = re.compile(r"""[^0-9!@#$%^&*()_+={}\[\]:;<>,.?~\\/|'"`\-\t\n\f\r ]+""")
# Marks that are accents, not letters: in Latin, Greek, Cyrillic, Hebrew and Arabic.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u0652\u0670]+")


def _patterns(own: str | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Regular expressions for raw tokens: for ASCII text, which is several times faster, and for any."""
    if own is not None:
        # `findall` gives groups where there are some, and the whole match is wanted.
        whole = re.compile(re.sub(r"(?<!\\)\((?!\?)", "(?:", own))
        return whole, whole
    joined = r"[{w}]+(?:(?:_+|[.'’])[{w}]+)*(?:\+\+|#(?!\w))?"
    words = joined.format(w=scripts.word_characters())
    return re.compile(joined.format(w="A-Za-z0-9")), re.compile(
        rf"{words}|(?:[{scripts.CJK}]+|[{scripts.CJK_ASTRAL}]+)+|[{scripts.UNSPACED}]+|[{scripts.EMOJI}]|[{scripts.ASTRAL}]+"
    )


def _identifier(raw: str) -> list[Piece]:
    """The whole token first, then its parts where it has any."""
    whole = raw.replace("'", "").replace("’", "")
    pieces: list[Piece] = [(whole, 0, len(raw))]
    found = list(_CONNECTED.finditer(raw))
    if len(found) > 1 or (found and len(found[0].group()) < len(raw)):
        pieces += [(part.group(), part.start(), part.end()) for part in found]
    if _HUMP.search(raw):
        pieces += [
            (hump.group(), part.start() + hump.start(), part.start() + hump.end())
            for part in found
            for hump in _CAMEL.finditer(part.group())
        ]
    return pieces


def _is_letters(term: str) -> bool:
    if term.isascii():
        return term.isalpha()
    return all(c.isalpha() or unicodedata.category(c)[0] == "M" for c in term)


def _strip_accents(text: str) -> str:
    # и with a breve (й) is a letter of its own, and Russian endings need it.
    kept = text.replace("й", "\ue000").replace("Й", "\ue001")
    plain = _ACCENT.sub("", unicodedata.normalize("NFKD", kept))
    return unicodedata.normalize("NFC", plain.replace("\ue000", "й").replace("\ue001", "Й"))


def _stemmer_for(term: str, language: str) -> str:
    own = scripts.script_stemmer(term[0])
    if own is None or own == language:
        return language
    return language if (language, own) in _SAME_SCRIPT else own


_SAME_SCRIPT = {("serbian", "russian"), ("persian", "arabic"), ("nepali", "hindi")}


@functools.lru_cache(maxsize=4096)
def _fold_duckdb(raw: str) -> str:
    if raw.isascii():
        return raw.lower()
    decomposed = unicodedata.normalize("NFD", raw)
    plain = "".join(c for c in decomposed if unicodedata.category(c)[0] != "M")
    # Letter by letter, as DuckDB does: a sigma at the end of a word is no special case.
    return "".join(c.lower() for c in unicodedata.normalize("NFC", plain))


def _dictionary_words(run: str) -> list[tuple[int, int]]:
    from icu4py.breakers import WordBreaker

    # All these scripts are in the basic plane, where ICU's UTF-16 offsets are Python's.
    return [(start, end) for start, end in WordBreaker(run, "th").segments() if run[start:end].strip()]
