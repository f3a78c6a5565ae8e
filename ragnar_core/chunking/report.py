"""What a way of chunking does to a document: lengths, tokens, kinds of cuts, blocks cut apart, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.boundaries import Boundaries
from ragnar_core.chunking.breaks import IntArray
from ragnar_core.chunking.chunks import Chunks
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.chunking.snap import CUT_KINDS, Cuts
from ragnar_core.chunking.units import CountTokens, Tokens

INSIDE_SENTENCE = ("cell", "word", "character")
"""Kinds of cuts that always leave half a sentence, or half a row, on each side."""

# What a line ends with when the next one starts something new, quotes and brackets after it aside.
LINE_CLOSERS = ".!?…:;。！？：；"
AFTER_CLOSERS = "\"'”’»)]*_`"

CHARACTERS_A_TOKEN = 4


class TokenRuler:
    """How many tokens any range of a document has, from one counting of its lines.

    Counting line by line finds a few tokens more than counting a whole chunk, never many: see `Tokens`. Without
    `count_tokens` a token is taken to be four characters.
    """

    def __init__(self, boundaries: Boundaries, count_tokens: CountTokens | None = None) -> None:
        self.exact = count_tokens is not None
        self._count = count_tokens or _four_characters
        borders = np.concatenate((boundaries.line_starts, boundaries.headings.start))
        text = boundaries.document.text
        self._tokens = Tokens(text, borders, self._count) if self.exact and text else None
        self._added = int(np.asarray(self._count([""]))[0])
        self._known: dict[str, int] = {}

    def measure(self, starts: IntArray, ends: IntArray, contexts: Sequence[str] | None = None) -> IntArray:
        """Tokens a chunk as it is embedded, context and all: int64 `(n,)`."""
        if self._tokens is None:
            inner = -(-(ends - starts) // CHARACTERS_A_TOKEN)
        else:
            inner = np.rint(self._tokens.units(ends) - self._tokens.units(starts)).astype(np.int64)
        tokens: IntArray = np.maximum(inner, 1) + self._added
        if contexts is not None:
            tokens = tokens + self._of_contexts(contexts)
        return tokens

    def _of_contexts(self, contexts: Sequence[str]) -> IntArray:
        new = list({context for context in contexts if context not in self._known})
        if new:
            counts = np.asarray(self._count(new), np.int64) - self._added
            self._known.update(zip(new, counts.tolist(), strict=True))
        return np.array([self._known[context] for context in contexts], np.int64)


@dataclass(frozen=True)
class CutBlock:
    """A table or a block of code with a cut inside.

    Attributes:
        kind: "table" or "code".
        start, end: its range of characters.
        cuts: the positions inside it where chunks start or end.
        whole: whether some chunk holds all of it nevertheless, thanks to overlap.
    """

    kind: str
    start: int
    end: int
    cuts: tuple[int, ...]
    whole: bool


@dataclass(frozen=True, eq=False)
class ChunkReport:
    """Figures about the chunks of one document; `chunk_report` makes it.

    Attributes:
        chunks: the chunks themselves.
        tokens: int64 (n,), tokens of each chunk as it is embedded.
        token_limit: tokens of a text that the model reads; None for any number.
        positions: int64 (m,), the distinct places inside the text where chunks start or end, ascending.
        kinds: uint8 (m,), what each place is, an index into `CUT_KINDS`.
        inside: bool (m,), whether it is inside a sentence or a row: a cut at a word, a character or in a cell, or
            at the end of a wrapped line that does not end a sentence.
        blocks: tables and blocks of code with a cut inside, in the order of the text.
    """

    chunks: Chunks
    tokens: IntArray
    token_limit: int | None
    positions: IntArray
    kinds: NDArray[np.uint8]
    inside: NDArray[np.bool_]
    blocks: tuple[CutBlock, ...]

    @cached_property
    def lengths(self) -> IntArray:
        """Characters a chunk, context not counted: int64 (n,)."""
        return self.chunks.ends - self.chunks.starts

    @property
    def duplication(self) -> float:
        """Characters of all chunks over characters of the document; 0 for an empty document."""
        total = len(self.chunks.document)
        return float(self.lengths.sum() / total) if total else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Cuts of each kind that occurs, strongest kind first."""
        counts = np.bincount(self.kinds, minlength=len(CUT_KINDS)).tolist()
        return {kind: count for kind, count in zip(CUT_KINDS, counts, strict=True) if count}

    @property
    def inside_sentence(self) -> float:
        """Part of the cuts, 0 to 1, that fall inside a sentence or a row."""
        return float(self.inside.mean()) if len(self.inside) else 0.0

    @property
    def too_long(self) -> IntArray:
        """The chunks, by number from 0, with more tokens than the model reads."""
        if self.token_limit is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.tokens > self.token_limit)

    @property
    def tokens_total(self) -> int:
        return int(self.tokens.sum())

    @property
    def tokens_read(self) -> int:
        """Tokens that reach the model: what is beyond its limit is cut off and costs nothing."""
        limit = self.token_limit
        return self.tokens_total if limit is None else int(np.minimum(self.tokens, limit).sum())

    def broken(self, kind: str) -> list[CutBlock]:
        """Blocks of a kind, "table" or "code", that no chunk holds whole."""
        return [block for block in self.blocks if block.kind == kind and not block.whole]


