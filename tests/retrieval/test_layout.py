from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval import layout as layouts
from ragnar_core.retrieval.layout import (
    Layout,
    Points,
    cache_file,
    load_layout,
    pca_layout,
    place_query,
    save_layout,
    umap_layout,
    usable_points,
)
from ragnar_core.retrieval.layout_groups import (
    Neighbours,
    cluster_words,
    clusters,
    near_duplicates,
    neighbours,
    outliers,
)
from ragnar_core.store.cache import VectorTable


def table(matrix: np.ndarray) -> VectorTable:
    matrix = np.asarray(matrix, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(matrix, axis=1).astype(np.float32)
    return VectorTable(np.arange(1, len(matrix) + 1), matrix, norms, False)


def blobs(n: int, dim: int = 16, groups: int = 3, seed: int = 0) -> np.ndarray:
    """Unit vectors around `groups` directions; row i belongs to group i % groups."""
    rng = np.random.default_rng(seed)
    centres = np.eye(groups, dim)
    matrix = centres[np.arange(n) % groups] + rng.normal(scale=0.08, size=(n, dim))
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 14])
def test_any_number_of_points_has_a_finite_place(n: int) -> None:
    found = pca_layout(blobs(n))
    assert found.xy.shape == (n, 2)
    assert found.xy.dtype == np.float32
    assert np.isfinite(found.xy).all()
    assert len(np.unique(found.xy, axis=0)) == n


def test_two_and_three_points_keep_their_distances() -> None:
    two = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    found = pca_layout(two)
    assert np.linalg.norm(found.xy[0] - found.xy[1]) == pytest.approx(2**0.5, abs=1e-6)
    assert found.note == "2 points: their distances are exact, there is nothing to leave out."
    three = pca_layout(np.eye(3, dtype=np.float32)).xy
    sides = [np.linalg.norm(three[a] - three[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert sides == pytest.approx([2**0.5] * 3, abs=1e-5)


def test_equal_vectors_are_spread_and_said_to_be_equal() -> None:
    found = pca_layout(np.tile(np.array([[0.6, 0.8]], np.float32), (50, 1)))
    assert found.method == "spiral"
    assert found.note == "All vectors are equal: the points are laid out in a spiral."
    assert len(np.unique(found.xy, axis=0)) == 50


def test_bad_vectors_are_left_out_and_counted() -> None:
    matrix = np.vstack((blobs(50), np.full((1, 16), np.nan), np.zeros((3, 16)), np.full((1, 16), np.inf)))
    points = usable_points(table(matrix))
    assert len(points) == 50
    assert points.chunk_ids.tolist() == list(range(1, 51))
    assert points.left_out == (
        "Left out: 3 without a vector or with one of zeros, and 2 whose vector holds NaN or infinity."
    )
    assert np.isfinite(pca_layout(points.unit).xy).all()


def test_huge_and_tiny_vectors_have_a_direction() -> None:
    points = usable_points(table(np.array([[3e38, 3e38], [1e-30, 0]])))
    assert points.unit.tolist() == [[pytest.approx(2**-0.5)] * 2, [1.0, 0.0]]
    assert points.left_out == ""


def test_a_store_without_vectors_has_no_points() -> None:
    points = usable_points(table(np.zeros((4, 0))))
    assert (len(points), points.without_direction) == (0, 4)


def test_pca_is_the_principal_axes() -> None:
    unit = blobs(200, dim=24)
    centred = unit - unit.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)
    found = pca_layout(unit)
    assert np.linalg.norm(found.xy, axis=0) == pytest.approx(values[:2], rel=1e-3)
    assert found.kept == pytest.approx((values[:2] ** 2).sum() / (values**2).sum(), rel=1e-3)
    assert np.array_equal(pca_layout(unit).xy, found.xy)


def test_wide_and_iterated_pca_agree_with_the_exact_one() -> None:
    wide = blobs(40, dim=900)
    values = np.linalg.svd(wide - wide.mean(axis=0), compute_uv=False)
    assert np.linalg.norm(pca_layout(wide).xy, axis=0) == pytest.approx(values[:2], rel=1e-3)
    large = blobs(700, dim=640)
    values = np.linalg.svd(large - large.mean(axis=0), compute_uv=False)
    assert np.linalg.norm(pca_layout(large).xy, axis=0) == pytest.approx(values[:2], rel=1e-2)


def test_the_query_stands_where_an_equal_chunk_stands() -> None:
    unit = blobs(60)
    found = pca_layout(unit)
    none = np.zeros(0, np.int64)
    place = place_query(found, unit[7] * 5, none, np.zeros(0, np.float32))
    assert place == pytest.approx(found.xy[7], abs=1e-5)


def test_outside_pca_the_query_stands_among_its_hits() -> None:
    found = Layout("umap", np.array([[0, 0], [10, 0], [0, 10], [50, 50]], np.float32))
    similarity = np.array([0.9, 0.9, 0.1], np.float32)
    x, y = place_query(found, np.ones(4, np.float32), np.array([0, 1, 2]), similarity)
    assert x == pytest.approx(10 * 0.82 / 1.66, abs=1e-4)
    assert y == pytest.approx(10 * 0.02 / 1.66, abs=1e-4)
    middle = place_query(found, np.ones(4, np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))
    assert middle.tolist() == [15.0, 15.0]


def test_neighbours_are_the_nearest_others() -> None:
    unit = blobs(90)
    found = neighbours(unit, 5)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    assert np.array_equal(
        np.sort(found.index, axis=1), np.sort(np.argsort(-similarity, axis=1)[:, :5], axis=1)
    )
    assert found.exact
    assert neighbours(unit[:3], 5).index.shape == (3, 2)
    assert neighbours(unit[:1], 5).index.shape == (1, 0)


def test_neighbours_in_regions_find_nearly_all() -> None:
    unit = blobs(3000, dim=8, groups=6)
    exact, fast = neighbours(unit, 5), neighbours(unit, 5, exact_up_to=100)
    assert not fast.exact
    assert not (fast.index == np.arange(3000)[:, None]).any()
    shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact.index, fast.index, strict=True)])
    assert shared > 0.6


