"""A store's vectors as points in the plane: principal components at once, UMAP in a process of its own.

Vectors are compared by direction, as cosine distance does, so every row is brought to length 1 first.
Layouts are always finite, float32 `(n, 2)`, and the same for the same vectors.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.layout_groups import Neighbours

if TYPE_CHECKING:
    from ragnar_core.store import VectorTable

Floats = NDArray[np.float32]
SEED = 42
FEWEST_FOR_UMAP = 10
_EXACT_SIDE = 600
_FORMAT = 1


@dataclass(frozen=True)
class Points:
    """The vectors that can be laid out.

    Attributes:
        chunk_ids: int64 (n,), ascending.
        unit: float32 (n, dim), rows of length 1.
        not_finite: chunks left out because their vector holds NaN or infinity.
        without_direction: chunks left out because their vector is missing or all zeros.
    """

    chunk_ids: NDArray[np.int64]
    unit: Floats
    not_finite: int
    without_direction: int

    def __len__(self) -> int:
        return len(self.chunk_ids)

    @property
    def left_out(self) -> str:
        """A sentence on what cannot be shown; empty when everything can."""
        parts = []
        if self.without_direction:
            parts.append(f"{self.without_direction:,} without a vector or with one of zeros")
        if self.not_finite:
            parts.append(f"{self.not_finite:,} whose vector holds NaN or infinity")
        return f"Left out: {', and '.join(parts)}." if parts else ""

    def digest(self) -> str:
        """A name for exactly these vectors."""
        state = hashlib.blake2b(digest_size=12)
        state.update(np.ascontiguousarray(self.chunk_ids).data)
        state.update(np.ascontiguousarray(self.unit).data)
        return state.hexdigest()


@dataclass(frozen=True)
class Layout:
    """Where each point lies.

    Attributes:
        method: "pca", "umap", or "spiral" where the vectors give no directions to lay out by.
        xy: float32 (n, 2), finite.
        kept: the share of the variance that two principal axes keep, 0 to 1; None for other methods.
        note: a sentence for people, or "".
        mean, axes: of PCA, float32 (dim,) and (dim, 2), to place further vectors; None for other methods.
    """

    method: str
    xy: Floats
    kept: float | None = None
    note: str = ""
    mean: Floats | None = None
    axes: Floats | None = None


def usable_points(table: VectorTable) -> Points:
    """The rows of a store's vectors that have a direction."""
    finite = np.isfinite(table.matrix).all(axis=1)
    length = np.zeros(len(table), np.float64)
    if table.matrix.shape[1]:
        # Lengths in float64: a float32 square of a large number overflows.
        length[finite] = np.linalg.norm(table.matrix[finite].astype(np.float64), axis=1)
    good = finite & (length > 0)
    unit = (table.matrix[good] / length[good, None]).astype(np.float32)
    return Points(
        np.asarray(table.chunk_ids[good], np.int64),
        unit,
        not_finite=int(np.count_nonzero(~finite)),
        without_direction=int(np.count_nonzero(finite & ~good)),
    )


def pca_layout(unit: Floats, *, seed: int = SEED) -> Layout:
    """The first two principal components of unit vectors `(n, dim)`.

    Exact where the smaller side is at most 600, else by subspace iteration (Halko and others 2011). Axes
    point to where their largest loading is positive, so that the same vectors never come out mirrored.
    """
    n = len(unit)
    if n < 2:
        return Layout("pca", np.zeros((n, 2), np.float32), 1.0, _few(n))
    mean = unit.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = unit - mean
    total = float(np.einsum("ij,ij->", centred, centred, dtype=np.float64))
    if total < 1e-9 * n:
        return Layout(
            "spiral", spiral(n), None, "All vectors are equal: the points are laid out in a spiral."
        )
    axes = _axes(centred, seed)
    xy = centred @ axes
    kept = min(1.0, float(np.einsum("ij,ij->", xy, xy, dtype=np.float64)) / total)
    return Layout("pca", xy, kept, _few(n), mean, axes)


def spiral(n: int) -> Floats:
    """n points on a sunflower's spiral, none on another; float32 (n, 2)."""
    at = np.arange(n)
    turn, radius = at * (np.pi * (3 - 5**0.5)), np.sqrt(at)
    return np.stack((radius * np.cos(turn), radius * np.sin(turn)), axis=1).astype(np.float32)


