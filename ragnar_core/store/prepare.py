"""What people hand to a store becomes documents that can be written: text, ranges, vectors, checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragnar_core.chunking import Chunks, ChunkSettings
from ragnar_core.documents.document import MarkdownDocument, ReadReport
from ragnar_core.errors import StoreError
from ragnar_core.store.cache import Floats
from ragnar_core.store.postings import Ints
from ragnar_core.store.text import searched_text

if TYPE_CHECKING:
    from ragnar_core.store.store import Store

Input = Chunks | pd.DataFrame | Sequence[Chunks]
MOST_GAP = 2
Embed = Callable[[list[str]], Floats]


@dataclass
class Prepared:
    """One document on its way into the file. `starts` and `ends` (int64) are Python's ranges of `texts`; `extra` holds
    those of the store's extra columns that were given; `vectors` is float32 `(n, dim)` with NaN rows for blank texts, or
    None before embedding and in stores without. `hash` is there for version 1 stores."""

    origin: str | None
    text: str
    starts: Ints
    ends: Ints
    contexts: list[str]
    texts: list[str]
    searched: list[str]
    extra: dict[str, list[Any]]
    hash: str = ""
    vectors: Floats | None = None
    settings: ChunkSettings | None = None
    report: ReadReport | None = None
    keys: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.searched)


def prepare(store: Store, given: Input, vectors: Any = None) -> list[Prepared]:
    """Documents from chunks or a data frame; with vectors where they were given. Embeds nothing."""
    if isinstance(given, str):
        raise StoreError(
            "insert takes chunks (of markdown_chunk) or a data frame with a column text, not a string"
        )
    if isinstance(given, pd.DataFrame):
        documents = _from_frame(store, given, vectors)
    elif isinstance(given, MarkdownDocument):
        raise StoreError(
            "a document has to be cut first: pass markdown_chunk(document), or use ingest([document])"
        )
    elif _is_chunks(given):
        documents = [_from_chunks(store, given, vectors)]
    else:
        if not isinstance(given, Iterable):
            raise StoreError(
                f"chunks (of markdown_chunk) or a data frame are needed, not {type(given).__name__}"
            )
        many = list(given)
        each = [None] * len(many) if vectors is None else list(vectors)
        if not all(_is_chunks(chunks) for chunks in many):
            raise StoreError("insert takes chunks, a list of chunks, or a data frame")
        if len(each) != len(many):
            raise StoreError(
                f"vectors of a list of chunks are a list as well, an array a document; got {len(each)} for {len(many)}"
            )
        documents = [_from_chunks(store, *pair) for pair in zip(many, each, strict=True)]
    return documents


def embed_missing(
    store: Store, documents: Iterable[Prepared], known: Mapping[bytes, Floats] | None = None
) -> int:
    """Gives vectors to documents that have none, in one call over all of them; equal texts are embedded once.

    `known` are vectors by `text_key`. Returns the number of texts embedded.
    """
    waiting = [document for document in documents if document.vectors is None]
    if not store.dim or not any(len(document) for document in waiting):
        for document in waiting:
            document.vectors = (
                np.zeros((len(document), store.dim), np.float32) if not store.dim else document.vectors
            )
            if document.vectors is None:
                document.vectors = np.zeros((0, store.dim), np.float32)
        return 0
    have: dict[bytes, Floats] = dict(known or {})
    wanted: dict[bytes, str] = {}
    for document in waiting:
        for key, text in zip(keys_of(document), document.searched, strict=True):
            if key not in have and text.strip():
                wanted.setdefault(key, text)
    if wanted:
        found = check_vectors(
            store.embedder.embed(list(wanted.values())), len(wanted), store.dim, store.embedder.label
        )
        have.update(zip(wanted, found, strict=True))
    for document in waiting:
        give_vectors(document, have, store.dim)
    return len(wanted)


def give_vectors(document: Prepared, have: Mapping[bytes, Floats], dim: int) -> None:
    """Fills `document.vectors` from vectors by key; blank texts get NaN."""
    vectors = np.full((len(document), dim), np.nan, np.float32)
    for row, key in enumerate(keys_of(document)):
        if key in have:
            vectors[row] = have[key]
    document.vectors = vectors


def keys_of(document: Prepared) -> list[bytes]:
    if not document.keys and document.searched:
        document.keys = [text_key(text) for text in document.searched]
    return document.keys


def text_key(text: str) -> bytes:
    """16 bytes that stand for a searched text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def check_vectors(vectors: Any, n: int, dim: int, source: str) -> Floats:
    """float32 `(n, dim)`, or StoreError: a vector that is not finite or all zero would match anything or nothing.
    Rows that are NaN throughout stand for blank texts."""
    try:
        checked = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise StoreError(f"the vectors of {source} are no table of numbers: {error}") from error
    if checked.ndim != 2 or checked.shape[0] != n:
        raise StoreError(
            f"{source} gave vectors of shape {checked.shape} for {n} texts; expected ({n}, {dim})"
        )
    if checked.shape[1] != dim:
        raise StoreError(
            f"{source} gives vectors of {checked.shape[1]} numbers, this store holds vectors of {dim}; use the model "
            "that built the store, or embed everything again with reembed"
        )
    blank = np.isnan(checked).all(axis=1) if dim else np.zeros(n, bool)
    bad = ~np.isfinite(checked).all(axis=1) & ~blank
    if bad.any():
        raise StoreError(
            f"{source} gave a vector with NaN or infinite numbers (text {int(np.argmax(bad)) + 1} of {n})"
        )
    zero = ~checked.any(axis=1) & ~blank if dim else blank
    if zero.any():
        raise StoreError(
            f"{source} gave a vector of zeros (text {int(np.argmax(zero)) + 1} of {n}), which has no direction"
        )
    return checked


