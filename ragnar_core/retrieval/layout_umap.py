"""The process in which UMAP runs: `python -m ragnar_core.retrieval.layout_umap IN.npz OUT.npy`.

Nothing else imports this file, so that nothing else waits for numba.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
import warnings

import numpy as np
from numpy.typing import NDArray


def main(given: str, made: str) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    threading.Thread(target=_end_with, args=(os.getppid(), os.path.dirname(given)), daemon=True).start()
    with np.load(given, allow_pickle=False) as kept:
        start, index, similarity = kept["start"], kept["index"], kept["similarity"]
        min_dist, seed = float(kept["min_dist"]), int(kept["seed"])
    np.save(made, places(start, index, similarity, min_dist, seed))


def places(
    start: NDArray[np.float32],
    index: NDArray[np.int32],
    similarity: NDArray[np.float32],
    min_dist: float,
    seed: int,
) -> NDArray[np.float32]:
    """UMAP's layout, float32 (n, 2), from each point's neighbours `(n, k)` and a first layout."""
    warnings.filterwarnings("ignore")
    from umap.umap_ import find_ab_params, fuzzy_simplicial_set, simplicial_set_embedding

    n = len(index)
    # UMAP counts a point as its own first neighbour.
    own = np.arange(n, dtype=np.int32)[:, None]
    neighbours = np.hstack((own, index.astype(np.int32)))
    distance = np.hstack((np.zeros((n, 1)), np.maximum(1 - similarity, 0))).astype(np.float32)
    random = np.random.RandomState(seed)
    graph, _, _ = fuzzy_simplicial_set(
        start, neighbours.shape[1], random, "cosine", knn_indices=neighbours, knn_dists=distance
    )
    a, b = find_ab_params(1.0, min_dist)
    first = 10 * start / max(float(np.abs(start).max()), 1e-9)
    first = first + random.normal(scale=1e-3, size=first.shape)
    xy, _ = simplicial_set_embedding(
        start, graph, 2, 1.0, a, b, 1.0, 5, 500 if n <= 10_000 else 200, first.astype(np.float32), random,
        "cosine", {}, False, {}, False, parallel=False, verbose=False,
    )  # fmt: skip
    return np.asarray(xy, np.float32)


def _end_with(parent: int, folder: str) -> None:
    """Ends this process when the one that started it is gone, and takes away the folder that one made for it."""
    while os.getppid() == parent:
        time.sleep(1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
