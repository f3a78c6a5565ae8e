"""Approximate vector search against the exact one: recall, time a query, time to build and to open, size.

    python benchmarks/ann.py                     # 100,000 vectors
    python benchmarks/ann.py --chunks 300000

The vectors are mixtures of two of the sample store's (real chunks, 384 dimensions), with noise; so are the queries, of other
draws. Needs usearch. Times are of one thread's search within an open store, without reading any text.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ragnar_core.retrieval.near import rank_near
from ragnar_core.retrieval.scoring import rank_vectors
from ragnar_core.store import Store, ann

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "handbook.duckdb"
A_DOCUMENT = 1000


def mixtures(base: np.ndarray, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, len(base), (2, n))
    share = rng.uniform(0.5, 1, (n, 1)).astype(np.float32)
    noise = rng.normal(size=(n, base.shape[1])).astype(np.float32) * (0.5 / np.sqrt(base.shape[1]))
    found = share * base[first] + (1 - share) * base[second] + noise
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    arguments = parser.parse_args()
    ann.ANN_FROM = 1
    with Store.connect(arguments.sample) as sample:
        base = sample.vectors().matrix
    queries = mixtures(base, arguments.queries, 2)
    folder = Path(tempfile.mkdtemp(prefix="bench-ann-"))
    try:
        with Store.create(folder / "store.duckdb", embedding_size=base.shape[1]) as store:
            for start in range(0, arguments.chunks, A_DOCUMENT):
                n = min(A_DOCUMENT, arguments.chunks - start)
                table = pd.DataFrame(
                    {"text": [f"chunk {start + i}" for i in range(n)], "origin": f"{start}.md"}
                )
                store.insert(table, vectors=mixtures(base, n, 1000 + start))
            vectors = store.vectors()
            wall, cpu = time.perf_counter(), time.process_time()
            ann.build_graph(store)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            path = ann.ann_path(store)
            assert path is not None
            size = path.stat().st_size / 1e6
            print(f"{len(vectors):,} vectors: built in {wall:.0f} s ({cpu:.0f} s of CPU), {size:.0f} MB")
            started = time.perf_counter()
            graph = ann.graph_view(store, vectors)
            print(f"opened and checked in {1000 * (time.perf_counter() - started):.0f} ms")
            for depth in (10, 100):
                times: dict[str, list[float]] = {"exact": [], "approximate": []}
                shared = []
                for query in queries:
                    a = time.perf_counter()
                    exact = rank_vectors(vectors, query, "cosine_distance", depth)
                    b = time.perf_counter()
                    near = rank_near(vectors, query, "cosine_distance", depth, None, graph)
                    c = time.perf_counter()
                    times["exact"].append(b - a)
                    times["approximate"].append(c - b)
                    shared.append(len(np.intersect1d(exact.rows, near.rows)) / depth)
                shown = ", ".join(f"{name} p50 {1000 * np.median(of):.2f} ms" for name, of in times.items())
                print(f"top {depth}: recall {np.mean(shared):.4f} (lowest {min(shared):.2f}), {shown}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