def _is_chunks(given: Any) -> bool:
    return isinstance(given, Chunks) or (hasattr(given, "document") and hasattr(given, "table"))


def _from_chunks(store: Store, chunks: Any, vectors: Any) -> Prepared:
    document: MarkdownDocument = chunks.document
    # A table that was made may have been changed by hand, and another library's chunks may be anything.
    if type(chunks) is Chunks and "table" not in vars(chunks):
        columns: Mapping[str, Any] = chunks.extra
        starts, ends = np.asarray(chunks.starts, np.int64), np.asarray(chunks.ends, np.int64)
        texts, contexts = chunks.texts, _strings(chunks.contexts)
    else:
        columns = table = chunks.table
        starts, ends = table["start"].to_numpy(dtype=np.int64), table["end"].to_numpy(dtype=np.int64)
        texts = table["text"].tolist()
        contexts = _strings(table["context"].tolist() if "context" in table else [""] * len(texts))
        if store.version == 2:
            _check_slices(document, texts, starts, ends)
    if len(texts) and (
        int(starts.min()) < 0 or int(ends.max()) > len(document.text) or (ends < starts).any()
    ):
        raise StoreError(
            f"a chunk of {document.origin or 'a document'} has a range that lies outside its {len(document.text)} characters"
        )
    if store.version == 2 and len({*zip(starts.tolist(), ends.tolist(), strict=True)}) < len(texts):
        raise StoreError(
            f"two chunks of {document.origin or 'a document'} have the same range; drop one of them"
        )
    if vectors is None and "embedding" in columns:
        vectors = _stacked(columns["embedding"])
    return Prepared(
        origin=document.origin,
        text=document.text,
        starts=starts,
        ends=ends,
        contexts=contexts,
        texts=texts,
        searched=_searched(store, contexts, texts),
        extra=_extra(store, columns, len(texts)),
        hash=document.hash if store.version == 1 else "",
        vectors=_given(store, vectors, texts),
        settings=getattr(chunks, "settings", None),
        report=document.report,
    )


def _check_slices(document: MarkdownDocument, texts: Sequence[str], starts: Ints, ends: Ints) -> None:
    for text, start, end in zip(texts, starts.tolist(), ends.tolist(), strict=True):
        if document.text[start:end] != text:
            raise StoreError(
                f"the text of the chunk at {start} of {document.origin or 'a document'} is not the document's there; "
                "a version 2 store keeps ranges (use version=1 to store changed text)"
            )


