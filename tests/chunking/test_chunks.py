"""Chunks: the table, further columns, and ranges of one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragnar_core.chunking import Chunks, ChunkSettings, markdown_chunk
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.errors import ChunkError, DocumentError

TEXT = "# Ä\n\nOne.\n\n## B\n\nTwo.\n"


def test_the_table() -> None:
    chunks = markdown_chunk(TEXT, target_size=12, target_overlap=0)
    assert chunks.table.to_dict("list") == {
        "start": [0, 11],
        "end": [11, 22],
        "context": ["", "# Ä"],
        "text": ["# Ä\n\nOne.\n\n", "## B\n\nTwo.\n"],
    }
    assert chunks.table.dtypes.astype(str).to_dict() == {
        "start": "int64",
        "end": "int64",
        "context": "str",
        "text": "str",
    }
    assert chunks.ranges.tolist() == [[0, 11], [11, 22]]
    assert list(chunks) == [(0, 11), (11, 22)]
    assert len(chunks) == 2
    assert chunks.settings == ChunkSettings(target_size=12, target_overlap=0)


def test_an_empty_document_has_an_empty_table_with_all_columns() -> None:
    chunks = markdown_chunk("")
    assert len(chunks) == 0
    assert list(chunks.table.columns) == ["start", "end", "context", "text"]
    assert chunks.table["start"].dtype == np.int64


def test_without_context_the_column_is_empty() -> None:
    chunks = markdown_chunk(TEXT, target_size=12, target_overlap=0, context=False)
    assert chunks.table["context"].tolist() == ["", ""]


def test_a_document_keeps_its_origin() -> None:
    document = MarkdownDocument(TEXT, origin="a.md")
    assert markdown_chunk(document).document is document


def test_further_columns() -> None:
    chunks = markdown_chunk(TEXT, target_size=12, target_overlap=0).with_columns(author="Ann", page=[1, 2])
    assert chunks.table[["author", "page"]].values.tolist() == [["Ann", 1], ["Ann", 2]]
    with pytest.raises(ChunkError, match="'page' has 3 values for 2 chunks"):
        chunks.with_columns(page=[1, 2, 3])
    with pytest.raises(ChunkError, match="'text' is computed from the document"):
        chunks.with_columns(text=["a", "b"])


def test_ranges_of_ones_own() -> None:
    table = pd.DataFrame({"start": [0, 5], "end": [5, 9], "context": [None, "# Ä"], "page": [1, 2]})
    chunks = Chunks.from_table(TEXT, table)
    assert chunks.table.to_dict("list") == {
        "start": [0, 5],
        "end": [5, 9],
        "context": ["", "# Ä"],
        "text": ["# Ä\n\n", "One."],
        "page": [1, 2],
    }
    assert chunks.settings is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"start": [0]}), "lacks end"),
        (pd.DataFrame({"start": [0, 4], "end": [4, 99]}), "Chunk 1 has the range 4 to 99.*22 characters"),
        (pd.DataFrame({"start": [4], "end": [4]}), "start must be less than end"),
        (pd.DataFrame({"start": [0], "end": [4], "text": ["x"]}), "differs from the slices"),
    ],
)
def test_ranges_that_are_no_chunks(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ChunkError, match=message):
        Chunks.from_table(TEXT, table)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(DocumentError, match="half a surrogate pair"):
        markdown_chunk("a\udc00b")
