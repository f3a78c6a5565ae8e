"""Stores that raghilda made are read as they are."""

from __future__ import annotations

import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import EmbedError, FilterError, StoreError
from ragnar_core.retrieval import count_matching, retrieve_bm25
from ragnar_core.store import Store

duckdb_extensions = pytest.importorskip(
    "duckdb_extensions", reason="raghilda needs the wheels of DuckDB's extensions"
)
raghilda_store = pytest.importorskip("raghilda.store", reason="raghilda is not installed")

TEXT = (
    "# Title\n\n" + "Some text here, wörld. " * 30 + "\n\n## Zebras\n\n" + "More words follow. " * 20 + "\n"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    from raghilda.chunker import MarkdownChunker
    from raghilda.document import MarkdownDocument
    from raghilda.embedding import EmbeddingProvider

    class Lengths(EmbeddingProvider):
        def embed(self, x, input_type=None):
            return [[float(len(text)), 1.0, 2.0, 3.0] for text in x]

        def get_config(self):
            return {"type": "Lengths", "model": "len"}

        @classmethod
        def from_config(cls, config):
            return cls()

    for name in ("fts", "vss"):
        duckdb_extensions.import_extension(name)
    found = tmp_path_factory.mktemp("raghilda") / "r.duckdb"
    store = raghilda_store.DuckDBStore.create(
        str(found), embed=Lengths(), name="hilda", title="Hilda's", attributes={"tenant": str, "n": int}
    )
    for number, text in enumerate((TEXT, "# Other\n\nA zebra.\n")):
        made = MarkdownDocument(content=text, origin=f"d{number}.md", attributes={"tenant": "t", "n": number})
        store.upsert(MarkdownChunker(chunk_size=200).chunk(made))
    store.con.close()
    return found


def test_everything_is_there(path):
    with Store.connect(path) as store:
        assert (store.name, store.title, store.version, store.dim) == ("hilda", "Hilda's", 2, 4)
        assert store.extra_cols == {"tenant": "VARCHAR", "n": "INTEGER"}
        listed = store.documents()
        assert listed[["doc_id", "origin", "characters"]].values.tolist() == [
            [1, "d0.md", len(TEXT)],
            [2, "d1.md", 18],
        ]
        table = store.chunks()
        assert len(table) == listed["chunks"].sum() > 3
        text = store.document(1).text
        assert text == TEXT
        mine = store.chunks(1)
        assert [text[a:b] for a, b in zip(mine["start"], mine["end"], strict=True)] == mine["text"].tolist()
        assert mine["start"].iloc[0] == 0
        assert mine["tenant"].tolist() == ["t"] * len(mine)
        assert store.document("d1.md").text == "# Other\n\nA zebra.\n"


def test_both_searches_have_their_tables(path):
    with Store.connect(path) as store:
        vectors, postings = store.vectors(), store.postings()
        assert vectors.matrix.shape == (store.counts().chunks, 4)
        zebra = postings.terms["zebra"]
        ids = postings.chunk_ids[postings.rows[postings.indptr[zebra] : postings.indptr[zebra + 1]]]
        assert all("ebra" in text for text in store.fetch(ids)["text"] + store.fetch(ids)["context"])
        assert int(vectors.chunk_ids[-1]) in ids
        state = store.index_state()
        assert (state.bm25, state.vss) == ("absent", "fresh")
        assert all(finding.repair is None for finding in store.check())


def test_reading_only(path):
    with pytest.raises(StoreError, match="a store of raghilda, which can be read here but not changed"):
        Store.connect(path, read_only=False)
    with Store.connect(path) as store, pytest.raises(EmbedError, match=r"it says: Lengths\(model='len'\)"):
        _ = store.embedder
    model = FunctionEmbedder(lambda texts: [[1.0] * 4 for _ in texts], 4, "mine")
    with Store.connect(path, embed=model) as store:
        assert store.embedder is model


def test_the_same_sql_as_for_other_stores(path):
    sql = "SELECT d.origin, count(*) FROM documents d JOIN embeddings e ON d.doc_id = e.doc_id GROUP BY ALL ORDER BY 1"
    with Store.connect(path) as store, store.opened.database.reading() as cursor:
        rows = cursor.execute(sql).fetchall()
        assert [origin for origin, _ in rows] == ["d0.md", "d1.md"]
        assert sum(n for _, n in rows) == store.counts().chunks


def test_filters_name_documents_by_number(path):
    with Store.connect(path) as store:
        table = store.chunks()
        first = int((table["doc_id"] == 1).sum())
        for filter, expected in [
            ({"doc_id": 1}, first),
            ("doc_id == 2", len(table) - first),
            ("doc_id in [2, 3]", len(table) - first),
            ("doc_id > 0 and start == 0", 2),
            ("doc_id == 2 and tenant == 't' and text contains 'zebra'", 1),
            ({"origin": "d1.md"}, len(table) - first),
        ]:
            assert count_matching(store, filter) == expected, filter
        assert retrieve_bm25(store, "zebra", filter="doc_id == 2")["doc_id"].tolist() == [2]
        with pytest.raises(FilterError, match="doc_id"):
            count_matching(store, {"doc_id": "d1.md"})
