"""How fast documents go into a store, beside raghilda, LanceDB and Chroma: same chunks, same vectors, one committed
transaction a document of 20 chunks; then many documents a transaction, where a system can.

What an insert includes differs, so two rates are printed for each: of the inserts alone, and of the inserts with the
building of a BM25 index after them, after which all of them can be searched by words.

    ours      BM25 postings within each transaction, which is synced to the disk (fsync) before insert returns
    raghilda  a DuckDB transaction, synced; BM25 and HNSW are built afterwards
    lancedb   a new version of the table, written without a sync to the disk; BM25 is built afterwards
    chroma    SQLite transactions, synced, with an index of letter triples for substrings, and an HNSW index in memory;
              it has no BM25 of its own

Each system runs in a process of its own and is left out when it is not installed. raghilda embeds and cuts by itself, so it
gets documents with ready chunks and a model that looks vectors up. raghilda and Chroma are slow enough to be measured on
fewer chunks (--raghilda-chunks, --chroma-chunks).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

CHUNKS_A_DOCUMENT, SIZE, DIM = 20, 1600, 384
MANY = 50
Document = tuple[str, str, list[tuple[int, int]], np.ndarray]


def documents(n_chunks: int) -> Iterator[Document]:
    """(origin, text, ranges, vectors): words drawn from 30,000 by Zipf's law, the same in every run."""
    rng = np.random.default_rng(7)
    letters = np.array(list("etaoinshrdlucmfwygpbvk"))
    words = ["".join(rng.choice(letters, size=int(n))) for n in rng.integers(2, 12, 30_000)]
    weights = 1.0 / np.arange(1, len(words) + 1)
    cumulative = np.cumsum(weights / weights.sum())
    step = SIZE // 2
    for number in range(n_chunks // CHUNKS_A_DOCUMENT):
        picked = np.searchsorted(cumulative, rng.random(3500)).clip(max=len(words) - 1)
        text = " ".join(words[i] for i in picked)[: step * (CHUNKS_A_DOCUMENT + 1)].rstrip()
        ranges = [(i * step, min(i * step + SIZE, len(text))) for i in range(CHUNKS_A_DOCUMENT)]
        vectors = rng.normal(size=(CHUNKS_A_DOCUMENT, DIM)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        yield f"document-{number}.md", text, ranges, vectors


def ours(folder: Path, n: int) -> dict[str, float]:
    from ragnar_core.chunking import Chunks
    from ragnar_core.documents import MarkdownDocument
    from ragnar_core.store import Store

    path = folder / "store.duckdb"
    store = Store.create(path, embedding_size=DIM)

    def insert(document: Document) -> None:
        origin, text, ranges, vectors = document
        starts, ends = np.array(ranges).T
        chunks = Chunks(MarkdownDocument(text, origin), None, starts, ends, [""] * len(ranges))
        store.insert(chunks, vectors=vectors)

    measured = _insert(n, insert)
    measured["insert_and_bm25_per_s"] = measured["chunks_per_s"]

    def insert_many(some: list[Document]) -> None:
        chunks = []
        for origin, text, ranges, _ in some:
            starts, ends = np.array(ranges).T
            chunks.append(Chunks(MarkdownDocument(text, origin), None, starts, ends, [""] * len(ranges)))
        many.insert(chunks, vectors=[vectors for *_, vectors in some])

    with Store.create(folder / "many.duckdb", embedding_size=DIM) as many:
        measured["many_documents_per_s"] = _insert_many(n, insert_many)
    (folder / "many.duckdb").unlink()
    started = time.perf_counter()
    store.close()
    measured["close_s"] = time.perf_counter() - started
    measured["file_mb"] = _megabytes(folder)
    code = (
        "import time, sys; sys.path.insert(0, sys.argv[2])\n"
        "from ragnar_core.store import Store\n"
        "t = time.perf_counter(); s = Store.connect(sys.argv[1]); s.counts(); a = time.perf_counter()\n"
        "s.vectors(); b = time.perf_counter(); s.postings(); c = time.perf_counter()\n"
        "s.fetch(s.vectors().chunk_ids[:10]); d = time.perf_counter()\n"
        "print(a - t, b - a, c - b, d - c)"
    )
    root = str(Path(__file__).resolve().parents[1])
    times = sorted(
        tuple(
            map(
                float,
                subprocess.check_output([sys.executable, "-c", code, str(path), root], text=True).split(),
            )
        )
        for _ in range(3)
    )[1]
    names = ("open_ms", "load_vectors_ms", "load_postings_ms", "fetch_10_ms")
    measured |= {name: 1000 * seconds for name, seconds in zip(names, times, strict=True)}
    return measured


def raghilda(folder: Path, n: int) -> dict[str, float]:
    import duckdb_extensions

    for name in ("fts", "vss"):
        duckdb_extensions.import_extension(name)
    from raghilda.chunk import MarkdownChunk
    from raghilda.document import ChunkedMarkdownDocument
    from raghilda.embedding import EmbeddingProvider
    from raghilda.store import DuckDBStore

    known: dict[str, Any] = {"foo": [1.0] * DIM}

    class Lookup(EmbeddingProvider):
        def embed(self, x: Any, input_type: Any = None) -> Any:
            return [known[text] for text in x]

        def get_config(self) -> dict[str, Any]:
            return {"type": "Lookup"}

        @classmethod
        def from_config(cls, config: Any) -> Any:
            return cls()

    store = DuckDBStore.create(str(folder / "store.duckdb"), embed=Lookup())

    def insert(document: Document) -> None:
        origin, text, ranges, vectors = document
        chunks = [
            MarkdownChunk(text=text[a:b], start_index=a, end_index=b, char_count=b - a) for a, b in ranges
        ]
        made = ChunkedMarkdownDocument(content=text, origin=origin, chunks=chunks)
        for (a, b), vector in zip(ranges, vectors, strict=True):
            # Models give lists there: its own providers read them from JSON.
            known[text[a:b]] = vector.tolist()
        store.upsert(made)
        for a, b in ranges:
            known.pop(text[a:b], None)

    measured = _insert(n, insert)
    for kind in ("bm25", "hnsw"):
        started = time.perf_counter()
        store.build_index(kind)
        measured[f"build_{kind}_s"] = time.perf_counter() - started
    _with_index(measured, n)
    store.con.close()
    measured["file_mb"] = _megabytes(folder)
    return measured


def lancedb(folder: Path, n: int) -> dict[str, float]:
    import lancedb as lance
    import pyarrow as pa

    database = lance.connect(str(folder / "lance"))
    schema = pa.schema(
        [
            ("origin", pa.string()),
            ("start", pa.int32()),
            ("text", pa.string()),
            ("vector", pa.list_(pa.float32(), DIM)),
        ]
    )
    table = database.create_table("chunks", schema=schema)

    def rows(document: Document) -> Any:
        origin, text, ranges, vectors = document
        return pa.table(
            {
                "origin": [origin] * len(ranges),
                "start": pa.array([a for a, _ in ranges], pa.int32()),
                "text": [text[a:b] for a, b in ranges],
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
            },
            schema=schema,
        )

    measured = _insert(n, lambda document: table.add(rows(document)))
    started = time.perf_counter()
    try:
        from lancedb.index import FTS

        table.create_index("text", config=FTS())
    except (ImportError, TypeError, ValueError):
        table.create_fts_index("text", use_tantivy=False)
    measured["build_bm25_s"] = time.perf_counter() - started
    _with_index(measured, n)
    measured["file_mb"] = _megabytes(folder)
    many = database.create_table("many", schema=schema)
    measured["many_documents_per_s"] = _insert_many(
        n, lambda some: many.add(pa.concat_tables([rows(document) for document in some]))
    )
    return measured


def chroma(folder: Path, n: int) -> dict[str, float]:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(folder / "chroma"), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection("chunks", embedding_function=None)

    def insert(document: Document) -> None:
        origin, text, ranges, vectors = document
        collection.add(
            ids=[f"{origin}:{a}" for a, _ in ranges],
            embeddings=vectors,
            documents=[text[a:b] for a, b in ranges],
            metadatas=[{"origin": origin, "start": a} for a, _ in ranges],
        )

    measured = _insert(n, insert)
    measured["file_mb"] = _megabytes(folder)
    return measured


SYSTEMS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "ours": ours,
    "raghilda": raghilda,
    "lancedb": lancedb,
    "chroma": chroma,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--raghilda-chunks", type=int, default=1_000)
    parser.add_argument("--chroma-chunks", type=int, default=20_000)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder = Path(tempfile.mkdtemp(prefix="bench-store-"))
        try:
            print("RESULT" + json.dumps(SYSTEMS[arguments.one](folder, arguments.chunks)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    results: dict[str, dict[str, float]] = {}
    for system in arguments.systems.split(","):
        n = min(arguments.chunks, getattr(arguments, f"{system}_chunks", arguments.chunks))
        command = [sys.executable, __file__, "--one", system, "--chunks", str(n)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        line = next((line for line in run.stdout.splitlines() if line.startswith("RESULT")), None)
        if line is None:
            print(f"{system}: left out ({run.stderr.strip().splitlines()[-1:] or 'no output'})")
            continue
        results[system] = json.loads(line.removeprefix("RESULT"))
        shown = ", ".join(f"{name} {value:,.1f}" for name, value in results[system].items())
        print(f"{system} ({n:,} chunks): {shown}", flush=True)
    if "ours" in results:
        for system, measured in results.items():
            ratio = results["ours"]["chunks_per_s"] / measured["chunks_per_s"]
            print(f"insert, ours / {system}: {ratio:.2f}", end="")
            if "insert_and_bm25_per_s" in measured:
                both = results["ours"]["insert_and_bm25_per_s"] / measured["insert_and_bm25_per_s"]
                print(f"; insert and BM25 index: {both:.2f}", end="")
            print()


def _insert(n: int, insert: Callable[[Document], None]) -> dict[str, float]:
    """Chunks a second of wall and of CPU time; making the documents is not counted."""
    wall = cpu = 0.0
    for document in documents(n):
        a, b = time.perf_counter(), time.process_time()
        insert(document)
        wall += time.perf_counter() - a
        cpu += time.process_time() - b
    return {"chunks_per_s": n / wall, "chunks_per_cpu_s": n / cpu}


def _insert_many(n: int, insert: Callable[[list[Document]], None]) -> float:
    """Chunks a second, MANY documents at a time."""
    wall, waiting = 0.0, list[Document]()
    for number, document in enumerate(documents(n), 1):
        waiting.append(document)
        if len(waiting) == MANY or number == n // CHUNKS_A_DOCUMENT:
            started = time.perf_counter()
            insert(waiting)
            wall += time.perf_counter() - started
            waiting = []
    return n / wall


def _with_index(measured: dict[str, float], n: int) -> None:
    measured["insert_and_bm25_per_s"] = n / (n / measured["chunks_per_s"] + measured["build_bm25_s"])


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
