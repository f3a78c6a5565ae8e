"""Small real stores for the retrieval tests."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.store import Store

WORDS = [
    "apple",
    "banana",
    "cherry",
    "damson",
    "elder",
    "fig",
    "grape",
    "hazel",
    "iris",
    "juniper",
    "kiwi",
    "lemon",
]


def word_vectors(texts: Sequence[str]) -> np.ndarray:
    """A toy model: a text's vector counts its words in eight bins, and says a little about their order."""
    rows = np.full((len(texts), 8), 0.01, dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for at, word in enumerate(re.findall(r"\w+", text.lower())):
            row[zlib.crc32(word.encode()) % 8] += 1 + 0.01 * (at % 7)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def toy_model() -> FunctionEmbedder:
    return FunctionEmbedder(word_vectors, 8, "word-vectors")


@pytest.fixture(scope="session")
def fruit(toy_model: FunctionEmbedder) -> Iterator[Store]:
    """120 chunks of 24 documents, without overlap, with extra columns category, year, price and ripe; read only."""
    random = np.random.default_rng(7)
    store = Store.create(
        ":memory:", toy_model, extra_cols={"category": str, "year": int, "price": float, "ripe": bool}
    )
    for document in range(24):
        texts = [" ".join(random.choice(WORDS, size=random.integers(3, 25))) for _ in range(5)]
        store.insert(
            pd.DataFrame(
                {
                    "origin": f"document-{document:02d}",
                    "context": "" if document % 3 else f"# Part {document}",
                    "text": texts,
                    "category": ["news", "blog", None][document % 3],
                    "year": pd.array([None if document == 5 else 2000 + document] * 5, dtype="Int64"),
                    "price": random.random(5).round(2),
                    "ripe": pd.array([bool(document % 2)] * 5, dtype="boolean"),
                }
            )
        )
    yield store
    store.close()


@pytest.fixture
def make_store(toy_model: FunctionEmbedder) -> Iterator[Callable[..., Store]]:
    """``make_store({origin: text, ...})`` or ``make_store({origin: [chunk text, ...]}, vectors=...)``."""
    made: list[Store] = []

    def make(documents: dict[str, list[str]], vectors: Any = None, **options: Any) -> Store:
        embed = None if vectors is not None else toy_model
        size = None if vectors is None else np.asarray(vectors).shape[1]
        store = Store.create(":memory:", embed, embedding_size=size, **options)
        made.append(store)
        at = 0
        for origin, texts in documents.items():
            own = None if vectors is None else np.asarray(vectors, dtype=np.float32)[at : at + len(texts)]
            store.insert(pd.DataFrame({"origin": origin, "text": texts}), vectors=own)
            at += len(texts)
        return store

    yield make
    for store in made:
        store.close()


def failing(texts: Sequence[str]) -> np.ndarray:
    raise RuntimeError("the model is out")


@pytest.fixture(
    params=["words only", "words only, model given", "no model named", "unknown model", "failing model"]
)
def without_model(
    request: pytest.FixtureRequest, tmp_path: Path, toy_model: FunctionEmbedder
) -> Iterator[Store]:
    """Chunk 1 "apple pie", 2 "apple apple tart", 3 "a fig" of the documents a, b and c, in each of the kinds of stores
    that cannot embed a query."""
    kind, path = request.param, tmp_path / "s.duckdb"
    embed = toy_model if "unknown" in kind or "failing" in kind else None
    with Store.create(path, embed, embedding_size=2 if kind == "no model named" else None) as store:
        texts = pd.DataFrame({"origin": ["a", "b", "c"], "text": ["apple pie", "apple apple tart", "a fig"]})
        vectors = np.eye(3, 2, dtype=np.float32) + 0.1 if kind == "no model named" else None
        store.insert(texts, vectors=vectors)
    given = {
        "words only, model given": toy_model,
        "failing model": FunctionEmbedder(failing, 8, "word-vectors"),
    }
    with Store.connect(path, embed=given.get(kind)) as store:
        yield store
