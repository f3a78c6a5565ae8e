"""One value that says how to search, and the search by it: what a page keeps, shares and shows as Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.bm25 import retrieve_bm25
from ragnar_core.retrieval.filters import Filter
from ragnar_core.retrieval.hybrid import (
    DEFAULT_WEIGHTS,
    check_fusion,
    fuse_prepared,
    fusion_weights,
    retrieve_hybrid,
)
from ragnar_core.retrieval.prepared import prepare
from ragnar_core.retrieval.query import (
    check_bm25,
    check_method,
    check_store,
    check_text,
    check_top_k,
    embed_ahead,
)
from ragnar_core.retrieval.retrieve import retrieve
from ragnar_core.retrieval.selection import Selection
from ragnar_core.retrieval.thresholds import check_threshold
from ragnar_core.retrieval.vss import retrieve_vss

if TYPE_CHECKING:
    from ragnar_core.store import Store

EMBEDDED_TOGETHER = 128
FUNCTIONS = {
    "vss": "retrieve_vss",
    "bm25": "retrieve_bm25",
    "hybrid": "retrieve_hybrid",
    "union": "retrieve",
}
TAKES = {
    "vss": ("top_k", "method", "filter", "min_similarity", "selection", "exact"),
    "bm25": ("top_k", "k", "b", "conjunctive", "filter", "min_bm25", "selection"),
    "hybrid": (
        "top_k",
        "weights",
        "rrf_k",
        "fusion",
        "candidates",
        "method",
        "k",
        "b",
        "conjunctive",
        "filter",
        "min_similarity",
        "min_bm25",
        "selection",
        "exact",
    ),
    "union": (
        "top_k",
        "deoverlap",
        "limit",
        "method",
        "k",
        "b",
        "conjunctive",
        "filter",
        "min_similarity",
        "min_bm25",
        "exact",
    ),
}


@dataclass(frozen=True)
class SearchSettings:
    """How to search. ``mode`` is "vss", "bm25", "hybrid" or "union"; the rest are the arguments of the
    functions.

    Settings that a mode does not take (``applies`` tells) are kept and have no effect on it.

    Raises:
        RetrievalError: a setting is out of range.
        FilterError: the filter does not parse.
    """

    mode: str = "hybrid"
    top_k: int = 3
    method: str = "cosine_distance"
    k: float = 1.2
    b: float = 0.75
    conjunctive: bool = False
    weights: tuple[float, float] | None = None
    rrf_k: float = 60
    fusion: str = "rrf"
    candidates: int = 100
    filter: str | dict[str, Any] | None = None
    min_similarity: float | None = None
    min_bm25: float | None = None
    deoverlap: bool = True
    limit: int | None = None
    selection: Selection = field(default_factory=Selection)
    exact: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mode, str) or self.mode not in FUNCTIONS:
            raise RetrievalError(f"mode {self.mode!r} is unknown; use one of {', '.join(FUNCTIONS)}")
        check_top_k(self.top_k)
        check_method(self.method)
        check_bm25(self.k, self.b)
        check_fusion(self.fusion, self.rrf_k)
        given = fusion_weights(self.weights, self.fusion)
        # The fusion's own weights are no setting of their own: to_dict and as_python leave them out.
        object.__setattr__(self, "weights", None if given == DEFAULT_WEIGHTS[self.fusion] else given)
        check_top_k(self.candidates, "candidates")
        check_threshold("min_similarity", self.min_similarity)
        check_threshold("min_bm25", self.min_bm25)
        if self.limit is not None:
            check_top_k(self.limit, "limit")
        Filter.parse(self.filter)

    def applies(self, setting: str) -> bool:
        """Whether a setting has an effect in this mode, under the others as they are."""
        if setting == "rrf_k" and self.fusion != "rrf":
            return False
        return setting == "mode" or setting in TAKES[self.mode]

    @property
    def fusion_weights(self) -> tuple[float, float]:
        """The weights of VSS and BM25 that are in force."""
        return fusion_weights(self.weights, self.fusion)

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the mode's function."""
        return {name: getattr(self, name) for name in TAKES[self.mode]}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; only what differs from the defaults."""
        plain = asdict(self)
        plain["weights"] = self.weights and list(self.weights)
        if isinstance(self.filter, dict):
            plain["filter"] = Filter.parse(self.filter).text()
        default = {one.name: _default(one) for one in fields(self)}
        return {name: value for name, value in plain.items() if getattr(self, name) != default[name]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SearchSettings:
        """Raises RetrievalError for a setting that is not known."""
        if not isinstance(values, Mapping):
            raise RetrievalError(f"settings are read from a dict, not from {type(values).__name__}")
        known = {one.name for one in fields(cls)}
        unknown = [name for name in values if name not in known]
        if unknown:
            raise RetrievalError(
                f"setting {unknown[0]!r} is unknown; the settings are {', '.join(sorted(known))}"
            )
        given = dict(values)
        if isinstance(given.get("selection"), Mapping):
            given["selection"] = Selection.from_dict(given["selection"])
        if isinstance(given.get("weights"), list):
            given["weights"] = tuple(given["weights"])
        return cls(**given)

    def as_python(self, query: str) -> str:
        """The call that does the same, naming what differs from the defaults."""
        default = {one.name: _default(one) for one in fields(self)}
        named = [f"{name}={value!r}" for name, value in self.arguments().items() if value != default[name]]
        return f"{FUNCTIONS[self.mode]}({', '.join(['store', repr(query), *named])})"


def check_settings(settings: object) -> None:
    if not isinstance(settings, SearchSettings):
        raise RetrievalError(f"settings must be SearchSettings, not {type(settings).__name__}")


def search(store: Store, query: str, settings: SearchSettings) -> pd.DataFrame:
    """The result of the mode's function (``retrieve_vss``, ``retrieve_bm25``, ``retrieve_hybrid``,
    ``retrieve``)."""
    check_settings(settings)
    function: Any = {
        "vss": retrieve_vss,
        "bm25": retrieve_bm25,
        "hybrid": retrieve_hybrid,
        "union": retrieve,
    }[settings.mode]
    found: pd.DataFrame = function(store, query, **settings.arguments())
    return found


def search_ids(
    store: Store, query: str, settings: SearchSettings, *, vector: Any = None
) -> NDArray[np.int64]:
    """The chunk_ids of ``search`` in its order, without reading any text: for evaluation over many queries.

    Args:
        vector: the query's vector where it is known (not for "union").

    Raises:
        RetrievalError: a ``selection`` or the mode "union" merges chunks, so that a row is not one chunk.
    """
    check_settings(settings)
    if settings.mode == "union" or not settings.selection.is_plain:
        raise RetrievalError("search_ids works for vss, bm25 and hybrid without a selection; use search")
    words_only = settings.mode == "bm25"
    ready = prepare(
        store,
        check_text(query),
        filter=settings.filter,
        method=settings.method,
        k=settings.k,
        b=settings.b,
        conjunctive=settings.conjunctive,
        min_similarity=None if words_only else settings.min_similarity,
        min_bm25=None if settings.mode == "vss" else settings.min_bm25,
        vector=None if words_only else vector,
        words_only=words_only,
        exact=settings.exact,
    )
    if settings.mode == "vss":
        rows = ready.by_vss(settings.top_k).rows
    elif words_only:
        rows = ready.by_bm25(settings.top_k).rows
    else:
        reach = max(settings.candidates, settings.top_k)
        fused = fuse_prepared(
            ready, settings.fusion_weights, fusion=settings.fusion, rrf_k=settings.rrf_k, candidates=reach
        )
        rows = fused.rows[: settings.top_k]
    return np.asarray(ready.postings.chunk_ids[rows], dtype=np.int64)


def search_batch(store: Store, queries: Iterable[str], settings: SearchSettings) -> list[pd.DataFrame]:
    """One result a query, in their order, each as ``search`` gives it; the queries are embedded together.

    Raises:
        RetrievalError: ``queries`` is no list of texts; else as ``search`` does.
    """
    if isinstance(queries, str) or not isinstance(queries, Iterable):
        raise RetrievalError(f"queries must be a list of texts, not {type(queries).__name__}")
    check_store(store)
    check_settings(settings)
    asked = [check_text(query) for query in queries]
    found = []
    for at in range(0, len(asked), EMBEDDED_TOGETHER):
        part = asked[at : at + EMBEDDED_TOGETHER]
        if settings.mode != "bm25":
            embed_ahead(store, part)
        found += [search(store, query, settings) for query in part]
    return found


def _default(one: Any) -> Any:
    return one.default if one.default is not MISSING else one.default_factory()
