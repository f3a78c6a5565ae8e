"""What every search does before and after scoring: checks, query vectors, matching caches, result tables."""

from __future__ import annotations

import numbers
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragnar_core.errors import RetrievalError
from ragnar_core.retrieval.rows import fetch_rows
from ragnar_core.retrieval.scoring import VSS_METHODS, Rows

if TYPE_CHECKING:
    from ragnar_core.store import PostingsTable, Store, VectorTable

MAX_QUERY_CHARACTERS = 32_768
MAX_QUERY_TERMS = 1_024
REMEMBERED_VECTORS = 256
SURROGATES = re.compile("[\ud800-\udfff]")

_vectors: WeakKeyDictionary[Any, OrderedDict[str, NDArray[np.float32]]] = WeakKeyDictionary()
_vectors_lock = threading.Lock()


def check_top_k(top_k: object, name: str = "top_k") -> int:
    """``top_k`` as an int, or RetrievalError."""
    if isinstance(top_k, bool) or not isinstance(top_k, numbers.Integral) or top_k < 1:
        raise RetrievalError(f"{name} must be a whole number of 1 or more, not {top_k!r}")
    return int(top_k)


def check_method(method: str) -> str:
    if method not in VSS_METHODS:
        raise RetrievalError(f"method {method!r} is unknown; use one of {', '.join(VSS_METHODS)}")
    return method


def check_bm25(k: float, b: float) -> None:
    if not (is_number(k) and k >= 0):
        raise RetrievalError(f"k must be a number of 0 or more, not {k!r}")
    if not (is_number(b) and 0 <= b <= 1):
        raise RetrievalError(f"b must be a number between 0 and 1, not {b!r}")


def check_weights(weights: object) -> tuple[float, float]:
    """The weights of VSS and BM25: two numbers of 0 or more, not both 0."""
    try:
        vss, bm25 = (float(weight) for weight in weights)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise RetrievalError(f"weights must be two numbers (VSS, BM25), not {weights!r}") from None
    if not (np.isfinite([vss, bm25]).all() and min(vss, bm25) >= 0 and vss + bm25 > 0):
        raise RetrievalError(f"weights must be 0 or more and not both 0, not {weights!r}")
    return vss, bm25


def is_number(value: object) -> bool:
    try:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        return number and bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except OverflowError:
        return False


def is_blank(query: object) -> bool:
    """True for a text that holds nothing to search for: white space and control characters only."""
    return isinstance(query, str) and not any(char.isprintable() and not char.isspace() for char in query)


def check_text(query: object, name: str = "the query") -> str:
    if not isinstance(query, str):
        raise RetrievalError(f"{name} must be a text, not {type(query).__name__}")
    return query


def check_store(store: object) -> None:
    if not hasattr(store, "version"):
        raise RetrievalError(f"a store is needed (Store.connect opens one), not {type(store).__name__}")


def query_vector(store: Store, query: object, method: str = "cosine_distance") -> NDArray[np.float32]:
    """The query as float32 (dim,): a text goes through the store's embedder, once per text and embedder.

    Raises:
        RetrievalError: a vector of the wrong length, with NaN or infinity, or of length 0 under cosine
            distance.
        EmbedError: the store's embedder is unknown or failed.
    """
    vector = _embedded(store.embedder, query) if isinstance(query, str) else _as_vector(query)
    if vector.shape != (store.dim,):
        raise RetrievalError(
            f"the query vector has {vector.shape[0]} numbers, this store's vectors have {store.dim}; "
            "use the model the store was built with"
        )
    if not np.isfinite(vector).all():
        raise RetrievalError("the query vector holds NaN or infinity; give finite numbers")
    if method == "cosine_distance" and not vector.any():
        raise RetrievalError("the query vector is all zeros and has no direction; give another vector")
    return vector


def _as_vector(query: object) -> NDArray[np.float32]:
    try:
        vector = np.asarray(query, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty((0, 0), dtype=np.float32)
    if vector.ndim != 1:
        raise RetrievalError(f"the query must be a text or one vector of numbers, not {type(query).__name__}")
    return vector


def _embedded(embedder: Any, text: str) -> NDArray[np.float32]:
    text = SURROGATES.sub("\ufffd", text)
    with _vectors_lock:
        known = _vectors.setdefault(embedder, OrderedDict())
        if text in known:
            known.move_to_end(text)
            return known[text]
    vector = np.asarray(embedder.embed_query(text), dtype=np.float32).reshape(-1)
    with _vectors_lock:
        known[text] = vector
        while len(known) > REMEMBERED_VECTORS:
            known.popitem(last=False)
    return vector


def embed_ahead(store: Store, queries: Sequence[str]) -> None:
    """Embed texts that are about to be searched for in one call of the model, and remember their vectors. Raises
    EmbedError as ``query_vector`` does."""
    asked = dict.fromkeys(SURROGATES.sub("\ufffd", text) for text in queries if not is_blank(text))
    if not asked:
        return
    embedder = store.embedder
    with _vectors_lock:
        known = _vectors.setdefault(embedder, OrderedDict())
        new = [text for text in asked if text not in known]
    vectors = list(embedder.embed_queries(new)) if new else []
    with _vectors_lock:
        known.update(zip(new, vectors, strict=True))
        for text in asked:
            if text in known:
                known.move_to_end(text)
        while len(known) > REMEMBERED_VECTORS:
            known.popitem(last=False)


def query_terms(store: Store, query: str) -> list[str]:
    """The distinct terms of the query in order; of a huge query the first 32,768 characters, 1,024 terms."""
    return list(dict.fromkeys(store.analyzer.tokens(query[:MAX_QUERY_CHARACTERS])))[:MAX_QUERY_TERMS]


def both_tables(store: Store) -> tuple[VectorTable, PostingsTable]:
    """Vectors and postings of the same revision, also while another thread writes."""
    check_store(store)
    for _ in range(5):
        vectors, postings = store.vectors(), store.postings()
        if np.array_equal(vectors.chunk_ids, postings.chunk_ids):
            return vectors, postings
    raise RetrievalError("the store kept changing during the search; search again")


def hits_table(store: Store, chunk_ids: NDArray[np.int64], columns: Mapping[str, Any]) -> pd.DataFrame:
    """Chunks in the given order with further columns; chunks deleted since they were ranked are left out."""
    rows = fetch_rows(store, chunk_ids)
    here = rows["chunk_id"]
    at = None if len(here) == len(chunk_ids) else np.flatnonzero(np.isin(chunk_ids, here))
    for name, values in columns.items():
        if isinstance(values, str):
            rows[name] = pd.array([values] * len(here), dtype="str")
        else:
            rows[name] = values if at is None else values[at]
    return pd.DataFrame(rows)


def rows_of(table: VectorTable | PostingsTable, chunk_ids: NDArray[np.int64]) -> Rows:
    """Row numbers of known chunk_ids."""
    return np.searchsorted(table.chunk_ids, chunk_ids).astype(np.int64)
