"""Why a chunk has its score and its rank, in numbers that add up."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.chunking.breaks import sentence_starts
from ragnar_core.errors import EmbedError, RetrievalError
from ragnar_core.retrieval.hybrid import Fused, fuse_prepared
from ragnar_core.retrieval.prepared import Prepared, prepare
from ragnar_core.retrieval.query import check_store, check_text, is_blank, query_terms, query_vector
from ragnar_core.retrieval.scoring import (
    Rows,
    inverse_document_frequency,
    rank_of_row,
    rounded,
    saturation,
)
from ragnar_core.retrieval.search import SearchSettings, check_settings

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable, Store


@dataclass(frozen=True)
class TermContribution:
    """One term of the query in one chunk: ``contribution = idf * saturation``.

    Attributes:
        term: as the store's analyzer makes it; ``words``: as the query writes it.
        document_frequency: chunks of the store that hold it.
        idf: ``log10((N - df + 0.5) / (df + 0.5) + 1)``.
        frequency: how often the chunk (with its context) holds it.
        length_factor: ``1 - b + b * length / average_length``; above 1 for chunks longer than the average.
        saturation: ``frequency (k + 1) / (frequency + k * length_factor)``.
        contribution: what the term adds to the score; 0 where the chunk does not hold it.
    """

    term: str
    words: tuple[str, ...]
    document_frequency: int
    idf: float
    frequency: int
    length_factor: float
    saturation: float
    contribution: float


@dataclass(frozen=True)
class Bm25Explanation:
    """The BM25 score of a chunk. ``score`` is the sum of the contributions; ``rank`` is None without a match.

    ``ignored`` are words of the query that make no term (stop words). ``matches`` counts the chunks in the
    ranking.
    """

    score: float
    rank: int | None
    matches: int
    terms: tuple[TermContribution, ...]
    ignored: tuple[str, ...]
    chunks: int
    length: int
    average_length: float
    k: float
    b: float

    def arithmetic(self) -> str:
        held = [term for term in self.terms if term.frequency]
        parts = [f"{term.term}: {term.idf:.3f} × {term.saturation:.3f}" for term in held]
        return f"{' + '.join(parts) or 'no term occurs'} = {self.score:.4f}"


@dataclass(frozen=True)
class VssExplanation:
    """The distance of a chunk (lower is nearer), its cosine similarity (higher), its rank among ``ranked``
    chunks."""

    method: str
    distance: float
    similarity: float
    rank: int | None
    ranked: int


@dataclass(frozen=True)
class FusionExplanation:
    """How the ranks became one score. ``rank`` is None where the chunk is no candidate of either search."""

    fusion: str
    score: float
    rank: int | None
    vss_rank: int | None
    bm25_rank: int | None
    vss_part: float
    bm25_part: float
    weights: tuple[float, float]
    rrf_k: float
    candidates: int

    def arithmetic(self) -> str:
        if self.fusion != "rrf":
            return f"VSS {self.vss_part:.4f} + BM25 {self.bm25_part:.4f} = {self.score:.4f}"
        parts = [
            f"{weight:g} / ({self.rrf_k:g} + {rank})" if rank else "0"
            for weight, rank in zip(self.weights, (self.vss_rank, self.bm25_rank), strict=True)
        ]
        return f"VSS {parts[0]} + BM25 {parts[1]} = {self.score:.5f}"


@dataclass(frozen=True)
class Explanation:
    """Everything about one chunk and one query.

    ``vss`` is None for a blank query, and ``vss`` and ``fusion`` where the query cannot be embedded: then
    ``no_vss`` says why (else it is empty).
    """

    chunk_id: int
    bm25: Bm25Explanation
    vss: VssExplanation | None
    fusion: FusionExplanation | None
    no_vss: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def explain(
    store: Store, query: str, chunk_id: int, settings: SearchSettings | None = None, *, vector: Any = None
) -> Explanation:
    """Score and rank of a chunk in each search, whether or not it is among the results.

    Ranks are among the chunks that the filter and the thresholds of the mode let through; a chunk they shut out
    has none. Where the store has no model, or it fails, BM25 is explained all the same.

    Args:
        settings: those of the search; only its scoring counts, not ``top_k`` or ``selection``.
        vector: the query's vector where it is known.

    Raises:
        RetrievalError: the store has no chunk of that number; else as the searches do.
    """
    settings = SearchSettings() if settings is None else settings
    ready = prepare_for(store, query, settings, vector)
    return explain_row(store, ready, query, row_of(ready, chunk_id), settings)


def explain_row(store: Store, ready: Prepared, query: str, row: int, settings: SearchSettings) -> Explanation:
    return Explanation(
        int(ready.vectors.chunk_ids[row]),
        explain_bm25(store, ready, query, row, settings),
        _explain_vss(ready, row),
        None if ready.no_vector else _explain_fusion(ready, row, settings),
        ready.no_vector,
    )


def prepare_for(
    store: Store, query: str, settings: SearchSettings, vector: Any = None, *, no_vector: str = ""
) -> Prepared:
    """The question as the search sees it; of its words alone where it cannot be embedded (``no_vector``)."""

    def ready(**more: Any) -> Prepared:
        return prepare(
            store,
            query,
            filter=settings.filter,
            method=settings.method,
            k=settings.k,
            b=settings.b,
            conjunctive=settings.conjunctive,
            min_similarity=settings.min_similarity if settings.applies("min_similarity") else None,
            min_bm25=settings.min_bm25 if settings.applies("min_bm25") else None,
            **more,
        )

    check_store(store)
    check_text(query)
    check_settings(settings)
    if not (no_vector or store.dim or is_blank(query)) and vector is None:
        no_vector = f"{store.location} has no vectors: it was made for BM25 only"
    if not no_vector:
        try:
            return ready(vector=vector)
        except EmbedError as error:
            no_vector = str(error)
    return replace(ready(words_only=True), no_vector=no_vector)


def row_of(ready: Prepared, chunk_id: int) -> int:
    if isinstance(chunk_id, bool) or not isinstance(chunk_id, Integral):
        raise RetrievalError(f"chunk_id must be the number of a chunk, not {chunk_id!r}")
    ids = ready.vectors.chunk_ids
    row = int(np.searchsorted(ids, chunk_id))
    if row >= len(ids) or ids[row] != chunk_id:
        raise RetrievalError(f"the store has no chunk {chunk_id}; it may have been replaced, search again")
    return row


def explain_bm25(
    store: Store, ready: Prepared, query: str, row: int, settings: SearchSettings
) -> Bm25Explanation:
    postings = ready.postings
    words: dict[str, dict[str, None]] = {}
    for term, start, end in store.analyzer.spans(query):
        words.setdefault(term, {})[query[start:end]] = None
    length = int(postings.lengths[row])
    average = float(postings.average_length)
    factor = 1 - settings.b + settings.b * length / average if average else 1.0
    terms = []
    for term in ready.terms:
        document_frequency, frequency = _counts(postings, term, row)
        idf = inverse_document_frequency(postings, document_frequency)
        counted = np.array([frequency], dtype=np.float64)
        weight = 0.0
        if frequency:
            weight = float(saturation(counted, np.array([length]), average, k=settings.k, b=settings.b)[0])
        terms.append(
            TermContribution(
                term,
                tuple(words.get(term, {term: None})),
                document_frequency,
                idf,
                frequency,
                factor,
                weight,
                idf * weight,
            )
        )
    known = set(ready.terms)
    return Bm25Explanation(
        score=sum(term.contribution for term in terms) if ready.scores[row] > 0 else 0.0,
        rank=rank_in_scores(ready, row),
        matches=int(np.count_nonzero(ready.scores if ready.allowed is None else ready.scores[ready.allowed])),
        terms=tuple(terms),
        ignored=tuple(word for term, written in words.items() if term not in known for word in written),
        chunks=len(postings.chunk_ids),
        length=length,
        average_length=average,
        k=settings.k,
        b=settings.b,
    )


def _counts(postings: PostingsTable, term: str, row: int) -> tuple[int, int]:
    """Chunks that hold the term, and how often this one does."""
    term_id = postings.terms.get(term)
    if term_id is None:
        return 0, 0
    start, end = int(postings.indptr[term_id]), int(postings.indptr[term_id + 1])
    at = start + int(np.searchsorted(postings.rows[start:end], row))
    here = at < end and int(postings.rows[at]) == row
    return end - start, int(postings.tf[at]) if here else 0


def rank_in_scores(ready: Prepared, row: int) -> int | None:
    """The row's place (from 1) in the BM25 ranking, or None where it is not in it."""
    score = rounded(ready.scores[row : row + 1])[0]
    if score <= 0 or not _let_through(ready.allowed, row):
        return None
    rows = np.arange(len(ready.scores)) if ready.allowed is None else ready.allowed
    scores = rounded(ready.scores[rows])
    return int(np.count_nonzero((scores > score) | ((scores == score) & (rows < row)))) + 1