def chunk_report(
    boundaries: Boundaries,
    settings: ChunkSettings,
    *,
    ruler: TokenRuler | None = None,
    token_limit: int | None = None,
    count_tokens: CountTokens | None = None,
) -> ChunkReport:
    """Chunk a document and look at what came out.

    Args:
        boundaries: of the document.
        settings: how to chunk it.
        ruler: counts tokens; None takes four characters for a token.
        token_limit: tokens of a text that the model reads.
        count_tokens: what `settings` with `unit="tokens"` need.

    Raises:
        ChunkError: as `Boundaries.chunk`.
    """
    chunks = boundaries.chunk(settings, count_tokens=count_tokens)
    positions, kinds = used_cuts(chunks, boundaries.cuts(settings, count_tokens=count_tokens))
    measured = (ruler or TokenRuler(boundaries)).measure(chunks.starts, chunks.ends, chunks.contexts)
    blocks = [
        *_cut_blocks("table", boundaries.tables, chunks, positions),
        *_cut_blocks("code", boundaries.code, chunks, positions),
    ]
    blocks.sort(key=lambda block: block.start)
    inside = _inside_sentence(boundaries, positions, kinds)
    return ChunkReport(chunks, measured, token_limit, positions, kinds, inside, tuple(blocks))


def used_cuts(chunks: Chunks, cuts: Cuts) -> tuple[IntArray, NDArray[np.uint8]]:
    """The distinct places inside the text where these chunks start or end, and the kind of each.

    Not every planned cut is used: of chunks with a common edge only the longest stays.
    """
    positions = np.unique(np.concatenate((chunks.starts, chunks.ends)))
    positions = positions[(positions > 0) & (positions < len(chunks.document))]
    # Several cuts may have moved to one place; the strongest kind says what the place is.
    order = np.lexsort((cuts.kind, cuts.position))
    at = np.searchsorted(cuts.position[order], positions, "left")
    return positions, cuts.kind[order][at]


def _inside_sentence(
    boundaries: Boundaries, positions: IntArray, kinds: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    inside = np.isin(kinds, [CUT_KINDS.index(kind) for kind in INSIDE_SENTENCE])
    lines = np.flatnonzero(kinds == CUT_KINDS.index("line"))
    for blocks in (boundaries.tables, boundaries.code):
        lines = lines[~_within(positions[lines], blocks)]
    text = boundaries.document.text
    inside[lines] = [_breaks_wrapped_line(text, at) for at in positions[lines].tolist()]
    return inside


def _within(positions: IntArray, ranges: IntArray) -> NDArray[np.bool_]:
    """Which positions are inside one of the ascending ranges, their edges excluded."""
    if not len(ranges):
        return np.zeros(len(positions), np.bool_)
    before = np.searchsorted(ranges[:, 0], positions, "left") - 1
    within: NDArray[np.bool_] = (before >= 0) & (positions < ranges[np.maximum(before, 0), 1])
    return within


def _breaks_wrapped_line(text: str, at: int) -> bool:
    """Whether the lines before and after a cut between lines belong to one sentence."""
    before = text[max(at - 200, 0) : at]
    line = before.rstrip()
    if not line or before[len(line) :].count("\n") > 1 or text.startswith("\n\n", at):
        return False
    line = line.rstrip(AFTER_CLOSERS) or line
    return line[-1] not in LINE_CLOSERS


def _cut_blocks(kind: str, ranges: IntArray, chunks: Chunks, positions: IntArray) -> list[CutBlock]:
    if not len(ranges) or not len(chunks):
        return []
    first = np.searchsorted(positions, ranges[:, 0], "right")
    last = np.searchsorted(positions, ranges[:, 1], "left")
    # The last chunk that starts at or before a block reaches farthest of those: starts and ends both ascend.
    holder = np.searchsorted(chunks.starts, ranges[:, 0], "right") - 1
    whole = (holder >= 0) & (chunks.ends[np.maximum(holder, 0)] >= ranges[:, 1])
    return [
        CutBlock(
            kind,
            int(ranges[i, 0]),
            int(ranges[i, 1]),
            tuple(positions[first[i] : last[i]].tolist()),
            bool(whole[i]),
        )
        for i in np.flatnonzero(last > first).tolist()
    ]


@dataclass(frozen=True)
class CutDifference:
    """Where two ways of chunking cut one document: positions of both, of the first only, of the second only."""

    shared: IntArray
    only_a: IntArray
    only_b: IntArray

    @property
    def agreement(self) -> float:
        """Shared places over all places, 0 to 1 (Jaccard); 1 when neither cuts."""
        every = len(self.shared) + len(self.only_a) + len(self.only_b)
        return len(self.shared) / every if every else 1.0


def differing_cuts(a: ChunkReport, b: ChunkReport) -> CutDifference:
    """Compare where two reports about the same document cut."""
    return CutDifference(
        np.intersect1d(a.positions, b.positions),
        np.setdiff1d(a.positions, b.positions),
        np.setdiff1d(b.positions, a.positions),
    )


@dataclass(frozen=True)
class EmbeddingCost:
    """What a model asks for tokens.

    Attributes:
        label: the model, for people.
        token_limit: tokens of a text that it reads; None for any number.
        tokens_per_second: how fast it was measured; None where a network decides.
        dollars_per_million: list price of a million tokens; 0 for a model that runs here.
    """

    label: str
    token_limit: int | None = None
    tokens_per_second: float | None = None
    dollars_per_million: float = 0.0

    def seconds(self, tokens: int) -> float | None:
        return None if self.tokens_per_second is None else tokens / self.tokens_per_second

    def dollars(self, tokens: int) -> float:
        return tokens * self.dollars_per_million / 1e6


def _four_characters(texts: Sequence[str]) -> IntArray:
    return np.array([-(-len(text) // CHARACTERS_A_TOKEN) for text in texts], np.int64)
