"""Postings: which chunk holds which term how often.

In the file they are kept by chunk (one row a chunk, two lists), so that a document comes and goes with a few rows. In
memory they are turned round, by term, in one sort of packed numbers; a write changes the turned form in place of
building it anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.store.analyzer import Analyzer
from ragnar_core.store.overlaps import SharedCodes
from ragnar_core.store.text import searched_text

Ints = NDArray[np.int64]

_BATCH = 2000
_MANY = 1_000_000


@dataclass(frozen=True)
class ChunkTerms:
    """Postings of n chunks, by chunk: those of chunk i are `term_ids[indptr[i]:indptr[i + 1]]` with counts `tfs`."""

    lengths: NDArray[np.int32]
    indptr: Ints
    term_ids: NDArray[np.int32]
    tfs: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def join(cls, parts: Sequence[ChunkTerms]) -> ChunkTerms:
        if not parts:
            nothing = np.zeros(0, np.int32)
            return cls(nothing, np.zeros(1, np.int64), nothing, nothing)
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        return cls(
            np.concatenate([part.lengths for part in parts]),
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            np.concatenate([part.term_ids for part in parts]),
            np.concatenate([part.tfs for part in parts]),
        )

    def slice(self, start: int, stop: int) -> ChunkTerms:
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        return ChunkTerms(
            self.lengths[start:stop], self.indptr[start : stop + 1] - a, self.term_ids[a:b], self.tfs[a:b]
        )

    def take(self, rows: Ints) -> ChunkTerms:
        """The postings of some chunks, in the order of `rows`."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(self.indptr[:-1][rows] - indptr[:-1], sizes) + np.arange(int(indptr[-1]))
        return ChunkTerms(self.lengths[rows], indptr, self.term_ids[places], self.tfs[places])


class Terms(Mapping[str, int]):
    """Term -> id, as far as a table of postings knows them; the dictionary behind it may grow meanwhile."""

    def __init__(self, ids: dict[str, int], known: int) -> None:
        self._ids = ids
        self._known = known

    def __getitem__(self, term: str) -> int:
        found = self._ids[term]
        if found >= self._known:
            raise KeyError(term)
        return found

    def __iter__(self) -> Iterator[str]:
        return (term for term, i in list(self._ids.items()) if i < self._known)

    def __len__(self) -> int:
        return self._known


@dataclass(frozen=True)
class PostingsTable:
    """Postings of the whole store, by term: those of term t are `rows[indptr[t]:indptr[t + 1]]` with counts `tf`.

    `rows` are positions in `chunk_ids` (int64, ascending, the same as the vectors'); `lengths` are terms a chunk,
    stop words not counted; `average_length` is over all chunks, empty ones as well.
    """

    terms: Mapping[str, int]
    indptr: Ints
    rows: NDArray[np.int32]
    tf: NDArray[np.int32]
    lengths: NDArray[np.int32]
    chunk_ids: Ints
    average_length: float

    @classmethod
    def build(
        cls, terms: Mapping[str, int], chunk_ids: Ints, chunks: ChunkTerms, n_terms: int
    ) -> PostingsTable:
        indptr, rows, tf = _by_term(chunks, n_terms)
        return cls._of(terms, indptr, rows, tf, chunks.lengths, chunk_ids)

    def changed(
        self, gone: Ints, new_ids: Ints, new: ChunkTerms, terms: Mapping[str, int], n_terms: int
    ) -> PostingsTable:
        """The table without the chunks `gone` and with `new` ones behind the rest (their ids are the highest)."""
        indptr, rows, tf, lengths, ids = self.indptr, self.rows, self.tf, self.lengths, self.chunk_ids
        if len(gone):
            stays = ~np.isin(ids, gone)
            place = np.cumsum(stays, dtype=np.int64) - 1
            keep = stays[rows]
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
            indptr, rows, tf = before[indptr], place[rows[keep]].astype(np.int32), tf[keep]
            lengths, ids = lengths[stays], ids[stays]
        if n_terms >= len(indptr):
            indptr = np.concatenate([indptr, np.full(n_terms + 1 - len(indptr), indptr[-1])])
        if len(new):
            shift, added_rows, added_tf = _by_term(new, n_terms, first_row=len(ids))
            new_places = np.repeat(indptr[1:], np.diff(shift)) + np.arange(len(added_rows))
            total = len(rows) + len(added_rows)
            old = np.ones(total, dtype=bool)
            old[new_places] = False
            merged_rows, merged_tf = np.empty(total, np.int32), np.empty(total, np.int32)
            merged_rows[old], merged_rows[new_places] = rows, added_rows
            merged_tf[old], merged_tf[new_places] = tf, added_tf
            indptr, rows, tf = indptr + shift, merged_rows, merged_tf
            lengths, ids = np.concatenate([lengths, new.lengths]), np.concatenate([ids, new_ids])
        return self._of(terms, indptr, rows, tf, lengths, ids)

    @classmethod
    def _of(
        cls, terms: Mapping[str, int], indptr: Ints, rows: Any, tf: Any, lengths: Any, ids: Ints
    ) -> PostingsTable:
        average = float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0
        return cls(terms, indptr, rows, tf, lengths, ids, average)


