"""Chunks: ranges of a document, with the context of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from ragnar_core.chunking.breaks import IntArray
from ragnar_core.chunking.settings import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import ChunkError

COLUMNS = ("start", "end", "context", "text")


@dataclass(frozen=True, eq=False)
class Chunks:
    """The chunks of one document.

    Attributes:
        document: the document; `document.text[start:end]` is a chunk's text.
        settings: what made them; None for ranges that came from elsewhere.
        starts: int64 (n,), 0-based code points, ascending.
        ends: int64 (n,), exclusive.
        contexts: what is embedded and searched with each chunk and is not part of its text.
        extra: further columns, n values each.
    """

    document: MarkdownDocument
    settings: ChunkSettings | None
    starts: IntArray
    ends: IntArray
    contexts: Sequence[str]
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    @property
    def ranges(self) -> IntArray:
        """int64 (n, 2): start and end of each chunk."""
        return np.stack((self.starts, self.ends), axis=1)

    @cached_property
    def texts(self) -> list[str]:
        """The text of each chunk, exact slices of the document's."""
        text = self.document.text
        return [text[start:end] for start, end in self]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A DataFrame with `start`, `end` (int64), `context`, `text` (str) and the extra columns."""
        return pd.DataFrame(
            {
                "start": self.starts,
                "end": self.ends,
                "context": pd.Series(self.contexts, dtype="str"),
                "text": pd.Series(self.texts, dtype="str"),
                **self.extra,
            }
        )

    def with_columns(self, **columns: Sequence[Any] | str | float | None) -> Self:
        """The same chunks with further columns; a single value is repeated.

        Raises:
            ChunkError: a column has another length, or the name of one that is always there.
        """
        extra = dict(self.extra)
        for name, values in columns.items():
            if name in COLUMNS:
                raise ChunkError(f"Column {name!r} is computed from the document; choose another name.")
            listed = (
                [values] * len(self)
                if isinstance(values, str) or not isinstance(values, Iterable)
                else values
            )
            if len(listed) != len(self):
                raise ChunkError(f"Column {name!r} has {len(listed)} values for {len(self)} chunks.")
            extra[name] = listed
        return type(self)(self.document, self.settings, self.starts, self.ends, self.contexts, extra)

    @classmethod
    def from_table(
        cls, document: MarkdownDocument | str, table: pd.DataFrame, settings: ChunkSettings | None = None
    ) -> Self:
        """Chunks from one's own ranges: a DataFrame with `start` and `end`, and perhaps `context` and more.

        Raises:
            ChunkError: a column is missing, a range is outside the document, or `text` is not that slice.
        """
        document = document if isinstance(document, MarkdownDocument) else MarkdownDocument(document)
        missing = [name for name in ("start", "end") if name not in table.columns]
        if missing:
            raise ChunkError(
                f"The table of chunks lacks {' and '.join(missing)}: 0-based positions, end exclusive."
            )
        starts, ends = (table[name].to_numpy(np.int64) for name in ("start", "end"))
        bad = np.flatnonzero((starts < 0) | (ends > len(document)) | (starts >= ends))
        if len(bad):
            i = int(bad[0])
            raise ChunkError(
                f"Chunk {i} has the range {starts[i]} to {ends[i]}, but the document has {len(document)} "
                "characters; start must be less than end, and both lie in the document."
            )
        contexts = table["context"].fillna("").tolist() if "context" in table else [""] * len(table)
        extra = {name: table[name].tolist() for name in table.columns if name not in COLUMNS}
        chunks = cls(document, settings, starts, ends, contexts, extra)
        if "text" in table and chunks.texts != table["text"].tolist():
            raise ChunkError(
                "The text column differs from the slices document.text[start:end]; leave it out."
            )
        return chunks
