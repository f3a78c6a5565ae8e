"""Searching one document with the chunks of the moment: BM25 in memory at once, VSS as vectors come in."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import streamlit as st

from pages.shared.components.chunk_hits import Passage, Results
from pages.shared.jobs import Job
from pages.shared.text import snippet
from ragnar_core import Chunks, embed_default
from ragnar_core.retrieval.scoring import Ranking, bm25_scores, rank_scores
from ragnar_core.store import Analyzer, PostingsTable, searched_text
from ragnar_core.store.postings import TermCoder

BATCH = 8
KEPT_VECTORS = 20_000


class LiveIndex:
    """The chunks of one document, ready for BM25."""

    def __init__(self, chunks: Chunks, analyzer: Analyzer) -> None:
        self.chunks = chunks
        self.analyzer = analyzer
        self.texts = [searched_text(*both) for both in zip(chunks.contexts, chunks.texts, strict=True)]
        ids: dict[str, int] = {}
        terms = TermCoder(analyzer, ids).encode(self.texts)
        self._postings = PostingsTable.build(ids, np.arange(len(chunks)), terms, len(ids))

    def bm25(self, query: str, top_k: int) -> Ranking:
        """Chunks by number, best first, with their scores; none where no word of the query occurs."""
        return rank_scores(self.scores(query), top_k)

    def scores(self, query: str) -> np.ndarray:
        """BM25 of every chunk with the usual k = 1.2 and b = 0.75."""
        if not len(self.chunks):
            return np.zeros(0)
        return bm25_scores(self._postings, self.analyzer.tokens(query), k=1.2, b=0.75, conjunctive=False)


class VectorCache:
    """Vectors by text, the ones used last: a slider that comes back finds them again. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[bytes, np.ndarray] = OrderedDict()

    def missing(self, texts: Sequence[str]) -> list[str]:
        with self._lock:
            return [
                text for text in dict.fromkeys(texts) if text.strip() and _digest(text) not in self._vectors
            ]

    def put(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        with self._lock:
            self._vectors.update(zip(map(_digest, texts), vectors, strict=True))
            while len(self._vectors) > KEPT_VECTORS:
                self._vectors.popitem(last=False)

    def known(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which texts have a vector, by number, and those vectors, one row each."""
        with self._lock:
            found = [(i, self._vectors.get(_digest(text))) for i, text in enumerate(texts)]
            for text in texts:
                if _digest(text) in self._vectors:
                    self._vectors.move_to_end(_digest(text))
        rows = [(i, vector) for i, vector in found if vector is not None]
        if not rows:
            return np.zeros(0, np.int64), np.zeros((0, 1), np.float32)
        return np.array([i for i, _ in rows]), np.stack([vector for _, vector in rows])


@dataclass(frozen=True)
class VectorRanking:
    """Chunks by number, nearest first, with cosine similarity; `known` of `total` chunks have a vector by now."""

    ranking: Ranking
    known: int
    total: int


@st.cache_resource(show_spinner=False)
def vector_cache() -> VectorCache:
    return VectorCache()


@st.cache_resource(max_entries=6, show_spinner=False)
def live_index(document_id: str, settings: str, _chunks: Chunks) -> LiveIndex:
    """The index of these chunks, made once. `settings` names them."""
    return LiveIndex(_chunks, _analyzer())


@st.cache_resource(show_spinner=False)
def _analyzer() -> Analyzer:
    return Analyzer()


@st.cache_data(max_entries=64, show_spinner=False)
def query_vector(query: str) -> np.ndarray:
    return embed_default().embed_query(query)


def vss(index: LiveIndex, query: str, top_k: int) -> VectorRanking:
    """The nearest of the chunks that have a vector. Raises EmbedError for a blank query or a missing model."""
    rows, vectors = vector_cache().known(index.texts)
    if not len(rows):
        return VectorRanking(Ranking(rows, np.zeros(0)), 0, len(index.texts))
    closeness = vectors @ query_vector(query)
    order = np.lexsort((rows, -closeness))[:top_k]
    return VectorRanking(
        Ranking(rows[order], closeness[order].astype(np.float64)), len(rows), len(index.texts)
    )


def embed_missing(job: Job, indexes: Sequence[LiveIndex], query: str) -> int:
    """Give every chunk a vector, those with the query's words first. Work for the job manager; returns how many."""
    cache, embedder = vector_cache(), embed_default()
    orders = [np.argsort(-index.scores(query), kind="stable").tolist() for index in indexes]
    # Likely passages first, of every side in turn, so that the first results are worth reading.
    texts = [
        index.texts[chunk]
        for turn in zip_longest(*orders)
        for index, chunk in zip(indexes, turn, strict=True)
        if chunk is not None
    ]
    todo = cache.missing(texts)
    job.report(0, len(todo))
    for start in range(0, len(todo), BATCH):
        if job.cancel.is_set():
            break
        batch = todo[start : start + BATCH]
        cache.put(batch, embedder.embed(batch))
        job.report(start + len(batch), len(todo))
    return job.done


def results(
    side: str, method: str, note: str, index: LiveIndex, ranking: Ranking, query: str, empty: str
) -> Results:
    """A ranking as it is drawn."""
    terms = set(index.analyzer.tokens(query))
    chunks = index.chunks
    passages = []
    for chunk, value in zip(ranking.rows.tolist(), ranking.values.tolist(), strict=True):
        start, end = int(chunks.starts[chunk]), int(chunks.ends[chunk])
        text = chunks.texts[chunk]
        spans = _matches(index.analyzer, text, terms)
        shown, marks = snippet(text, spans, 420)
        facts = f"chunk {chunk + 1:,} · {end - start:,} characters"
        passages.append(Passage(chunk, start, f"{value:.3f}", facts, shown, marks))
    return Results(side, method, note, passages, empty)


def _matches(analyzer: Analyzer, text: str, terms: set[str]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for term, start, end in analyzer.spans(text) if term in terms):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
