"""How long a top-10 search takes, text of the hits included, here and in five peers on the same chunks and
queries.

    python benchmarks/retrieval.py --sizes 10000 100000 --folder /tmp/retrieval-benchmark

Each system runs in a process of its own: it builds its index (kept in the folder for the next run), opens it,
answers a first query, then the queries that are timed one by one. Chunks are made up: about 1,600 characters
of words with Zipf's frequencies, 20 a document, and 384 numbers around a thousand centres, of length 1. Half
of the keyword queries hold frequent words. Recall is the share of the ten truly nearest chunks (NumPy,
float64) among the ten returned.

Systems: ours (and, where usearch is installed, its vector search by the graph that larger stores keep);
numpy (brute force over a matrix, no text); duckdb (exact scan of the store file, SQL join for the text);
raghilda (its own file with the same chunks); bm25s; lancedb (flat vectors, its full text index); chroma
(HNSW). A system that is not installed is left out. raghilda's vector index is built at up to 10,000 chunks
(at 100,000 that takes a quarter of an hour and more).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

DIM, TOP_K, PER_DOCUMENT, CHARACTERS, QUERIES = 384, 10, 20, 1600, 100
ENOUGH_SECONDS, LEAST_QUERIES = 60, 5
SYSTEMS = ("ours", "numpy", "duckdb", "raghilda", "bm25s", "lancedb", "chroma")
NEEDS = {"raghilda": "raghilda", "bm25s": "bm25s", "lancedb": "lancedb", "chroma": "chromadb"}
COMMON = (
    "the of and to in a is that for it was on are as with his they be at one have this from or had by hot "
    "but some what there we can out other were all your when up use word how said an each she which do their "
    "time if will"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--queries", type=int, default=QUERIES, help=f"at most {QUERIES}")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--run", nargs=2, metavar=("SYSTEM", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        system, size = options.run
        folder = options.folder / size
        print(json.dumps(measure(system, folder, Corpus(folder, int(size), options.queries))))
        return
    for size in options.sizes:
        folder = options.folder / str(size)
        folder.mkdir(parents=True, exist_ok=True)
        Corpus(folder, size, options.queries).make()
        report(size, [run(system, size, options) for system in options.systems if installed(system)])


def installed(system: str) -> bool:
    return system not in NEEDS or importlib.util.find_spec(NEEDS[system]) is not None


def run(system: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(options.folder), "--queries", str(options.queries)]
    done = subprocess.run([*command, "--run", system, str(size)], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"system": system, "error": done.stderr.strip().splitlines()[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {"system": system, **found}


class Corpus:
    """Chunks, vectors, queries and the true answers, the same for the same size."""

    def __init__(self, folder: Path, size: int, queries: int) -> None:
        self.folder, self.size, self.queries = folder, size, queries

    def make(self) -> None:
        if (self.folder / "truth.npy").exists():
            return
        random = np.random.default_rng(self.size)
        words = vocabulary(random)
        share = 1 / np.arange(1, len(words) + 1) ** 1.07
        share /= share.sum()
        asked = []
        with (self.folder / "texts.jsonl").open("w", encoding="utf-8") as file:
            for number in range(self.size):
                drawn = random.choice(len(words), size=CHARACTERS // 5, p=share)
                text = sentences([words[at] for at in drawn])[:CHARACTERS]
                file.write(json.dumps(text) + "\n")
                if len(asked) < QUERIES and number % max(1, self.size // QUERIES) == 0:
                    rare = np.sort(drawn)[::-1] if len(asked) % 2 else random.permutation(drawn)
                    asked.append(" ".join(words[at] for at in rare[: 2 + len(asked) % 5]))
        centres = random.normal(size=(1000, DIM)).astype(np.float32)
        vectors = centres[random.integers(0, 1000, self.size)]
        vectors += random.normal(scale=0.7, size=vectors.shape).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        near = vectors[random.integers(0, self.size, QUERIES)]
        near += random.normal(scale=0.03, size=near.shape).astype(np.float32)
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        np.save(self.folder / "vectors.npy", vectors)
        np.save(self.folder / "near.npy", near)
        (self.folder / "queries.json").write_text(json.dumps(asked))
        similar = vectors.astype(np.float64) @ near.T.astype(np.float64)
        np.save(self.folder / "truth.npy", np.argsort(-similar, axis=0, kind="stable")[:TOP_K].T)

    def texts(self) -> list[str]:
        with (self.folder / "texts.jsonl").open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def vectors(self) -> np.ndarray:
        return np.load(self.folder / "vectors.npy")

    def near(self) -> np.ndarray:
        return np.load(self.folder / "near.npy")[: self.queries]

    def asked(self) -> list[str]:
        asked: list[str] = json.loads((self.folder / "queries.json").read_text())
        return asked[: self.queries]

    def recall(self, found: list[list[int]]) -> float:
        truth = np.load(self.folder / "truth.npy")
        hits = [len(set(rows) & set(true.tolist())) for rows, true in zip(found, truth, strict=False)]
        return float(np.mean(hits)) / TOP_K

    def documents(self) -> Iterator[tuple[str, list[str], np.ndarray]]:
        texts, vectors = self.texts(), self.vectors()
        for at in range(0, self.size, PER_DOCUMENT):
            yield f"document-{at:07d}", texts[at : at + PER_DOCUMENT], vectors[at : at + PER_DOCUMENT]


def vocabulary(random: np.random.Generator) -> list[str]:
    syllables = [
        a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "on", "us")
    ]
    made = {"".join(random.choice(syllables, size=random.integers(2, 5))): None for _ in range(60_000)}
    return [*COMMON.split(), *made]


def sentences(words: list[str]) -> str:
    return " ".join(
        word.capitalize() if at % 12 == 0 else word + "." if at % 12 == 11 else word
        for at, word in enumerate(words)
    )


def measure(system: str, folder: Path, corpus: Corpus) -> dict[str, Any]:
    """Builds (once), opens, asks: seconds to build and to first answer, milliseconds a query, peak memory."""
    build, opened = BUILDERS[system], OPENERS[system]
    took = folder / f"{system}.seconds"
    if not took.exists():
        start = time.perf_counter()
        build(folder, corpus)
        took.write_text(str(time.perf_counter() - start))
        if system != "numpy":
            # A fresh process, so that memory and the first query are those of opening, not of building.
            os.execv(sys.executable, [sys.executable, *sys.argv])
    asked, near = corpus.asked(), corpus.near()
    start, started = time.perf_counter(), time.process_time()
    searches = opened(folder, corpus)
    name, search = next(iter(searches.items()))
    search(asked[0], near[0])
    result: dict[str, Any] = {
        "build_s": float(took.read_text()),
        "first_s": time.perf_counter() - start,
        "first_cpu_s": time.process_time() - started,
    }
    for name, search in searches.items():
        for at in range(3):
            search(asked[at], near[at])
        wall, cpu, found = [], [], []
        for query, vector in zip(asked, near, strict=True):
            begin, begun = time.perf_counter(), time.process_time()
            rows = search(query, vector)
            wall.append((time.perf_counter() - begin) * 1000)
            cpu.append((time.process_time() - begun) * 1000)
            found.append(rows)
            if sum(wall) > ENOUGH_SECONDS * 1000 and len(wall) >= LEAST_QUERIES:
                break
        result[name] = {
            "p50": float(np.percentile(wall, 50)),
            "p95": float(np.percentile(wall, 95)),
            "cpu": float(np.percentile(cpu, 50)),
        }
        if name.startswith("vss"):
            result[name]["recall"] = corpus.recall(found)
    result["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result


Search = Callable[[str, Any], list[int]]


def build_ours(folder: Path, corpus: Corpus) -> None:
    import pandas as pd

    from ragnar_core.store import Store, ann

    with Store.create(folder / "ours.duckdb", embedding_size=DIM, overwrite=True) as store:
        for origin, texts, vectors in corpus.documents():
            store.insert(pd.DataFrame({"origin": origin, "text": texts}), vectors=vectors)
        if importlib.util.find_spec("usearch"):
            ann.ANN_FROM = 0
            store.build_index("vss")


def open_ours(folder: Path, corpus: Corpus) -> dict[str, Search]:
    from ragnar_core.retrieval import retrieve_bm25, retrieve_hybrid, retrieve_vss
    from ragnar_core.store import Store, ann

    store = Store.connect(folder / "ours.duckdb")

    def rows(table: Any) -> list[int]:
        assert table["text"].str.len().min() > 0
        return [int(number) - 1 for number in table["chunk_id"]]

    def by_graph(query: str, vector: np.ndarray) -> list[int]:
        ann.ANN_FROM = 0
        found = retrieve_vss(store, vector, top_k=TOP_K)
        assert found.attrs["vss"] == "approximate"
        return rows(found)

    searches = {
        "hybrid": lambda query, vector: rows(retrieve_hybrid(store, query, top_k=TOP_K, vector=vector)),
        "bm25": lambda query, vector: rows(retrieve_bm25(store, query, top_k=TOP_K)),
        "vss": lambda query, vector: rows(retrieve_vss(store, vector, top_k=TOP_K)),
    }
    # Last, since it lowers the size from which a graph is used; by itself that is 300,000 chunks.
    return searches | {"vss graph": by_graph} if (folder / "ours.duckdb.ann").exists() else searches


def open_numpy(folder: Path, corpus: Corpus) -> dict[str, Search]:
    matrix = corpus.vectors()

    def search(query: str, vector: np.ndarray) -> list[int]:
        similar = matrix @ vector
        best = np.argpartition(similar, -TOP_K)[-TOP_K:]
        return [int(row) for row in best[np.argsort(-similar[best])]]

    return {"vss": search}


def open_duckdb(folder: Path, corpus: Corpus) -> dict[str, Search]:
    import duckdb

    connection = duckdb.connect(str(folder / "ours.duckdb"), read_only=True)
    sql = (
        "SELECT chunk_id, text, distance FROM ("
        "SELECT chunk_id, array_cosine_distance(embedding, ?::FLOAT[384]) AS distance FROM embeddings "
        "ORDER BY distance LIMIT 10) JOIN chunks USING (chunk_id) ORDER BY distance"
    )

    def search(query: str, vector: np.ndarray) -> list[int]:
        return [number - 1 for number, *_ in connection.execute(sql, [vector.tolist()]).fetchall()]

    return {"vss": search}


def _raghilda_provider() -> Any:
    from raghilda.embedding import EmbeddingProvider, register_embedding_provider

    @register_embedding_provider("BenchmarkVectors")
    class BenchmarkVectors(EmbeddingProvider):
        def embed(self, x: Any, *args: Any, **kwargs: Any) -> Any:
            return [[0.0] * DIM for _ in x]

        def get_config(self) -> dict[str, Any]:
            return {"type": "BenchmarkVectors"}

        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Any:
            return cls()

    return BenchmarkVectors()


def build_raghilda(folder: Path, corpus: Corpus) -> None:
    import duckdb
    import duckdb_extensions
    import pyarrow as pa
    from raghilda.store import DuckDBStore

    for extension in ("fts", "vss"):
        duckdb_extensions.import_extension(extension)
    provider = _raghilda_provider()
    (folder / "raghilda.duckdb").unlink(missing_ok=True)
    store = DuckDBStore.create(str(folder / "raghilda.duckdb"), embed=provider)
    connection: duckdb.DuckDBPyConnection = store.con
    # Its own insert does some 23 chunks a second, so the rows go into its tables at once.
    connection.execute("BEGIN")
    number = 1
    for origin, texts, vectors in corpus.documents():
        connection.execute("INSERT INTO documents VALUES (?, ?)", [origin, "".join(texts)])
        ends = np.cumsum([len(text) for text in texts])
        starts = ends - [len(text) for text in texts]
        flat = pa.array(vectors.ravel(), pa.float32())
        rows = pa.table(
            {
                "origin": [origin] * len(texts),
                "chunk_id": np.arange(number, number + len(texts)),
                "start_index": starts,
                "end_index": ends,
                "char_count": ends - starts,
                "context": [""] * len(texts),
                "embedding": pa.FixedSizeListArray.from_arrays(flat, DIM),
            }
        )
        connection.register("rows", rows)
        connection.execute("INSERT INTO embeddings BY NAME SELECT * FROM rows")
        number += len(texts)
    connection.execute("COMMIT")
    store.build_index("bm25")
    if corpus.size <= 10_000:
        store.build_index("hnsw")
    connection.close()


def open_raghilda(folder: Path, corpus: Corpus) -> dict[str, Search]:
    import duckdb_extensions
    from raghilda.store import DuckDBStore

    for extension in ("fts", "vss"):
        duckdb_extensions.import_extension(extension)
    _raghilda_provider()
    store = DuckDBStore.connect(str(folder / "raghilda.duckdb"))

    def rows(found: Any) -> list[int]:
        assert all(chunk.text for chunk in found)
        return [chunk.chunk_ids[0] - 1 for chunk in found]

    return {
        "bm25": lambda query, vector: rows(store.retrieve_bm25(query, TOP_K)),
        "vss": lambda query, vector: rows(store.retrieve_vss(vector.tolist(), TOP_K)),
    }


def build_bm25s(folder: Path, corpus: Corpus) -> None:
    import bm25s
    import Stemmer

    texts = corpus.texts()
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    index.save(str(folder / "bm25s"), corpus=texts)


def open_bm25s(folder: Path, corpus: Corpus) -> dict[str, Search]:
    import bm25s
    import Stemmer

    index = bm25s.BM25.load(str(folder / "bm25s"), load_corpus=True)
    stemmer = Stemmer.Stemmer("english")

    def search(query: str, vector: np.ndarray) -> list[int]:
        tokens = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(tokens, k=TOP_K, show_progress=False)
        assert all(one["text"] for one in found[0])
        return [int(one["id"]) for one in found[0]]

    return {"bm25": search}


def build_lancedb(folder: Path, corpus: Corpus) -> None:
    import lancedb
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(corpus.vectors().ravel(), pa.float32()), DIM)
    table = pa.table({"id": np.arange(corpus.size), "text": corpus.texts(), "vector": vectors})
    made = lancedb.connect(folder / "lancedb").create_table("chunks", table, mode="overwrite")
    make_fts(made)


def make_fts(table: Any) -> None:
    try:
        table.create_fts_index("text", use_tantivy=False, stem=True, remove_stop_words=True)
    except TypeError:
        table.create_fts_index("text")


def open_lancedb(folder: Path, corpus: Corpus) -> dict[str, Search]:
    import lancedb

    table = lancedb.connect(folder / "lancedb").open_table("chunks")

    def vss(query: str, vector: np.ndarray) -> list[int]:
        found = table.search(vector).distance_type("cosine").select(["id", "text"]).limit(TOP_K).to_list()
        return [one["id"] for one in found]

    def bm25(query: str, vector: np.ndarray) -> list[int]:
        found = table.search(query, query_type="fts").select(["id", "text"]).limit(TOP_K).to_list()
        return [one["id"] for one in found]

    return {"vss": vss, "bm25": bm25}


def build_chroma(folder: Path, corpus: Corpus) -> None:
    collection = _chroma(folder).create_collection("chunks", configuration={"hnsw": {"space": "cosine"}})
    texts, vectors = corpus.texts(), corpus.vectors()
    for at in range(0, corpus.size, 5000):
        ids = [str(row) for row in range(at, min(at + 5000, corpus.size))]
        collection.add(ids=ids, embeddings=vectors[at : at + 5000], documents=texts[at : at + 5000])


def open_chroma(folder: Path, corpus: Corpus) -> dict[str, Search]:
    client = _chroma(folder)
    collection = client.get_collection("chunks", embedding_function=None)

    def search(query: str, vector: np.ndarray) -> list[int]:
        found = collection.query(
            query_embeddings=[vector], n_results=TOP_K, include=["documents", "distances"]
        )
        assert all(found["documents"][0])
        return [int(one) for one in found["ids"][0]]

    def wide(query: str, vector: np.ndarray) -> list[int]:
        if not widened:
            collection.modify(configuration={"hnsw": {"ef_search": 1000}})
            widened.append(True)
        return search(query, vector)

    widened: list[bool] = []
    return {"vss": search, "vss ef=1000": wide}


def _chroma(folder: Path) -> Any:
    import chromadb

    return chromadb.PersistentClient(
        str(folder / "chroma"), settings=chromadb.Settings(anonymized_telemetry=False)
    )


def _none(folder: Path, corpus: Corpus) -> None:
    return None


BUILDERS: dict[str, Callable[[Path, Corpus], None]] = {
    "ours": build_ours,
    "numpy": _none,
    "duckdb": _none,
    "raghilda": build_raghilda,
    "bm25s": build_bm25s,
    "lancedb": build_lancedb,
    "chroma": build_chroma,
}
OPENERS: dict[str, Callable[[Path, Corpus], dict[str, Search]]] = {
    "ours": open_ours,
    "numpy": open_numpy,
    "duckdb": open_duckdb,
    "raghilda": open_raghilda,
    "bm25s": open_bm25s,
    "lancedb": open_lancedb,
    "chroma": open_chroma,
}


def report(size: int, results: list[dict[str, Any]]) -> None:
    print(f"\n{size:,} chunks × {DIM}, top {TOP_K} with text, ms (p50 / p95; CPU p50)\n")
    print(
        "| system | search | p50 | p95 | CPU | recall | × ours | × ours, CPU | build s | first s (CPU) | peak MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    ours = next((one for one in results if one["system"] == "ours" and "error" not in one), {})
    for one in results:
        if "error" in one:
            print(f"| {one['system']} | {one['error']} | | | | | | | | | |")
            continue
        for name, times in one.items():
            if not isinstance(times, dict):
                continue
            base = ours.get(name.split()[0])
            ratio = " | "
            if base:
                ratio = f"{times['p50'] / base['p50']:.2f} | {times['cpu'] / base['cpu']:.2f}"
            recall = f"{times['recall']:.3f}" if "recall" in times else ""
            speed = " | ".join(f"{times[column]:.2f}" for column in ("p50", "p95", "cpu"))
            setup = f"{one['build_s']:.1f} | {one['first_s']:.2f} ({one['first_cpu_s']:.2f}) | {one['rss_mb']:.0f}"
            print(f"| {one['system']} | {name} | {speed} | {recall} | {ratio} | {setup} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