def test_near_duplicates_are_grouped_most_similar_first() -> None:
    unit = np.eye(6, dtype=np.float32)
    unit[3] = unit[0]
    unit[4] = unit[0] * 0.99 + unit[1] * (1 - 0.99**2) ** 0.5
    unit[5] = unit[2] * 0.98 + unit[1] * (1 - 0.98**2) ** 0.5
    near = neighbours(unit)
    found = near_duplicates(near, 0.975)
    assert [(group.rows.tolist(), round(group.similarity, 2)) for group in found] == [
        ([0, 3, 4], 0.99),
        ([2, 5], 0.98),
    ]
    assert near_duplicates(near, 0.999)[0].rows.tolist() == [0, 3]
    apart = np.ones_like(near.similarity, bool)
    apart[[2, 5]] = False
    assert [group.rows.tolist() for group in near_duplicates(near, 0.975, apart=apart)] == [[0, 3, 4]]


def test_the_loneliest_point_stands_out() -> None:
    unit = np.vstack((blobs(60, dim=16), -np.eye(1, 16, 15)))
    rows, mean, stands_out = outliers(neighbours(unit.astype(np.float32)))
    assert rows[0] == 60
    assert mean[0] < 0.3 < mean[1]
    assert stands_out.tolist() == [True] + [False] * 60
    assert outliers(neighbours(unit[:1].astype(np.float32)))[0].tolist() == [0]


