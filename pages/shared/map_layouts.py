"""What the Map page knows of a store: points, layouts, groups; kept for the process, made once per revision."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from pages.shared import workspace
from pages.shared.jobs import Job, manager
from ragnar_core import Store
from ragnar_core.retrieval.layout import (
    FEWEST_FOR_UMAP,
    Layout,
    cache_file,
    load_layout,
    pca_layout,
    save_layout,
    umap_layout,
    usable_points,
)
from ragnar_core.retrieval.layout_groups import (
    Clusters,
    Neighbours,
    cluster_words,
    clusters,
    neighbours,
    outliers,
)

AT_ONCE = 3_000
UNASKED = 20_000
KEPT = 2
LOOKED_AT = 25


@dataclass(frozen=True)
class Groups:
    """Who is near whom: `lonely` are rows with their mean similarity to their nearest, loneliest first."""

    near: Neighbours
    clusters: Clusters
    words: list[str]
    lonely: NDArray[np.int64]
    likeness: NDArray[np.float32]
    stands_out: NDArray[np.bool_]


class StoreMap:
    """The map of one revision of a store. PCA is made here; groups and UMAP when asked for, in any thread."""

    def __init__(self, store: Store, name: str, folder: Path) -> None:
        self.store = store
        self.name = name
        self.points = usable_points(store.vectors())
        self.pca: Layout = pca_layout(self.points.unit)
        self.groups: Groups | None = None
        self._lock = threading.Lock()
        self.file = cache_file(folder, name, self.points, "umap")
        self.umap: Layout | None = load_layout(self.file, len(self.points))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def job_key(self) -> str:
        return f"map:{self.file.name}"

    def make_groups(self) -> Groups:
        with self._lock:
            if self.groups is None:
                near = neighbours(self.points.unit)
                found = clusters(self.points.unit)
                words = cluster_words(self.store.postings(), self.points.chunk_ids, found.label)
                spelled = _spelled(self.store, self.points.chunk_ids, found.label, words)
                self.groups = Groups(near, found, spelled, *outliers(near))
            return self.groups

    def make_umap(self, job: Job) -> None:
        job.report(0, 3, "finding each chunk's nearest")
        groups = self.make_groups()
        if job.cancel.is_set():
            return
        job.report(1, 3, "laying out")
        self.umap = umap_layout(self.points.unit, groups.near, cancel=job.cancel)
        if self.umap is not None:
            job.report(2, 3, "keeping the layout")
            # A folder that cannot be written costs the next visit some time, and nothing else.
            with contextlib.suppress(OSError):
                save_layout(self.file, self.umap)

    def last_job(self) -> Job | None:
        return next((job for job in manager().jobs("map") if job.key == self.job_key), None)

    def start(self) -> Job:
        return manager().start("map", f"Map of {self.name}", self.job_key, self.make_umap)

    @property
    def worth_umap(self) -> bool:
        return len(self) >= FEWEST_FOR_UMAP and self.pca.method == "pca"


def _spelled(
    store: Store, chunk_ids: NDArray[np.int64], label: NDArray[np.int32], words: list[str]
) -> list[str]:
    """The clusters' terms as their first chunks write them: an indexed term is a stem."""
    found = []
    for number, line in enumerate(words):
        forms: dict[str, Counter[str]] = {term: Counter() for term in line.split(", ") if term}
        for text in store.fetch(chunk_ids[label == number][:LOOKED_AT])["text"]:
            for term, start, end in store.analyzer.spans(text):
                if term in forms:
                    forms[term][text[start:end].lower()] += 1
        found.append(", ".join(seen.most_common(1)[0][0] if seen else term for term, seen in forms.items()))
    return found


class _Maps:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._maps: OrderedDict[tuple[str, int], StoreMap] = OrderedDict()

    def get(self, store: Store, name: str) -> StoreMap:
        key = (str(store.location), store.revision)
        with self._lock:
            if key not in self._maps:
                self._maps[key] = StoreMap(store, name, workspace.folder() / ".layouts")
                while len(self._maps) > KEPT:
                    self._maps.popitem(last=False)
            self._maps.move_to_end(key)
            # A store that was closed and opened again is another handle on the same revision.
            self._maps[key].store = store
            return self._maps[key]


@st.cache_resource(show_spinner=False)
def maps() -> _Maps:
    return _Maps()
