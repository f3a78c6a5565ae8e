"""How good the ten results are: nDCG@10 and recall@10 of BM25, VSS and hybrid, and of bm25s with stemming, on
one text.

    python benchmarks/quality.py ../shared/ir --cache /tmp/quality-vectors
    python benchmarks/quality.py ../shared/ir --cache /tmp/quality-vectors --model static --sets cranfield

The folder holds one folder a set: ``docs.jsonl`` (id, title, text), ``queries.jsonl`` (id, text),
``qrels.jsonl`` (q, d, rel); or, for chunking, ``corpora/*.md`` and ``questions.jsonl`` with ranges of
characters that answer (a chunk is then relevant when it holds at least half of a range; recall is the share
of ranges found). A title is the context of its chunk. Vectors are kept in the cache folder, since the default
model embeds some ten texts a second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ragnar_core.chunking import markdown_chunk
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import embed_default, embed_static
from ragnar_core.retrieval import SearchSettings, search_ids
from ragnar_core.store import Store, searched_text

SETS = ("chroma_chunking", "mtrag_pool", "cranfield", "xquad_en")
TOP_K = 10


@dataclass(frozen=True)
class Set:
    """Chunks (origin, context, text), queries, and for each query which rows answer which of its needs."""

    name: str
    chunks: pd.DataFrame
    queries: list[str]
    needs: list[list[set[int]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--model", choices=("default", "static"), default="default")
    parser.add_argument("--chunk-size", type=int, default=1600)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    print("| set | system | nDCG@10 | recall@10 | MRR@10 |\n|---|---|---|---|---|")
    for name in options.sets:
        for system, (gain, recall, first) in evaluate(
            load(options.folder / name, options.chunk_size), options
        ).items():
            print(f"| {name} | {system} | {gain:.3f} | {recall:.3f} | {first:.3f} |", flush=True)


def load(folder: Path, chunk_size: int) -> Set:
    if (folder / "corpora").is_dir():
        return _load_ranges(folder, chunk_size)
    docs = _lines(folder / "docs.jsonl")
    place = {doc["id"]: row for row, doc in enumerate(docs)}
    relevant: dict[str, list[set[int]]] = {}
    for judged in _lines(folder / "qrels.jsonl"):
        if judged["rel"] > 0:
            relevant.setdefault(judged["q"], []).append({place[judged["d"]]})
    queries = [query for query in _lines(folder / "queries.jsonl") if query["id"] in relevant]
    chunks = pd.DataFrame(
        {"origin": [f"{row}" for row in place.values()], "context": [doc["title"] for doc in docs]}
    ).assign(text=[doc["text"] for doc in docs])
    return Set(
        folder.name,
        chunks,
        [query["text"] for query in queries],
        [relevant[query["id"]] for query in queries],
    )


def _load_ranges(folder: Path, chunk_size: int) -> Set:
    tables = []
    for path in sorted((folder / "corpora").glob("*.md")):
        document = MarkdownDocument(path.read_text(encoding="utf-8"), path.stem)
        original = path.read_text(encoding="utf-8")
        if document.text != original:
            # The ranges count characters of the file as it is.
            object.__setattr__(document, "text", original)
        tables.append(markdown_chunk(document, target_size=chunk_size).table.assign(origin=path.stem))
    chunks = pd.concat(tables, ignore_index=True)
    queries, needs = [], []
    for question in _lines(folder / "questions.jsonl"):
        own = chunks[chunks["origin"] == question["corpus"]]
        found = []
        for start, end in question["refs"]:
            shared = np.minimum(own["end"], end) - np.maximum(own["start"], start)
            found.append(set(own.index[shared * 2 >= end - start].tolist()))
        queries.append(question["text"])
        needs.append(found)
    return Set(folder.name, chunks, queries, needs)


def evaluate(data: Set, options: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    embedder = embed_default() if options.model == "default" else embed_static()
    texts = [searched_text(c, t) for c, t in zip(data.chunks["context"], data.chunks["text"], strict=True)]
    vectors = cached(options.cache, options.model, texts, lambda some: embedder.embed(some))
    asked = cached(
        options.cache,
        options.model + "-query",
        data.queries,
        lambda some: np.stack([embedder.embed_query(text) for text in some]),
    )
    with Store.create(":memory:", embedding_size=vectors.shape[1]) as store:
        # All as the chunks of one document: rows and chunk_ids are in step, and it is one transaction.
        store.insert(data.chunks[["context", "text"]].assign(origin=data.name), vectors=vectors)
        rows = {number: row for row, number in enumerate(store.chunks()["chunk_id"].tolist())}
        pairs = list(zip(data.queries, asked, strict=True))

        def run(**settings: Any) -> list[list[int]]:
            how = SearchSettings(top_k=TOP_K, **settings)
            found = (search_ids(store, query, how, vector=vector) for query, vector in pairs)
            return [[rows[number] for number in numbers.tolist()] for numbers in found]

        runs = {
            "bm25s, k=1.5": peer(texts, data.queries, 1.5),
            "BM25, k=1.5": run(mode="bm25", k=1.5),
            "bm25s, k=1.2": peer(texts, data.queries, 1.2),
            "BM25 (default)": run(mode="bm25"),
            "VSS": run(mode="vss"),
            "hybrid (default)": run(mode="hybrid"),
            "hybrid (rrf_k=1, weights 3 to 2)": run(mode="hybrid", rrf_k=1, weights=(3, 2)),
            "hybrid (convex)": run(mode="hybrid", fusion="convex"),
            "hybrid (weighted scores)": run(mode="hybrid", fusion="weighted_scores"),
            "hybrid (weighted scores, 3 to 2)": run(mode="hybrid", fusion="weighted_scores", weights=(3, 2)),
        }
    return {system: score(run, data.needs) for system, run in runs.items() if run}


def peer(texts: Sequence[str], queries: Sequence[str], k: float) -> list[list[int]]:
    try:
        import bm25s
    except ImportError:
        return []
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25(k1=k)
    index.index(
        bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
    )
    tokens = bm25s.tokenize(list(queries), stopwords="en", stemmer=stemmer, show_progress=False)
    found, scores = index.retrieve(tokens, k=TOP_K, show_progress=False)
    return [
        [int(row) for row, value in zip(rows, values, strict=True) if value > 0]
        for rows, values in zip(found, scores, strict=True)
    ]


def score(run: list[list[int]], needs: list[list[set[int]]]) -> tuple[float, float, float]:
    """Means of nDCG@10 (each need counts once, at the first row that meets it), recall@10 of needs, and MRR@10."""
    gains, recalls, firsts = [], [], []
    for rows, wanted in zip(run, needs, strict=True):
        open_needs = list(wanted)
        gain, first = 0.0, 0.0
        for rank, row in enumerate(rows[:TOP_K], 1):
            met = [need for need in open_needs if row in need]
            if met:
                open_needs = [need for need in open_needs if row not in need]
                gain += 1 / np.log2(rank + 1)
                first = first or 1 / rank
        ideal = sum(1 / np.log2(rank + 1) for rank in range(1, min(len(wanted), TOP_K) + 1))
        gains.append(gain / ideal)
        recalls.append(1 - len(open_needs) / len(wanted))
        firsts.append(first)
    return float(np.mean(gains)), float(np.mean(recalls)), float(np.mean(firsts))


def cached(folder: Path, kind: str, texts: Sequence[str], embed: Callable[[list[str]], Any]) -> np.ndarray:
    """Vectors from the folder, or made a hundred texts at a time, so that a stopped run goes on where it stopped."""
    parts = []
    start = time.monotonic()
    for at in range(0, len(texts), 100):
        some = list(texts[at : at + 100])
        key = hashlib.sha256(json.dumps([kind, some]).encode()).hexdigest()[:32]
        path = folder / f"{kind}-{key}.npy"
        if not path.exists():
            np.save(path, np.asarray(embed(some), dtype=np.float32))
            print(
                f"{kind}: {at + len(some)} of {len(texts)}, {time.monotonic() - start:.0f} s", file=sys.stderr
            )
        parts.append(np.load(path))
    return np.concatenate(parts)


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


if __name__ == "__main__":
    main()