def _from_frame(store: Store, frame: pd.DataFrame, vectors: Any) -> list[Prepared]:
    """A document an origin; rows without an origin are documents of their own."""
    if "text" not in frame:
        raise StoreError(
            f"a data frame of chunks needs a column text (it has {', '.join(map(str, frame.columns))})"
        )
    frame = frame.reset_index(drop=True)
    missing = frame["text"].isna()
    if missing.any():
        raise StoreError(f"text may not be missing (row {int(missing.to_numpy().argmax()) + 1})")
    if vectors is None and "embedding" in frame:
        vectors = _stacked(frame["embedding"])
    vectors = _given(store, vectors, frame["text"].astype(str).tolist())
    origins = frame["origin"] if "origin" in frame else pd.Series([None] * len(frame), dtype=object)
    groups: dict[Any, list[int]] = {}
    for row, origin in enumerate(origins):
        known = isinstance(origin, str)
        groups.setdefault(origin if known else (row,), []).append(row)
    documents = []
    for origin, rows in groups.items():
        table = frame.iloc[rows]
        texts = [str(text) for text in table["text"]]
        contexts = _strings(table["context"].tolist() if "context" in table else [""] * len(texts))
        whole, starts = _laid_out(table, texts, origin if isinstance(origin, str) else None)
        digest = (
            table["hash"].iloc[0]
            if "hash" in table
            else hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
        )
        documents.append(
            Prepared(
                origin=origin if isinstance(origin, str) else None,
                text=whole,
                starts=starts,
                ends=starts + np.array([len(text) for text in texts], np.int64),
                contexts=contexts,
                texts=texts,
                searched=_searched(store, contexts, texts),
                extra=_extra(store, table, len(texts)),
                hash=str(digest),
                vectors=None if vectors is None else vectors[rows],
            )
        )
    return documents


def _laid_out(table: pd.DataFrame, texts: list[str], origin: str | None) -> tuple[str, Ints]:
    """(the document, where each text starts in it). By the columns start and end, where rows have them: what chunks share is
    there once, and a gap of more than two characters becomes an empty line. Else one behind the other."""
    ranged = {"start", "end"} <= set(table.columns) and not table[["start", "end"]].isna().to_numpy().any()
    if origin is None or not ranged:
        return "\n\n".join(texts), np.cumsum([0, *(len(text) + 2 for text in texts[:-1])], dtype=np.int64)
    given = table["start"].to_numpy(dtype=np.int64)
    ends = table["end"].to_numpy(dtype=np.int64)
    starts, whole, left_out = given.copy(), "", 0
    for row in np.lexsort((ends, given)).tolist():
        gap = int(given[row]) - left_out - len(whole)
        left_out += max(gap - (MOST_GAP if whole else 0), 0)
        start = starts[row] = int(given[row]) - left_out
        text, shared = texts[row], max(len(whole) - start, 0)
        fits = given[row] >= 0 and ends[row] - given[row] == len(text)
        if not fits or not text.startswith(whole[start : start + len(text)]):
            raise StoreError(
                f"start and end of row {row + 1} of {origin} do not fit its text and the chunks beside it; drop both "
                "columns to store the texts one behind the other"
            )
        whole += "\n" * (start - len(whole)) + text[shared:]
    return whole, starts


def _extra(store: Store, columns: Mapping[str, Any] | pd.DataFrame, n: int) -> dict[str, list[Any]]:
    extra = {name: pd.Series(columns[name]).tolist() for name in store.extra_cols if name in columns}
    for name, values in extra.items():
        if len(values) != n:
            raise StoreError(f"the column {name!r} has {len(values)} values for {n} chunks")
    return extra


def _searched(store: Store, contexts: Sequence[str], texts: Sequence[str]) -> list[str]:
    if store.version == 1:
        return list(texts)
    return [searched_text(context, text) for context, text in zip(contexts, texts, strict=True)]


def _strings(contexts: Sequence[Any]) -> list[str]:
    return [context if isinstance(context, str) else "" for context in contexts]


def _given(store: Store, vectors: Any, texts: Sequence[str]) -> Floats | None:
    if vectors is None:
        return None
    if not store.dim:
        raise StoreError(
            "this store has no vectors (it was made without a model); create one with embedding_size="
        )
    checked = check_vectors(vectors, len(texts), store.dim, "the column embedding" if texts else "nothing")
    for row in np.flatnonzero(np.isnan(checked[:, 0])).tolist():
        if texts[row].strip():
            raise StoreError(
                f"text {row + 1} of {len(texts)} comes with a vector that is all NaN; only blank texts have none. Leave "
                "vectors out, and the store's model makes them"
            )
    return checked


def _stacked(column: Any) -> Any:
    return (
        np.stack([np.asarray(row, np.float32) for row in column])
        if len(column)
        else np.zeros((0, 0), np.float32)
    )
