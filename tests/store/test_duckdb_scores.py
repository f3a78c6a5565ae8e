"""With DuckDB's options our postings give DuckDB's scores."""

from __future__ import annotations

import importlib.util

import duckdb
import numpy as np
import pandas as pd
import pytest

from ragnar_core.store import AnalyzerOptions, Store
from ragnar_core.store.extensions import load_extension

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("duckdb_extension_fts") is None,
    reason="the wheel duckdb-extension-fts is not installed",
)

TEXTS = [
    "The lantern hung in the rigging, running before the wind; considered lost in 2024.",
    "Boats came in at dusk. It's nothing new: node.js, C++ and read_as_markdown.",
    "Über die Straße: naïve café résumé, ünïcode wörds!",
    "",
    "the of and",
    "日本語の文章です。検索 Привет мир",
    "tab\tseparated\nlines\r\nand\x0bmore\x0cspaces boats boats boats",
    'state-of-the-art `code` "quoted" (parenthesised) [brackets] {braces} a|b a/b a\\b x=y 50% #tag @at',
    "İstanbul ΣΊΣΥΦΟΣ ﬁne ǅ ß ẞ",
    "consider considering considered considerations values value",
]
QUERIES = [
    "boats", "lantern wind", "considering", "node.js", "café strasse Straße", "résumé naive", "日本語の文章です", "мир",
    "the", "it's", "value", "boats boats", "state of the art", "2024", "a|b", "ΣΊΣΥΦΟΣ", "ﬁne", "", "istanbul", "ẞ",
]  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    frame = pd.DataFrame({"text": TEXTS, "context": ["# Ships and boats"] * 3 + [None] * 7})
    path = tmp_path_factory.mktemp("fts") / "s.duckdb"
    with Store.create(path, analyzer=AnalyzerOptions.duckdb()) as store:
        store.insert(frame)
        store.build_index("fts", for_r=True)
    with Store.connect(path) as store:
        postings, analyzer = store.postings(), store.analyzer
    connection = duckdb.connect(str(path), read_only=True)
    load_extension(connection, "fts")
    yield postings, analyzer, connection
    connection.close()


def scores(postings, terms, k=1.2, b=0.75):
    """Okapi BM25 as DuckDB writes it, term by term."""
    n, total = len(postings.chunk_ids), {}
    for term in set(terms):
        i = postings.terms.get(term)
        if i is None:
            continue
        a, z = postings.indptr[i], postings.indptr[i + 1]
        rows, tf = postings.rows[a:z], postings.tf[a:z].astype(float)
        idf = np.log10((n - len(rows) + 0.5) / (len(rows) + 0.5) + 1)
        length = postings.lengths[rows] / postings.average_length
        for row, part in zip(rows, idf * tf * (k + 1) / (tf + k * (1 - b + b * length)), strict=True):
            chunk = int(postings.chunk_ids[row])
            total[chunk] = total.get(chunk, 0.0) + part
    return total


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_match_bm25s(both, query):
    postings, analyzer, connection = both
    rows = connection.execute(
        "SELECT chunk_id, score FROM (SELECT chunk_id, fts_main_chunks.match_bm25(chunk_id, ?) AS score FROM embeddings) "
        "WHERE score IS NOT NULL",
        [query],
    ).fetchall()
    assert scores(postings, analyzer.tokens(query)) == pytest.approx(dict(rows), abs=1e-9)


def test_every_term_and_length_is_duckdbs(both):
    postings, _, connection = both
    lengths = connection.execute("SELECT len FROM fts_main_chunks.docs ORDER BY name").fetchall()
    assert postings.lengths.tolist() == [row[0] for row in lengths]
    theirs = {row[0] for row in connection.execute("SELECT term FROM fts_main_chunks.dict").fetchall()}
    assert set(postings.terms) == theirs