class TermCoder:
    """Turns texts into numbers of terms, and remembers for each word as written which they are."""

    def __init__(self, analyzer: Analyzer, ids: dict[str, int]) -> None:
        self.analyzer = analyzer
        self.ids = ids
        self.lock = threading.RLock()
        self.saved = len(ids)
        self.new: list[str] = []
        self._codes = _Codes(self)

    def encode(self, texts: Sequence[str]) -> ChunkTerms:
        """Postings of texts; new terms get the next numbers and wait in `unsaved` for the file."""
        with self.lock:
            return ChunkTerms.join(
                [self._encode(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
            )

    def encode_ranges(self, text: str, starts: Ints, ends: Ints, contexts: Sequence[str]) -> ChunkTerms:
        """Postings of `text[start:end]` with each one's context before it; what overlaps is looked at once."""
        with self.lock:
            if not self.analyzer.splits_at_spaces:
                ranges = zip(contexts, starts.tolist(), ends.tolist(), strict=True)
                return self.encode([searched_text(context, text[a:b]) for context, a, b in ranges])
            shared = SharedCodes(self._codes_of, text, starts, ends)
            # In the order of the chunks, so that the same documents always give the same numbers.
            known = {context: self._codes_of(context) for context in dict.fromkeys(contexts)}
            ranges = zip(contexts, starts.tolist(), ends.tolist(), strict=True)
            coded = [known[context] + shared.between(a, b) for context, a, b in ranges]
            return ChunkTerms.join([self._count(coded[i : i + _BATCH]) for i in range(0, len(coded), _BATCH)])

    def unsaved(self) -> list[tuple[int, str]]:
        """Numbers and terms that the file does not have yet; `mark_saved` forgets them once they are committed."""
        with self.lock:
            return list(zip(range(self.saved, self.saved + len(self.new)), self.new, strict=True))

    def mark_saved(self, count: int) -> None:
        with self.lock:
            self.saved += count
            del self.new[:count]

    def number(self, term: str) -> int:
        found = self.ids.get(term)
        if found is None:
            found = self.ids[term] = len(self.ids)
            self.new.append(term)
        return found

    def _encode(self, texts: Sequence[str]) -> ChunkTerms:
        return self._count([self._codes_of(text) for text in texts])

    def _codes_of(self, text: str) -> list[int]:
        return list(map(self._codes.__getitem__, self.analyzer.raw_tokens(text)))

    def _count(self, coded: Sequence[list[int]]) -> ChunkTerms:
        codes = self._codes
        sizes = np.fromiter(map(len, coded), np.int64, len(coded))
        flat = np.fromiter(chain.from_iterable(coded), np.int64, int(sizes.sum()))
        rows = np.repeat(np.arange(len(coded), dtype=np.int64), sizes)
        several = flat < -1
        if several.any():
            expanded = [codes.several[-2 - code] for code in flat[several].tolist()]
            more = np.fromiter(chain.from_iterable(expanded), np.int64)
            more_rows = np.repeat(rows[several], np.fromiter(map(len, expanded), np.int64, len(expanded)))
            flat, rows = np.concatenate([flat[~several], more]), np.concatenate([rows[~several], more_rows])
        if (flat < 0).any():
            rows, flat = rows[flat >= 0], flat[flat >= 0]
        counted = rows if not codes.stop_ids else rows[~np.isin(flat, np.fromiter(codes.stop_ids, np.int64))]
        lengths = np.bincount(counted, minlength=len(coded)).astype(np.int32)
        keys, tfs = np.unique(rows << 32 | flat, return_counts=True)
        indptr = np.searchsorted(keys, np.arange(len(coded) + 1, dtype=np.int64) << 32)
        return ChunkTerms(
            lengths, indptr.astype(np.int64), (keys & 0xFFFFFFFF).astype(np.int32), tfs.astype(np.int32)
        )


class _Codes(dict[str, int]):
    """Word as written -> number of its term; -1 for none; -2 - i where `several[i]` are the terms."""

    LIMIT = 1_000_000

    def __init__(self, coder: TermCoder) -> None:
        super().__init__()
        self._coder = coder
        self.several: list[tuple[int, ...]] = []
        self.stop_ids: set[int] = set()

    def __missing__(self, raw: str) -> int:
        number, analyzer = self._coder.number, self._coder.analyzer
        terms, counted = analyzer.indexed(raw)
        numbers = tuple(map(number, terms))
        if counted < len(terms):
            self.stop_ids.update(
                n for term, n in zip(terms, numbers, strict=True) if term in analyzer.stop_terms
            )
        if len(numbers) == 1:
            code = numbers[0]
        elif not numbers:
            code = -1
        else:
            self.several.append(numbers)
            code = -1 - len(self.several)
        # `several` is referred to by number, so a full table stops growing in place of starting anew.
        if len(self) < self.LIMIT:
            self[raw] = code
        return code


def _by_term(chunks: ChunkTerms, n_terms: int, first_row: int = 0) -> tuple[Ints, Any, Any]:
    """(bounds of each term, rows, counts), by term and within a term by row; the first chunk is row `first_row`."""
    if len(chunks.term_ids) >= _MANY:
        # Importing scipy takes longer than sorting few numbers; with many, its counting sort is ten times as fast.
        from scipy.sparse import csr_array

        given = (chunks.tfs, chunks.term_ids, chunks.indptr)
        turned = csr_array(given, shape=(len(chunks), n_terms)).tocsc()
        bounds, rows, tfs = turned.indptr, turned.indices, turned.data
    else:
        bounds = np.zeros(n_terms + 1, np.int64)
        np.cumsum(np.bincount(chunks.term_ids, minlength=n_terms), out=bounds[1:])
        order = np.argsort(chunks.term_ids, kind="stable")
        rows = np.repeat(np.arange(len(chunks)), np.diff(chunks.indptr))[order]
        tfs = chunks.tfs[order]
    rows = rows.astype(np.int32, copy=False)
    return bounds.astype(np.int64), rows + np.int32(first_row) if first_row else rows, tfs
