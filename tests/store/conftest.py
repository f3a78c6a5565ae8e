"""A model for tests, and documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragnar_core.chunking import Chunks, markdown_chunk
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.store import Store

DIM = 8


class CountingModel:
    """A function of texts: the same vector for the same text, and a list of everything it was asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.fail_from: int | None = None

    def __call__(self, texts: list[str]) -> np.ndarray:
        if self.fail_from is not None and len(self.texts) + len(texts) > self.fail_from:
            raise RuntimeError("the service is down")
        self.texts += texts
        return np.stack([self.vector(text) for text in texts])

    @staticmethod
    def vector(text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        found = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
        return found / np.linalg.norm(found)


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def embed(model: CountingModel) -> FunctionEmbedder:
    return FunctionEmbedder(model, DIM, "counting", batch_size=1000)


@pytest.fixture
def store(tmp_path: Path, embed: FunctionEmbedder) -> Store:
    made = Store.create(tmp_path / "store.duckdb", embed)
    yield made
    made.close()


@pytest.fixture
def chunks_of() -> Callable[..., Chunks]:
    def make(text: str, origin: str | None = None, size: int = 100) -> Chunks:
        return markdown_chunk(MarkdownDocument(text, origin), target_size=size)

    return make
