"""The store doctor: what is wrong with a store, and a repair for each finding that says what it will do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragnar_core.errors import EmbedError, StoreError
from ragnar_core.store import interop_r
from ragnar_core.store.ann import available
from ragnar_core.store.cache import fixed_size_matrix
from ragnar_core.store.index import ids_of, index_state
from ragnar_core.store.repairs import REPAIRS, bad_vectors, copies, orphan_chunks, outside_ranges
from ragnar_core.store.text import texts_of

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

_BLOAT = 2
_SMALL_FILE = 16 * 2**20
_SAME_VECTOR = 0.98


@dataclass(frozen=True)
class Finding:
    """One thing the doctor found.

    kind: a short name ("stale_index", "bad_vectors", ...). severity: "error" (searches are wrong or impossible),
    "warning" (worth doing) or "note". message: a sentence for a person. repair: what `Store.repair` will do about it, or
    None when it can do nothing. count: how many chunks, documents or bytes it is about. items: which, as far as named.
    """

    kind: str
    severity: str
    message: str
    repair: str | None
    count: int = 0
    items: tuple[str | int, ...] = ()


def check(store: Store, *, probe: bool | None = None) -> list[Finding]:
    """All findings, worst first. `probe` embeds three chunks again to see whether the vectors are this model's; by
    default only where that costs nothing (a built-in model or a function)."""
    checks: list[Callable[[Store], list[Finding]]] = [
        _indexes,
        _orphans,
        _vectors,
        _dimensions,
        _ranges,
        _duplicates,
        _bloat,
    ]
    found = [finding for each in checks for finding in each(store)]
    found += _model(store, probe)
    if store.layout.kind == "raghilda":
        found = [replace(finding, repair=None) for finding in found]
    return sorted(found, key=lambda finding: ("error", "warning", "note").index(finding.severity))


def repair(store: Store, finding: Finding) -> None:
    """Does what `finding.repair` says. Raises StoreError when there is nothing it can do."""
    if finding.repair is None or finding.kind not in REPAIRS:
        raise StoreError(f"there is no automatic repair: {finding.message}")
    REPAIRS[finding.kind](store)


def _indexes(store: Store) -> list[Finding]:
    state = index_state(store)
    found = []
    if state.r_hnsw:
        found.append(
            Finding(
                "r_hnsw",
                "warning",
                f"The file holds R's vector index ({', '.join(state.r_hnsw)}). It is searched exactly without it, but "
                "cannot be written while it is there.",
                "Drop R's vector index. Index for R builds it again.",
                len(state.r_hnsw),
                state.r_hnsw,
            )
        )
    if state.bm25 != "fresh":
        found.append(
            Finding(
                "stale_index",
                "warning",
                f"{state.stale_chunks} chunks are not in the BM25 index as they are in the store: another program wrote "
                "the file. Searches index them in memory each time the store is opened.",
                "Index these chunks and write the index into the file.",
                state.stale_chunks,
            )
        )
    if state.r_fts == "stale":
        found.append(
            Finding(
                "stale_r_index",
                "note",
                "R's own full-text index does not have the chunks that are in the store now.",
                None,
            )
        )
    if state.missing_vectors:
        found.append(
            Finding(
                "missing_vectors",
                "error",
                f"{state.missing_vectors} chunks with text have no vector, so that vector search never finds them.",
                f"Embed {state.missing_vectors} chunks with the store's model.",
                state.missing_vectors,
            )
        )
    return found + _graph(store, state.ann, state.ann_stale)


def _graph(store: Store, state: str, stale: int) -> list[Finding]:
    name = f"{Path(store.location).name}.ann"
    if state == "damaged":
        said = f"The graph for approximate search, {name}, is damaged or not this store's; searches do without it."
        return [
            Finding("bad_ann", "warning", said, f"Delete {name}; build it anew if the store is that large.")
        ]
    if state == "stale":
        said = f"{stale} chunks were written or deleted since {name} was built; written ones are searched exactly."
        return [Finding("stale_ann", "note", said, f"Build {name} anew.", stale)]
    if state == "absent":
        can = available()
        said = "Each query is compared with all vectors of this large store"
        said += "." if can else "; with usearch installed, a graph for approximate search can be built."
        return [Finding("absent_ann", "note", said, f"Build that graph, {name}." if can else None)]
    return []


def _orphans(store: Store) -> list[Finding]:
    found = []
    with store.opened.database.snapshot() as cursor:
        if store.version == 1:
            return []
        chunks = orphan_chunks(cursor, store)
        empty = cursor.execute(
            f"SELECT doc_id FROM documents ANTI JOIN {store.layout.table} USING (doc_id)"
        ).fetchall()
    if len(chunks):
        found.append(
            Finding(
                "orphan_chunks",
                "error",
                f"{len(chunks)} chunks belong to documents that are not in the store.",
                f"Delete {len(chunks)} chunks that have no document.",
                len(chunks),
            )
        )
    if empty:
        found.append(
            Finding(
                "empty_documents",
                "note",
                f"{len(empty)} documents have no chunk, so that no search finds them.",
                f"Delete {len(empty)} documents without chunks.",
                len(empty),
                tuple(row[0] for row in empty[:20]),
            )
        )
    return found


def _vectors(store: Store) -> list[Finding]:
    bad = bad_vectors(store)
    if not len(bad):
        return []
    return [
        Finding(
            "bad_vectors",
            "error",
            f"{len(bad)} chunks have a vector of zeros, or one with NaN or infinite numbers.",
            f"Embed {len(bad)} chunks again with the store's model.",
            len(bad),
            tuple(bad[:20].tolist()),
        )
    ]


def _dimensions(store: Store) -> list[Finding]:
    with store.opened.database.reading() as cursor:
        kind = cursor.execute(
            "SELECT data_type FROM duckdb_columns() WHERE table_name = ? AND column_name = 'embedding' "
            "AND schema_name = 'main'",
            ["chunks" if store.version == 1 else "embeddings"],
        ).fetchone()
        if kind and kind[0].endswith("[]"):
            sizes = cursor.execute(
                f"SELECT DISTINCT len(embedding) FROM {store.layout.table} WHERE embedding IS NOT NULL ORDER BY 1"
            ).fetchall()
            return [
                Finding(
                    "mixed_dimensions",
                    "error",
                    f"The column of vectors has no fixed length (found: {', '.join(str(s[0]) for s in sizes)}); vector "
                    "search needs one. Ingest the documents into a new store.",
                    None,
                    len(sizes),
                )
            ]
        if store.layout.kind == "raghilda":
            return []
        size = cursor.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE table_name = 'metadata' AND column_name = 'embedding_size'"
        ).fetchone()
        stated = (
            cursor.execute("SELECT embedding_size FROM metadata").fetchone() if size and size[0] else None
        )
    if stated and stated[0] is not None and int(stated[0]) != store.dim:
        return [
            Finding(
                "wrong_size",
                "warning",
                f"The metadata say {int(stated[0])} numbers a vector; the vectors have {store.dim}.",
                f"Write {store.dim} into the metadata.",
            )
        ]
    return []


def _ranges(store: Store) -> list[Finding]:
    found = []
    with store.opened.database.snapshot() as cursor:
        twice = ids_of(
            cursor, f"SELECT chunk_id FROM {store.layout.table} GROUP BY chunk_id HAVING count(*) > 1"
        )
        outside = (
            outside_ranges(cursor, store)
            if store.layout.kind == "ragnar" and store.version == 2
            else twice[:0]
        )
    if len(twice):
        found.append(
            Finding(
                "same_chunk_id",
                "error",
                f"{len(twice)} chunk ids are used more than once; update the documents concerned.",
                None,
                len(twice),
                tuple(twice[:20].tolist()),
            )
        )
    if len(outside):
        found.append(
            Finding(
                "bad_ranges",
                "error",
                f"{len(outside)} chunks have a range that their document does not have.",
                f"Delete these {len(outside)} chunks; update their documents to get them back.",
                len(outside),
                tuple(outside[:20].tolist()),
            )
        )
    return found


def _duplicates(store: Store) -> list[Finding]:
    if store.version == 1:
        return []
    with store.opened.database.reading() as cursor:
        found = copies(cursor, store)
    if not found:
        return []
    named = tuple(origin or doc_id for doc_id, origin in found[:20])
    can = store.layout.kind == "ragnar"
    return [
        Finding(
            "duplicate_documents",
            "warning",
            f"{len(found)} documents have the same text as an earlier one; their chunks take up the first places.",
            f"Delete {len(found)} documents and keep the first of each text." if can else None,
            len(found),
            named,
        )
    ]


def _bloat(store: Store) -> list[Finding]:
    """Deleted rows keep their room in the file: its size against what the rows in it need."""
    path = store.opened.database.path
    if path is None:
        return []
    own = " + (SELECT coalesce(sum(octet_length(term_ids)), 0) * 2 FROM ragnar_postings)"
    texts = "chunks" if store.version == 1 else "documents"
    with store.opened.database.reading() as cursor:
        row = cursor.execute(
            f"SELECT (SELECT coalesce(sum(strlen(text)), 0) FROM {texts}) + (SELECT count(*) * ? FROM {store.layout.table})"
            + (own if store.opened.has_own_tables else ""),
            [4 * store.dim + 64],
        ).fetchone()
    size, needed = Path(path).stat().st_size, int(row[0]) if row else 0
    if size < _BLOAT * needed + _SMALL_FILE:
        return []
    return [
        Finding(
            "bloat",
            "note",
            f"The file takes {size / 1e6:,.0f} MB for {needed / 1e6:,.0f} MB of documents, vectors and postings.",
            "Copy the store into a new file and put that in its place.",
            size - needed,
        )
    ]


def _model(store: Store, probe: bool | None) -> list[Finding]:
    if not store.dim:
        return []
    with store.opened.database.reading() as cursor:
        columns = {
            row[0]
            for row in cursor.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = 'metadata' AND schema_name = 'main'"
            ).fetchall()
        }
        row = (
            cursor.execute("SELECT embed_func FROM metadata").fetchone() if "embed_func" in columns else None
        )
    r_config = interop_r.read_embed(bytes(row[0])).config if row and row[0] else None
    own = store.embed_config
    if (
        r_config
        and own
        and (r_config.get("provider"), r_config.get("model")) != (own.get("provider"), own.get("model"))
    ):
        return [
            Finding(
                "two_models",
                "warning",
                f"For Python the store names the model {own.get('model')}, for R {r_config.get('model')}.",
                f"Write {own.get('model')} for R as well.",
            )
        ]
    try:
        embedder = store.embedder
    except EmbedError as error:
        return [Finding("unknown_model", "warning", f"Queries cannot be embedded: {error}", None)]
    free = embedder.config.get("provider") in ("builtin", "function", "files")
    if not (free if probe is None else probe):
        return []
    return _probe(store)


def _probe(store: Store) -> list[Finding]:
    """Three chunks embedded again: another model gives other vectors."""
    with store.opened.database.snapshot() as cursor:
        some = ids_of(
            cursor,
            f"SELECT chunk_id FROM {store.layout.table} WHERE embedding IS NOT NULL ORDER BY hash(chunk_id) LIMIT 3",
        )
        texts = texts_of(cursor, store.layout, some)
        listed = ", ".join(map(str, some.tolist()))
        if not listed:
            return []
        table = cursor.execute(
            f"SELECT embedding FROM {store.layout.table} WHERE chunk_id IN ({listed}) ORDER BY chunk_id"
        ).to_arrow_table()
    stored = np.concatenate([fixed_size_matrix(part, store.dim) for part in table["embedding"].chunks])
    try:
        fresh = store.embedder.embed(texts)
    except EmbedError as error:
        return [Finding("unknown_model", "warning", f"Queries cannot be embedded: {error}", None)]
    if fresh.shape == stored.shape:
        lengths = np.linalg.norm(stored, axis=1) * np.linalg.norm(fresh, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = (stored * fresh).sum(axis=1) / lengths
        # A blank text has no vector, and a repaired one may be on its way.
        cosines = cosines[np.isfinite(cosines)]
        if not len(cosines) or float(np.median(cosines)) >= _SAME_VECTOR:
            return []
        said = f"embedding some chunks again gives other vectors (cosine {float(np.median(cosines)):.2f})"
    else:
        said = f"the model gives {fresh.shape[1]} numbers a vector, the store has {stored.shape[1]}"
    return [
        Finding(
            "other_model",
            "error",
            f"The vectors are not of {store.embedder.label}: {said}.",
            f"Embed every chunk again with {store.embedder.label}.",
        )
    ]