def test_clusters_are_the_groups_largest_first() -> None:
    unit = np.vstack((blobs(30, groups=3), blobs(8, groups=1, seed=4)))
    found = clusters(unit, 3)
    assert found.sizes == [18, 10, 10]
    assert set(found.label[[*range(0, 30, 3), *range(30, 38)]]) == {0}
    assert len(set(found.label[1:30:3])) == 1
    assert np.array_equal(clusters(unit, 3).label, found.label)
    assert clusters(unit[:0]).sizes == []
    assert clusters(np.tile(unit[:1], (9, 1))).sizes == [9]


def test_clusters_are_named_by_their_own_words() -> None:
    from ragnar_core.store import Store

    with Store.create(":memory:", lambda texts: blobs(len(texts), groups=2)) as store:
        import pandas as pd

        texts = ["apple pie common", "rocket engine common"] * 4
        store.insert(pd.DataFrame({"text": texts, "origin": [f"d{i}" for i in range(8)]}))
        label = np.array([0, 1] * 4, np.int32)
        words = cluster_words(store.postings(), store.vectors().chunk_ids, label, count=2)
    assert [set(word.split(", ")) for word in words] == [{"appl", "pie"}, {"rocket", "engin"}]


def test_a_layout_is_kept_and_a_broken_or_strange_one_is_not(tmp_path: Path) -> None:
    points = Points(np.arange(12), blobs(12), 0, 0)
    file = cache_file(tmp_path, "my-store", points, "umap")
    kept = Layout("umap", np.arange(24, dtype=np.float32).reshape(12, 2))
    assert load_layout(file, 12) is None
    save_layout(file, kept)
    assert load_layout(file, 12).xy.tolist() == kept.xy.tolist()
    assert load_layout(file, 13) is None
    other = cache_file(tmp_path, "my-store", Points(np.arange(12), blobs(12, seed=1), 0, 0), "umap")
    assert other != file
    save_layout(other, kept)
    assert not file.exists()
    other.write_bytes(other.read_bytes()[:200])
    assert load_layout(other, 12) is None


def test_umap_lays_out_groups_apart() -> None:
    pytest.importorskip("umap")
    unit = blobs(60)
    near = neighbours(unit)
    found = umap_layout(unit, near)
    assert (found.method, found.xy.shape, found.xy.dtype) == ("umap", (60, 2), np.float32)
    assert np.isfinite(found.xy).all()
    within = np.mean([np.linalg.norm(found.xy[i] - found.xy[i + 3]) for i in range(57)])
    between = np.mean([np.linalg.norm(found.xy[i] - found.xy[i + 1]) for i in range(59)])
    assert between > 2 * within


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_umap_of_a_few_points_is_pca_and_says_so(n: int) -> None:
    found = umap_layout(blobs(n), neighbours(blobs(n)))
    assert found.method == "pca"
    assert found.note == "UMAP needs 10 points; this is PCA."


def test_umap_that_is_missing_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "umap").mkdir()
    (tmp_path / "umap" / "__init__.py").write_text("raise ImportError('numba is broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    expected = r"^UMAP could not run \(ImportError: numba is broken\); use the PCA layout, or install"
    with pytest.raises(RetrievalError, match=expected):
        umap_layout(blobs(20), neighbours(blobs(20)))


def test_umap_can_be_cancelled_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen] = []
    popen = subprocess.Popen

    def remember(command, **options):
        started.append(popen([sys.executable, "-c", "import time; time.sleep(60)"], **options))
        return started[-1]

    monkeypatch.setattr(layouts.subprocess, "Popen", remember)
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    near = Neighbours(np.zeros((20, 3), np.int32), np.ones((20, 3), np.float32), True)
    assert umap_layout(blobs(20), near, cancel=cancel) is None
    assert started[0].returncode is not None


def test_importing_the_layouts_imports_no_umap() -> None:
    code = (
        "import sys, ragnar_core.retrieval.layout as l, numpy as n; l.pca_layout(n.eye(4, dtype='f4'));"
        "print([m for m in ('umap', 'numba', 'pynndescent', 'sklearn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