def rank_in_distances(ready: Prepared, row: int) -> int | None:
    """The row's place (from 1) among all distances, or None where it is shut out or the query has no
    vector."""
    if ready.vector is None or not _let_through(ready.allowed, row):
        return None
    return rank_of_row(ready.vectors, ready.vector, ready.method, row, ready.allowed)


def _let_through(allowed: Rows | None, row: int) -> bool:
    if allowed is None:
        return True
    at = int(np.searchsorted(allowed, row))
    return at < len(allowed) and int(allowed[at]) == row


def _explain_vss(ready: Prepared, row: int) -> VssExplanation | None:
    if ready.vector is None:
        return None
    at = np.array([row])
    return VssExplanation(
        ready.method,
        float(ready.distances(at)[0]),
        1 - float(ready.distances(at, "cosine_distance")[0]),
        rank_in_distances(ready, row),
        len(ready.vectors.chunk_ids) if ready.allowed is None else len(ready.allowed),
    )


def _explain_fusion(ready: Prepared, row: int, settings: SearchSettings) -> FusionExplanation:
    fused = fused_for(ready, settings)
    at = np.flatnonzero(fused.rows == row)
    place = int(at[0]) if len(at) else None

    def rank(values: NDArray[np.int64]) -> int | None:
        return None if place is None or not values[place] else int(values[place])

    return FusionExplanation(
        fusion=settings.fusion,
        score=0.0 if place is None else float(fused.score[place]),
        rank=None if place is None else place + 1,
        vss_rank=rank(fused.vss_rank),
        bm25_rank=rank(fused.bm25_rank),
        vss_part=0.0 if place is None else float(fused.vss_part[place]),
        bm25_part=0.0 if place is None else float(fused.bm25_part[place]),
        weights=settings.fusion_weights,
        rrf_k=settings.rrf_k,
        candidates=max(settings.candidates, settings.top_k),
    )