def umap_layout(
    unit: Floats,
    near: Neighbours,
    *,
    seed: int = SEED,
    min_dist: float = 0.1,
    cancel: threading.Event | None = None,
) -> Layout | None:
    """UMAP (McInnes and others 2018) of unit vectors over their cosine neighbours, started from the PCA
    layout.

    Runs in a process of its own, at low priority: its compiled loops would hold up every other thread of
    this one. Below 10 points the PCA layout comes back with a note. None when cancelled.

    Raises:
        RetrievalError: umap-learn is not installed, or failed.
    """
    start = pca_layout(unit, seed=seed)
    if len(unit) < FEWEST_FOR_UMAP:
        note = f"UMAP needs {FEWEST_FOR_UMAP} points; this is PCA."
        return replace(start, note=note)
    if start.method == "spiral":
        return start
    with tempfile.TemporaryDirectory(prefix="ragnar-umap-") as folder:
        given, made = Path(folder) / "in.npz", Path(folder) / "out.npy"
        np.savez(
            given, start=start.xy, index=near.index, similarity=near.similarity, min_dist=min_dist, seed=seed
        )
        ended = _run(
            [sys.executable, "-m", "ragnar_core.retrieval.layout_umap", str(given), str(made)], cancel
        )
        if ended is None:
            return None
        code, said = ended
        if code != 0 or not made.exists():
            why = said.strip().splitlines()[-1] if said.strip() else f"its process ended with code {code}"
            raise RetrievalError(
                f"UMAP could not run ({why}); use the PCA layout, or install umap-learn anew"
            )
        xy = np.load(made, allow_pickle=False).astype(np.float32)
    if xy.shape != start.xy.shape or not np.isfinite(xy).all():
        raise RetrievalError("UMAP gave places that are not finite; use the PCA layout")
    return Layout("umap", xy)


def place_query(layout: Layout, vector: Floats, rows: NDArray[np.int64], similarity: Floats) -> Floats:
    """Where a query belongs in a layout, float32 (2,).

    Under PCA the query's own projection. Elsewhere the mean of its hits' places (`rows` of the layout),
    weighted by how far each hit's cosine similarity is above the last one's; the middle of the map
    without hits.
    """
    if layout.mean is not None and layout.axes is not None:
        length = float(np.linalg.norm(vector.astype(np.float64)))
        unit = (vector / length).astype(np.float32) if length > 0 else np.zeros_like(vector)
        return np.asarray((unit - layout.mean) @ layout.axes, np.float32)
    if not len(rows):
        return layout.xy.mean(axis=0).astype(np.float32) if len(layout.xy) else np.zeros(2, np.float32)
    weight = similarity.astype(np.float64) - float(similarity.min()) + 0.02
    return np.asarray((layout.xy[rows] * weight[:, None]).sum(axis=0) / weight.sum(), np.float32)


def cache_file(folder: str | Path, name: str, points: Points, method: str) -> Path:
    """The file in `folder` that keeps a layout of exactly these vectors."""
    return Path(folder) / f"{name}-{method}-{points.digest()}-{_FORMAT}.npz"


def save_layout(path: Path, layout: Layout) -> None:
    """Keep a layout; older ones of the same name and method go. It is a cache: any file may be deleted
    at any time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(file, xy=layout.xy, method=layout.method, note=layout.note)
    os.replace(part, path)
    name = path.name.rsplit("-", 2)[0]
    for old in path.parent.glob(f"{name}-*.npz"):
        if old != path and old.name.rsplit("-", 2)[0] == name:
            old.unlink(missing_ok=True)


def load_layout(path: Path, n: int) -> Layout | None:
    """A kept layout of n points; None when there is none, or not a whole one."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            xy = np.asarray(kept["xy"], np.float32)
            layout = Layout(str(kept["method"]), xy, note=str(kept["note"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return layout if xy.shape == (n, 2) and bool(np.isfinite(xy).all()) else None


def _few(n: int) -> str:
    if n == 1:
        return "One point: it stands in the middle."
    return f"{n} points: their distances are exact, there is nothing to leave out." if n in (2, 3) else ""


def _axes(centred: Floats, seed: int) -> Floats:
    n, dim = centred.shape
    if min(n, dim) > _EXACT_SIDE:
        axes = _iterated(centred, seed)
    elif dim <= n:
        axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))[1][:, ::-1][:, :2]
    else:
        sides = np.linalg.eigh((centred @ centred.T).astype(np.float64))[1][:, ::-1][:, :2]
        axes = centred.T.astype(np.float64) @ sides
        length = np.linalg.norm(axes, axis=0)
        axes = np.where(length > 1e-6, axes / np.maximum(length, 1e-6), 0.0)
    if axes.shape[1] < 2:
        axes = np.hstack((axes, np.zeros((dim, 2 - axes.shape[1]))))
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(2)]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0), np.float32)


def _iterated(centred: Floats, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((centred.shape[1], 10)).astype(np.float32)
    for _ in range(12):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0].astype(np.float32)
    inner = centred @ basis
    turn = np.linalg.eigh((inner.T @ inner).astype(np.float64))[1][:, ::-1][:, :2]
    return np.asarray(basis.astype(np.float64) @ turn)


def _run(command: list[str], cancel: threading.Event | None) -> tuple[int, str] | None:
    """(exit code, what it said) of a program; None when cancelled, the program ended."""
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": root + (os.pathsep + known if known else "")}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment
        )
        try:
            while process.poll() is None:
                if cancel is not None and cancel.is_set():
                    return None
                time.sleep(0.1)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        return process.returncode, said.read().decode("utf-8", "replace")
