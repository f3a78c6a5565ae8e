"""Update: what is new goes in, what changed is replaced, what is the same stays, vectors are used again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd

from ragnar_core.errors import StoreError
from ragnar_core.store.cache import Floats, fixed_size_matrix
from ragnar_core.store.prepare import Prepared, embed_missing, text_key
from ragnar_core.store.text import rows_of, searched_text
from ragnar_core.store.write import Existing, find_existing, write_document

if TYPE_CHECKING:
    from ragnar_core.store.store import Store


@dataclass(frozen=True)
class UpdateResult:
    """What an update did: documents inserted, replaced and unchanged, and texts that were embedded."""

    inserted: int = 0
    replaced: int = 0
    unchanged: int = 0
    chunks_embedded: int = 0

    def __add__(self, other: UpdateResult) -> UpdateResult:
        return UpdateResult(
            self.inserted + other.inserted,
            self.replaced + other.replaced,
            self.unchanged + other.unchanged,
            self.chunks_embedded + other.chunks_embedded,
        )


def update_documents(store: Store, documents: Sequence[Prepared], doc_id: int | None = None) -> UpdateResult:
    """Writes each document that is new or differs. Embeds the missing texts of all of them in one call."""
    if doc_id is not None and len(documents) != 1:
        raise StoreError(f"doc_id names one document, but {len(documents)} were given")
    nameless = sum(document.origin is None for document in documents)
    if nameless and doc_id is None:
        raise StoreError(
            "a document without origin cannot be updated by origin; pass its doc_id (documents() shows it), or insert it"
        )
    database = store.opened.database
    with database.write_lock:
        known: dict[bytes, Floats] = {}
        pending: list[tuple[Prepared, Existing | None]] = []
        unchanged = 0
        for document in documents:
            with database.snapshot() as cursor:
                existing = find_existing(
                    store, cursor, doc_id if doc_id is not None else document.origin or ""
                )
                if existing is None and doc_id is not None:
                    raise StoreError(
                        f"there is no document {doc_id} in {store.location}; documents() lists what there is"
                    )
                if existing is not None and is_unchanged(store, cursor, document, existing):
                    unchanged += 1
                    continue
                if existing is not None and document.vectors is None:
                    known.update(known_vectors(store, cursor, existing))
            pending.append((document, existing))
        embedded = embed_missing(store, [document for document, _ in pending], known)
        for document, existing in pending:
            write_document(store, document, existing=existing)
        inserted = sum(existing is None for _, existing in pending)
    return UpdateResult(inserted, len(pending) - inserted, unchanged, embedded)


def is_unchanged(
    store: Store, cursor: duckdb.DuckDBPyConnection, document: Prepared, existing: Existing
) -> bool:
    """Whether the file holds the same text with the same chunks, contexts and extra columns."""
    if len(existing.chunk_ids) != len(document):
        return False
    if store.version == 1:
        hashes = cursor.execute(
            "SELECT DISTINCT hash FROM chunks WHERE origin IS NOT DISTINCT FROM ?", [document.origin]
        ).fetchall()
        if hashes != [(document.hash,)]:
            return False
    else:
        row = cursor.execute("SELECT text FROM documents WHERE doc_id = ?", [existing.doc_id]).fetchone()
        if row is None or row[0] != document.text:
            return False
    rows = rows_of(cursor, store.layout, existing.chunk_ids, list(document.extra))
    order = stored = np.arange(len(document))
    if store.version == 2:
        order = np.lexsort((document.ends, document.starts))
        stored = np.lexsort((rows["end"], rows["start"]))
        for name, given in (("start", document.starts), ("end", document.ends)):
            if not np.array_equal(given[order], rows[name].to_numpy(dtype=np.int64)[stored]):
                return False
        if [document.contexts[i] for i in order] != rows["context"].iloc[stored].tolist():
            return False
    elif rows["text"].tolist() != document.texts:
        return False
    return all(
        _equal([values[i] for i in order], rows[name].iloc[stored].tolist())
        for name, values in document.extra.items()
    )


def known_vectors(store: Store, cursor: duckdb.DuckDBPyConnection, existing: Existing) -> dict[bytes, Floats]:
    """Vectors of a document's chunks by the key of the text they stand for."""
    if not store.dim or not len(existing.chunk_ids):
        return {}
    rows = rows_of(cursor, store.layout, existing.chunk_ids, ())
    marks = ", ".join(map(str, existing.chunk_ids.tolist()))
    table = cursor.execute(
        f"SELECT embedding FROM {store.layout.table} WHERE chunk_id IN ({marks}) ORDER BY chunk_id"
    ).to_arrow_table()
    matrix = np.concatenate([fixed_size_matrix(part, store.dim) for part in table["embedding"].chunks])
    texts = [
        searched_text(c, t) if store.version == 2 else t
        for c, t in zip(rows["context"], rows["text"], strict=True)
    ]
    return {text_key(text): vector for text, vector in zip(texts, matrix, strict=True) if vector.any()}


def _equal(given: Sequence[Any], stored: Sequence[Any]) -> bool:
    for a, b in zip(given, stored, strict=True):
        missing_a = a is None or (not hasattr(a, "__len__") and pd.isna(a))
        missing_b = b is None or (not hasattr(b, "__len__") and pd.isna(b))
        if missing_a or missing_b:
            if missing_a != missing_b:
                return False
        elif hasattr(a, "__len__") and not isinstance(a, str | bytes):
            if list(a) != list(b):
                return False
        elif a != b:
            return False
    return True