def fused_for(ready: Prepared, settings: SearchSettings) -> Fused:
    return fuse_prepared(
        ready,
        settings.fusion_weights,
        fusion=settings.fusion,
        rrf_k=settings.rrf_k,
        candidates=max(settings.candidates, settings.top_k),
    )


@dataclass(frozen=True)
class SentenceMatch:
    """A sentence of a text, ``text[start:end]``, and its cosine similarity to the query."""

    start: int
    end: int
    text: str
    similarity: float


def nearest_sentences(
    store: Store, query: str | Any, text: str, *, limit: int | None = None
) -> list[SentenceMatch]:
    """The sentences of ``text``, nearest to the query first; embedded when asked for, nothing is stored.

    Raises:
        EmbedError: the store's embedder is unknown or fails.
    """
    check_store(store)
    check_text(text, "the text to look for sentences in")
    starts = [int(start) for start in sentence_starts(text)]
    ends = [*starts[1:], len(text)]
    pieces = [
        (start + len(text[start:end]) - len(text[start:end].lstrip()), start + len(text[start:end].rstrip()))
        for start, end in zip(starts, ends, strict=True)
        if text[start:end].strip()
    ]
    if not pieces:
        return []
    wanted = query_vector(store, query).astype(np.float64)
    matrix = np.asarray(store.embedder.embed([text[start:end] for start, end in pieces]), dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(wanted)
    similarity = np.divide(matrix @ wanted, lengths, out=np.zeros(len(matrix)), where=lengths > 0)
    order = np.lexsort((np.arange(len(pieces)), -similarity))[:limit]
    found = []
    for at in order.tolist():
        start, end = pieces[at]
        found.append(SentenceMatch(start, end, text[start:end], float(similarity[at])))
    return found


def query_matches(store: Store, query: str, text: str) -> list[tuple[int, int, str]]:
    """Where the query's terms stand in a text: (start, end, term), in order, for highlighting."""
    wanted = set(query_terms(store, query))
    return [(start, end, term) for term, start, end in store.analyzer.spans(text) if term in wanted]
