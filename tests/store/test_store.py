"""Create, connect, insert, look into."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from ragnar_core.chunking import Chunks, ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import EmbedError, StoreError
from ragnar_core.store import Store

TEXT = "# Ships\n\nThe lantern hung in the rigging.\n\n## Harbours\n\nBoats came in at dusk, one by one, slowly.\n"


def test_a_new_store_has_ragnars_tables_column_for_column(tmp_path, embed):
    path = tmp_path / "s.duckdb"
    Store.create(path, embed, extra_cols={"area": str}, name="ships", title="Ships").close()
    with duckdb.connect(str(path)) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' "
            "AND NOT internal AND table_name NOT LIKE 'ragnar%' ORDER BY table_name, column_index"
        ).fetchall()
        by_table = {}
        for table, column, kind in columns:
            by_table.setdefault(table, []).append((column, kind))
        assert by_table["documents"] == [("doc_id", "INTEGER"), ("origin", "VARCHAR"), ("text", "VARCHAR")]
        assert by_table["embeddings"] == [
            ("doc_id", "INTEGER"),
            ("chunk_id", "INTEGER"),
            ("start", "INTEGER"),
            ("end", "INTEGER"),
            ("context", "VARCHAR"),
            ("area", "VARCHAR"),
            ("embedding", "FLOAT[8]"),
        ]
        assert [column for column, _ in by_table["chunks"]] == [
            "origin", "doc_id", "chunk_id", "start", "end", "context", "area", "embedding", "text",
        ]  # fmt: skip
        assert by_table["metadata"][:4] == [
            ("embedding_size", "INTEGER"),
            ("embed_func", "BLOB"),
            ("name", "VARCHAR"),
            ("title", "VARCHAR"),
        ]
        assert connection.execute("SELECT embedding_size, name, title FROM metadata").fetchone() == (
            8,
            "ships",
            "Ships",
        )
        assert connection.execute(
            "SELECT count(*) FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY'"
        ).fetchone() == (0,)
        tags = connection.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 's'").fetchone()
        assert tags[0]["storage_version"].startswith("v1.0.0")


def test_ranges_are_pythons_outside_and_ragnars_inside(store, chunks_of):
    chunks = chunks_of(TEXT, "ships.md", size=40)
    store.insert(chunks)
    table = store.chunks()
    assert table.columns.tolist() == ["chunk_id", "doc_id", "origin", "start", "end", "context", "text"]
    assert table["text"].tolist() == chunks.table["text"].tolist()
    text = store.document("ships.md").text
    assert [text[a:b] for a, b in zip(table["start"], table["end"], strict=True)] == table["text"].tolist()
    with store.opened.database.reading() as cursor:
        rows = cursor.execute('SELECT start, "end", text FROM chunks ORDER BY chunk_id').fetchall()
    assert [start for start, _, _ in rows] == [start + 1 for start in table["start"]]
    assert [end for _, end, _ in rows] == table["end"].tolist()
    assert [text for _, _, text in rows] == table["text"].tolist()


def test_the_context_and_the_text_are_embedded_as_ragnar_does(store, chunks_of, model):
    store.insert(chunks_of(TEXT, "ships.md", size=40))
    table = store.chunks()
    expected = [f"{c}\n{t}" if c else t for c, t in zip(table["context"], table["text"], strict=True)]
    assert "# Ships\n## Harbours\n" in "".join(expected)
    assert model.texts == expected
    assert np.allclose(store.vectors().matrix, [model.vector(text) for text in expected], atol=1e-6)


def test_fetch_keeps_the_order_asked_for_and_leaves_out_what_is_gone(store, chunks_of):
    store.insert(chunks_of(TEXT, "ships.md", size=40))
    assert store.fetch([3, 1, 99]).chunk_id.tolist() == [3, 1]
    assert store.fetch([]).columns.tolist() == store.chunks().columns.tolist()
    assert len(store.fetch([])) == 0


def test_characters_outside_the_basic_plane(store, chunks_of):
    text = "# 𝔘nicode 👩‍🚀\n\nÀ la carte, naïve, 日本語の文章。 𝒳 marks the spot. 👍🏽 And so on it goes.\n"
    chunks = chunks_of(text, "u.md", size=20)
    store.insert(chunks)
    assert store.chunks()["text"].tolist() == chunks.table["text"].tolist()


def test_documents_without_origin_are_kept_apart(store):
    store.insert(pd.DataFrame({"text": ["one", "two", "one"]}))
    assert store.documents()["origin"].tolist() == [None, None, None]
    assert store.documents()["doc_id"].tolist() == [1, 2, 3]
    assert store.chunks()["text"].tolist() == ["one", "two", "one"]
    assert store.document(2) == MarkdownDocument("two")


def test_rows_of_one_origin_are_one_document(store):
    store.insert(pd.DataFrame({"text": ["one", "two", "three"], "origin": ["a", "b", "a"]}))
    assert store.document("a").text == "one\n\nthree"
    assert store.chunks(store.documents()["doc_id"][0])["text"].tolist() == ["one", "three"]
    assert store.documents()["chunks"].tolist() == [2, 1]


def test_an_origin_goes_in_once(store, chunks_of):
    store.insert(chunks_of(TEXT, "ships.md"))
    with pytest.raises(StoreError, match=r"ships\.md is in the store already; use update"):
        store.insert(chunks_of("Other text.", "ships.md"))
    assert store.counts().documents == 1
    assert store.document("ships.md").text == MarkdownDocument(TEXT).text


def test_vectors_that_are_handed_in_are_kept_bit_for_bit(tmp_path, chunks_of):
    with Store.create(tmp_path / "s.duckdb", embedding_size=3) as store:
        chunks = chunks_of(TEXT, "a", size=40)
        vectors = np.random.default_rng(1).normal(size=(len(chunks), 3)).astype(np.float32)
        store.insert(chunks, vectors=vectors)
        store.insert(pd.DataFrame({"text": ["x", "y"], "embedding": [[1.0, 2.0, 3.0], [0.1, 0.2, 0.3]]}))
        assert np.array_equal(store.vectors().matrix[:-2], vectors)
        assert np.array_equal(store.vectors().matrix[-2:], np.array([[1, 2, 3], [0.1, 0.2, 0.3]], np.float32))
        assert store.vectors().unit is False
        with pytest.raises(EmbedError, match="does not say which model built it"):
            store.insert(pd.DataFrame({"text": ["z"]}))


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        ([0.0, 0.0, 0.0], "a vector of zeros"),
        ([1.0, np.inf, 0.0], "NaN or infinite"),
        ([1.0, np.nan, 0.0], "NaN or infinite"),
        ([1.0, 2.0], "vectors of 2 numbers, this store holds vectors of 3"),
    ],
)
def test_vectors_that_cannot_be_compared_are_refused(tmp_path, vector, said):
    with Store.create(tmp_path / "s.duckdb", embedding_size=3) as store:
        with pytest.raises(StoreError, match=said):
            store.insert(pd.DataFrame({"text": ["x"]}), vectors=[vector])
        assert store.counts().documents == 0


def test_a_blank_text_has_no_vector(store, model):
    store.insert(pd.DataFrame({"text": ["one", "  \n"]}))
    assert model.texts == ["one"]
    assert store.vectors().norms.tolist() == pytest.approx([1.0, 0.0])
    assert store.vectors().chunk_ids.tolist() == store.postings().chunk_ids.tolist() == [1, 2]


def test_a_store_without_vectors(tmp_path, chunks_of):
    with Store.create(tmp_path / "s.duckdb") as store:
        store.insert(chunks_of(TEXT, "a"))
        assert store.dim == 0
        assert store.vectors().matrix.shape == (store.counts().chunks, 0)
        assert "lantern" in store.postings().terms
        with pytest.raises(EmbedError, match="BM25 only"):
            _ = store.embedder


def test_in_memory(embed, chunks_of):
    with Store.create(":memory:", embed) as store:
        store.insert(chunks_of(TEXT, "a"))
        assert store.counts().chunks == len(store.chunks()) > 0
        assert store.counts().bytes == 0
    with pytest.raises(StoreError, match="store in memory cannot be connected to"):
        Store.connect(":memory:")


EXTRA = {
    "word": (str, "héllo"),
    "count": (int, 2**40),
    "small": ("INTEGER", -7),
    "share": (float, 0.1),
    "yes": (bool, True),
    "day": (dt.date, dt.date(2024, 2, 29)),
    "moment": (dt.datetime, dt.datetime(2024, 2, 29, 12, 30, 15, 123456)),
    "tags": (list[str], ["a", "b"]),
    "numbers": ("BIGINT[]", [1, 2]),
}


@pytest.mark.parametrize("name", EXTRA)
def test_extra_columns_keep_type_and_value(tmp_path, embed, name):
    kind, value = EXTRA[name]
    with Store.create(tmp_path / "s.duckdb", embed, extra_cols={name: kind}) as store:
        store.insert(pd.DataFrame({"text": ["x", "y"], name: pd.Series([value, None], dtype=object)}))
    with Store.connect(tmp_path / "s.duckdb") as store:
        found = store.chunks()[name].tolist()
        assert (list(found[0]) if isinstance(value, list) else found[0]) == value
        assert found[1] is None or pd.isna(found[1])


@pytest.mark.parametrize(
    ("named", "stored"),
    [
        ("INTEGER", "INTEGER"), ("INT", "INTEGER"), ("int", "BIGINT"), ("BIGINT", "BIGINT"), ("smallint", "SMALLINT"),
        ("DOUBLE", "DOUBLE"), ("FLOAT", "FLOAT"), ("float", "DOUBLE"), ("DECIMAL(9,2)", "DECIMAL(9,2)"),
        ("VARCHAR", "VARCHAR"), ("TEXT", "VARCHAR"), ("str", "VARCHAR"), (" varchar ", "VARCHAR"),
        ("BOOLEAN", "BOOLEAN"), ("BOOL", "BOOLEAN"), ("Bool", "BOOLEAN"), ("bool", "BOOLEAN"),
        ("DATE", "DATE"), ("Date", "DATE"), ("date", "DATE"), ("TIMESTAMP", "TIMESTAMP"), ("DATETIME", "TIMESTAMP"),
        ("datetime", "TIMESTAMP"), ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), ("BLOB", "BLOB"),
        ("VARCHAR[]", "VARCHAR[]"), ("TEXT[]", "VARCHAR[]"), ("DATE[]", "DATE[]"), ("BIGINT[][]", "BIGINT[][]"),
    ],
)  # fmt: skip
def test_types_by_their_names(named, stored):
    with Store.create(":memory:", extra_cols={"x": named}) as store:
        assert store.extra_cols == {"x": stored}


@pytest.mark.parametrize(
    "kind",
    ["FOO", "", "[]", "VARCHAR(10", "DECIMAL", "DECIMAL(99,2)", "DECIMAL(2,9)", "DECIMAL(9,2) DEFAULT 1", "INTEGER, y INT",
     None, 3, list, dict],
)  # fmt: skip
def test_a_type_that_is_not_known_is_answered_with_those_that_are(kind):
    known = r"'x' is not known; use str, int, .* VARCHAR, TEXT, .* BIGINT, .* DATE, .* as VARCHAR\[\]"
    with pytest.raises(StoreError, match=known):
        Store.create(":memory:", extra_cols={"x": kind})


@pytest.mark.parametrize("given", [["x"], "x", 3, {3: int}])
def test_extra_columns_are_names_with_types(given):
    with pytest.raises(StoreError, match=r"extra_cols must be a dict|name of an extra column must be a text"):
        Store.create(":memory:", extra_cols=given)


def test_extra_columns_from_a_data_frame(tmp_path, embed):
    like = pd.DataFrame(
        {
            "text": ["x"],
            "n": pd.Series([1], dtype="int32"),
            "when": pd.to_datetime(["2024-01-01"]),
            "w": ["a"],
        }
    )
    with Store.create(tmp_path / "s.duckdb", embed, extra_cols=like.head(0).astype({"w": "str"})) as store:
        assert store.extra_cols == {"n": "INTEGER", "when": "TIMESTAMP", "w": "VARCHAR"}


def test_a_value_of_another_type_is_refused_and_nothing_is_written(tmp_path, embed):
    with Store.create(tmp_path / "s.duckdb", embed, extra_cols={"n": int}) as store:
        with pytest.raises(StoreError, match="the column 'n' does not fit its type BIGINT"):
            store.insert(pd.DataFrame({"text": ["x"], "n": ["many"]}))
        assert store.counts().documents == store.counts().chunks == 0
        store.insert(pd.DataFrame({"text": ["x"], "n": [3]}))
        assert store.chunks()["n"].tolist() == [3]


@pytest.mark.parametrize("name", ["embedding", "text", "ragnar_x", ""])
def test_names_that_every_store_has_are_refused(tmp_path, embed, name):
    with pytest.raises(StoreError, match=r"extra_cols may not hold|no name for an extra column"):
        Store.create(tmp_path / "s.duckdb", embed, extra_cols={name: str})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with space", "dot.ted", "", "ümlaut"])
def test_store_names(tmp_path, name):
    with pytest.raises(StoreError, match="may hold only letters"):
        Store.create(tmp_path / "s.duckdb", name=name)


def test_overwrite(tmp_path, embed, chunks_of):
    path = tmp_path / "s.duckdb"
    with Store.create(path, embed) as store:
        store.insert(chunks_of(TEXT, "a"))
    with pytest.raises(StoreError, match="exists; connect to it"):
        Store.create(path, embed)
    with Store.connect(path), pytest.raises(StoreError, match="is open in this process"):
        Store.create(path, embed, overwrite=True)
    with Store.create(path, embed, overwrite=True) as store:
        assert store.counts().documents == 0
    other = tmp_path / "letter.txt"
    other.write_text("Dear reader, this is no database.")
    with pytest.raises(StoreError, match="is not a DuckDB file"):
        Store.create(other, embed, overwrite=True)
    assert other.read_text() == "Dear reader, this is no database."


def test_what_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="there is no store at"):
        Store.connect(tmp_path / "none.duckdb")
    duckdb.connect(str(tmp_path / "other.duckdb")).execute("CREATE TABLE t (a INTEGER)").close()
    with pytest.raises(StoreError, match=r"no store \(its tables: t\)"):
        Store.connect(tmp_path / "other.duckdb")
    # The refused file is let go of again.
    duckdb.connect(str(tmp_path / "other.duckdb")).close()


def test_reading_only(tmp_path, embed, chunks_of):
    path = tmp_path / "s.duckdb"
    Store.create(path, embed).close()
    with Store.connect(path, embed=embed) as store, pytest.raises(StoreError, match="read_only=False"):
        store.insert(chunks_of(TEXT, "a"))


def test_a_store_that_is_closed(tmp_path, embed):
    store = Store.create(tmp_path / "s.duckdb", embed)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.insert(pd.DataFrame({"text": ["x"]}))
    with pytest.raises(StoreError, match="closed"):
        store.counts()


def test_the_model_must_be_the_one_that_built_the_store(tmp_path, embed):
    path = tmp_path / "s.duckdb"
    Store.create(path, embed).close()
    longer = FunctionEmbedder(lambda texts: np.ones((len(texts), 16)), 16, "longer")
    with pytest.raises(StoreError, match=r"built with counting \(function\) \(8 numbers a vector\); longer"):
        Store.connect(path, embed=longer)
    same_size = FunctionEmbedder(lambda texts: np.ones((len(texts), 8)), 8, "other")
    with pytest.raises(StoreError, match=r"other .* is another model"):
        Store.connect(path, embed=same_size)
    with Store.connect(path, embed=embed) as store:
        assert store.embedder is embed
    with Store.connect(path) as store, pytest.raises(EmbedError, match="pass the function as embed="):
        _ = store.embedder


def test_the_settings_of_the_last_chunks_are_remembered(store, chunks_of):
    assert store.chunk_settings is None
    store.insert(chunks_of(TEXT, "a", size=123))
    assert store.chunk_settings == ChunkSettings(target_size=123)


def test_every_write_changes_the_revision(store, chunks_of):
    seen = [store.revision]
    store.insert(chunks_of(TEXT, "a"))
    seen.append(store.revision)
    store.update(chunks_of(TEXT + "\nMore.\n", "a"))
    seen.append(store.revision)
    store.delete("a")
    seen.append(store.revision)
    assert len(set(seen)) == 4
    assert seen == sorted(seen)


def test_the_connection_reads_no_other_file(store, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with store.opened.database.reading() as cursor:
        for statement in (
            f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')",
            f"COPY documents TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'other.duckdb'}'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(statement)
        secret = pd.DataFrame({"a": [1]})  # noqa: F841
        with pytest.raises(duckdb.CatalogException):
            cursor.execute("SELECT * FROM secret")
    assert not (tmp_path / "out.csv").exists()


def test_motherduck_without_a_token(monkeypatch):
    for name in list(os.environ):
        if name.upper() == "MOTHERDUCK_TOKEN":
            monkeypatch.delenv(name)
    with pytest.raises(StoreError, match="md:library is at MotherDuck, which needs a token"):
        Store.connect("md:library")
    with pytest.raises(StoreError, match="MOTHERDUCK_TOKEN"):
        Store.create("md:library")


def test_another_process_is_named(tmp_path, embed):
    path = tmp_path / "s.duckdb"
    Store.create(path, embed).close()
    code = (
        "import sys; from ragnar_core.store import Store\n"
        "s = Store.connect(sys.argv[1], read_only=False); print('open', flush=True); sys.stdin.readline()"
    )
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    try:
        assert process.stdout.readline() == "open\n"
        for read_only in (True, False):
            with pytest.raises(StoreError, match=rf"is in use by process {process.pid} .*close it there"):
                Store.connect(path, read_only=read_only)
    finally:
        process.communicate("\n", timeout=60)
    Store.connect(path).close()


def test_documents_of_one_insert_go_in_together(store, chunks_of):
    store.insert(chunks_of("The zebra.", "z.md"))
    with pytest.raises(StoreError, match=r"z\.md is in the store already"):
        store.insert([chunks_of("A lion.", "l.md"), chunks_of("Another zebra.", "z.md")])
    assert store.documents()["origin"].tolist() == ["z.md"]
    revision = store.revision
    store.insert([chunks_of("A lion.", "l.md"), chunks_of("", "empty.md"), chunks_of(TEXT, "s.md", size=40)])
    assert store.revision == revision + 1
    assert store.documents()[["origin", "chunks"]].values.tolist() == [
        ["z.md", 1], ["l.md", 1], ["empty.md", 0], ["s.md", 4],
    ]  # fmt: skip
    assert store.chunks()["text"].tolist()[:2] == ["The zebra.", "A lion."]
    assert [write.chunks for write in store.history("s.md")] == [4]
    with store.opened.database.reading() as cursor:
        rows = cursor.execute(
            "SELECT first_chunk_id, last_chunk_id, octet_length(chunk_ids) // 4 FROM ragnar_postings ORDER BY 1"
        ).fetchall()
    assert [last - first + 1 for first, last, _ in rows] == [1, 1, 4] == [n for _, _, n in rows]
    assert store.check(probe=False)[0].kind == "empty_documents"
    assert store.index_state().bm25 == "fresh"


def test_a_list_of_chunks_takes_a_list_of_vectors(store, chunks_of, model):
    vectors = np.eye(8, dtype=np.float32)
    two = [chunks_of("A lion.", "l.md"), chunks_of("A zebra.", "z.md")]
    with pytest.raises(StoreError, match="got 1 for 2"):
        store.insert(two, vectors=[vectors[:1]])
    store.insert(two, vectors=[vectors[:1], vectors[3:4]])
    assert store.vectors().matrix.tolist() == [vectors[0].tolist(), vectors[3].tolist()]
    assert model.texts == []


def test_extra_columns_that_only_some_documents_have_are_missing_in_the_others(tmp_path, embed, chunks_of):
    with Store.create(tmp_path / "s.duckdb", embed, extra_cols={"year": int, "tags": list[str]}) as store:
        dated = chunks_of("A lion.", "l.md").with_columns(year=1999)
        store.insert([chunks_of("The zebra.", "z.md"), dated])
        store.insert(chunks_of("An eel.", "e.md").with_columns(tags=[["sea", "river"]], year=[None]))
        table = store.chunks()
    assert table["year"].tolist() == [pd.NA, 1999, pd.NA]
    assert [None if tags is None else list(tags) for tags in table["tags"]] == [None, None, ["sea", "river"]]


def test_a_range_outside_the_document_is_refused(store):
    document = MarkdownDocument("Twelve chars", "a")
    with pytest.raises(StoreError, match="lies outside its 12 characters"):
        store.insert(Chunks(document, None, np.array([0]), np.array([13]), [""]))
    assert store.counts().documents == 0
