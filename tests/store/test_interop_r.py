"""R's objects in the metadata: reading them, writing them, and R's own opinion."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import warnings

import duckdb
import numpy as np
import pytest

from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import EmbedError, StoreError
from ragnar_core.store import Store
from ragnar_core.store.interop_r import read_embed, write_embed, write_schema
from ragnar_core.store.rserialize import RFormatError, serialize, unserialize

WITHOUT_PREFIX = {"query_prefix": "", "document_prefix": ""}
CONFIGS = {
    "openai_lambda": {"provider": "openai", "model": "text-embedding-3-small"},
    "ollama_partial_default": {"provider": "ollama", "model": "embeddinggemma:300m"},
    "ollama_lambda_unqualified": {"provider": "ollama", "model": "nomic-embed-text"},
    "openai_lambda_default_model": {"provider": "openai", "model": "text-embedding-3-small"},
    "openai_partial_dims": {"provider": "openai", "model": "text-embedding-3-large", "dims": 256},
    "ollama_partial_model_url": {
        "provider": "ollama",
        "base_url": "http://127.0.0.1:9999",
        "model": "all-minilm",
    },
    "lm_studio": {"provider": "lm_studio", "model": "text-embedding-nomic-embed-text-v1.5"},
    "openai_block_body": {
        "provider": "openai",
        "model": "text-embedding-3-small",
        "dims": 512,
        "batch_size": 50,
    },
    "model_variable": {"provider": "openai", "model": "text-embedding-3-small"},
    "gemini": {"provider": "google_gemini", "model": "gemini-embedding-001"},
    "azure": {
        "provider": "azure_openai",
        "endpoint": "https://example.openai.azure.com",
        "model": "text-embedding-3-small",
    },
    "dots": {"provider": "openai", "model": "text-embedding-3-small"},
    "positional_args": {"provider": "ollama", "base_url": "http://host:11434", "model": "mxbai-embed-large"},
    "crate_class": {"provider": "openai", "model": "text-embedding-3-small"},
    "null": None,
    "dummy_matrix": None,
    "dummy_lambda_matrix": None,
    "not_ragnar": None,
}
R = shutil.which("Rscript")


def golden(shared, name):
    lines = (shared / "golden" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def functions(shared):
    return {row["id"]: row for row in golden(shared, "embed_func.jsonl")}


def flat(text):
    return None if text is None else re.sub(r"\s+", " ", text).replace("{ ", "{").replace(" }", "}")


def test_every_function_of_rs_is_read(functions):
    assert functions.keys() == CONFIGS.keys()
    for name, row in functions.items():
        found = read_embed(bytes.fromhex(row["hex"]))
        wanted = CONFIGS[name]
        assert found.config == (None if wanted is None else wanted | WITHOUT_PREFIX), name
        assert flat(found.call) == flat(row["body_call"]), name


def test_what_we_write_is_what_r_writes(functions):
    for name in (
        "openai_lambda",
        "openai_partial_dims",
        "ollama_partial_model_url",
        "lm_studio",
        "gemini",
        "azure",
        "null",
    ):
        assert write_embed(CONFIGS[name]).hex() == functions[name]["hex"], name


def test_objects_come_through_byte_for_byte(functions):
    for name, row in functions.items():
        if name != "crate_class":
            assert serialize(unserialize(bytes.fromhex(row["hex"]))).hex() == row["hex"], name


def test_a_model_that_r_does_not_know_is_null():
    null = "580a000000030004050000030500000000055554462d38000000fe"
    for config in (
        None,
        {"provider": "builtin", "model": "bge-small"},
        {"provider": "function", "model": "f"},
    ):
        assert write_embed(config).hex() == null


def test_no_key_is_written_or_read():
    config = {"provider": "openai", "model": "m", "api_key": "sk-secret"}
    assert b"sk-secret" not in write_embed(config)
    text = write_embed({"provider": "openai", "model": "m", "user": "sk-secret"}).replace(b"user", b"key_")
    assert "sk-secret" not in str(read_embed(text.replace(b"key_", b"user")).config.get("api_key"))


def test_version_1_schemas(shared):
    for row in golden(shared, "v1_schema.jsonl"):
        extra = {"area": "VARCHAR"} if row["id"] == "area" else {}
        written = unserialize(write_schema(extra, row["embedding_size"] or 0))
        theirs = unserialize(bytes.fromhex(row["hex"]))
        assert written.values == theirs.values
        assert dict(written.attributes) == dict(theirs.attributes)


@pytest.mark.parametrize("cut", [0, 1, 14, 30, 60, 150])
def test_bytes_that_are_cut_off(functions, cut):
    data = bytes.fromhex(functions["openai_lambda"]["hex"])
    with pytest.raises(RFormatError):
        unserialize(data[:cut])
    found = read_embed(data[:cut])
    assert found.config is None
    assert found.call.startswith("<unreadable")


def test_bytes_of_an_enemy():
    header = bytes.fromhex("580a000000030004050000030500000000055554462d38")
    endless = header + b"\x00\x00\x04\x02" * 50_000
    huge = header + bytes.fromhex("000000107fffffff")
    byte_code = header + bytes.fromhex("00000015")
    for data in (endless, huge, byte_code, b"", b"X\n", b"\x80\x04pickle"):
        with pytest.raises(RFormatError):
            unserialize(data)


def test_rdata_agrees(functions):
    """A second opinion: the package rdata parses what we write, and finds the same strings."""
    parser = pytest.importorskip("rdata.parser")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = parser.parse_data(write_embed(CONFIGS["ollama_partial_model_url"]))
    shown = str(parsed)
    for part in ("embed_ollama", "http://127.0.0.1:9999", "all-minilm"):
        assert part in shown


@pytest.mark.skipif(R is None, reason="R is not installed (Debian: r-base-core)")
@pytest.mark.parametrize(
    ("config", "deparsed"),
    [
        (CONFIGS["openai_lambda"], 'ragnar::embed_openai(x = x, model = "text-embedding-3-small")'),
        (
            CONFIGS["openai_partial_dims"],
            'ragnar::embed_openai(x = x, model = "text-embedding-3-large", dims = 256)',
        ),
        (
            CONFIGS["ollama_partial_model_url"],
            'ragnar::embed_ollama(x = x, base_url = "http://127.0.0.1:9999", model = "all-minilm")',
        ),
        (
            {"provider": "bedrock", "model": "titan", "profile": "ünï"},
            'ragnar::embed_bedrock(x = x, model = "titan", profile = "ünï")',
        ),
    ],
)
def test_r_reads_the_function(tmp_path, config, deparsed):
    (tmp_path / "f").write_bytes(write_embed(config))
    script = (
        f"f <- unserialize(readBin('{tmp_path / 'f'}', 'raw', 1e6)); stopifnot(is.function(f), identical(environment(f), "
        "baseenv()), identical(names(formals(f)), 'x')); writeLines(paste(deparse(body(f), 500), collapse = ' '), "
        "useBytes = TRUE)"
    )
    run = subprocess.run(
        [R, "-e", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    )
    assert run.stdout.decode("utf-8").strip() == deparsed


@pytest.mark.skipif(R is None, reason="R is not installed (Debian: r-base-core)")
def test_r_reads_the_schema_and_null(tmp_path):
    (tmp_path / "s").write_bytes(
        write_schema(
            {
                "yes": "BOOLEAN",
                "n": "INTEGER",
                "big": "BIGINT",
                "d": "DATE",
                "t": "TIMESTAMP",
                "l": "VARCHAR[]",
            },
            8,
        )
    )
    (tmp_path / "n").write_bytes(write_embed(None))
    script = (
        f"r <- function(f) unserialize(readBin(f, 'raw', 1e6)); s <- r('{tmp_path / 's'}'); "
        f"stopifnot(is.null(r('{tmp_path / 'n'}')), is.data.frame(s), nrow(s) == 0); "
        "stopifnot(identical(dim(s$embedding), c(0L, 8L))); "
        "cat(sapply(s, function(x) class(x)[1]))"
    )
    run = subprocess.run([R, "-e", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [
        "logical", "integer", "numeric", "Date", "POSIXct", "list", "character", "character", "character", "matrix",
    ]  # fmt: skip


RAGNARS_SCHEMA = """
CREATE TABLE metadata (embedding_size INTEGER, embed_func BLOB, name VARCHAR, title VARCHAR);
CREATE SEQUENCE chunk_id_seq START 1;
CREATE SEQUENCE doc_id_seq START 1;
CREATE TABLE documents (doc_id INTEGER PRIMARY KEY DEFAULT nextval('doc_id_seq'), origin VARCHAR UNIQUE, text VARCHAR);
CREATE TABLE embeddings (
  doc_id INTEGER NOT NULL, FOREIGN KEY (doc_id) REFERENCES documents (doc_id),
  chunk_id INTEGER DEFAULT nextval('chunk_id_seq'), start INTEGER, "end" INTEGER, PRIMARY KEY (doc_id, start, "end"),
  context VARCHAR, embedding FLOAT[3]
);
CREATE VIEW chunks AS (
  SELECT d.origin as origin, e.*, d.text[ e.start : e."end" ] as text FROM documents d JOIN embeddings e USING (doc_id)
);
INSERT INTO documents (origin, text) VALUES ('a.md', 'Hello world. The zebra runs.'), (NULL, 'No origin here.');
INSERT INTO embeddings (doc_id, start, "end", context, embedding) VALUES
  (1, 1, 12, NULL, [1, 0, 0]), (1, 14, 28, '# Animals', [0, 1, 0]), (2, 1, 15, '', [0, 0, 1]);
"""


def write_ragnars(path, embed_func):
    with duckdb.connect(str(path)) as connection:
        connection.execute(RAGNARS_SCHEMA)
        connection.execute("INSERT INTO metadata VALUES (3, ?, 'store_001', NULL)", [embed_func])


def test_a_store_that_r_wrote_opens_as_it_is(functions, tmp_path):
    path = tmp_path / "r.duckdb"
    write_ragnars(path, bytes.fromhex(functions["openai_lambda"]["hex"]))
    with Store.connect(path) as store:
        assert (store.name, store.title, store.version, store.dim) == ("store_001", None, 2, 3)
        assert store.embed_config == CONFIGS["openai_lambda"] | WITHOUT_PREFIX
        assert store.r_call == 'ragnar::embed_openai(x = x, model = "text-embedding-3-small")'
        table = store.chunks()
        assert table["text"].tolist() == ["Hello world.", "The zebra runs.", "No origin here."]
        assert table["context"].tolist() == ["", "# Animals", ""]
        assert (table["start"].tolist(), table["end"].tolist()) == ([0, 13, 0], [12, 28, 15])
        assert store.vectors().matrix.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        postings = store.postings()
        assert {"zebra", "anim", "hello"} <= set(postings.terms)
        state = store.index_state()
        assert (state.bm25, state.vss, state.stale_chunks) == ("absent", "fresh", 3)


def test_a_store_that_r_wrote_can_be_written(functions, tmp_path, chunks_of):
    path = tmp_path / "r.duckdb"
    write_ragnars(path, bytes.fromhex(functions["dummy_matrix"]["hex"]))
    with (
        Store.connect(path) as store,
        pytest.raises(EmbedError, match=r"it says: matrix\(stats::runif\(10\)"),
    ):
        _ = store.embedder
    model = FunctionEmbedder(lambda texts: np.eye(3)[[0] * len(texts)], 3, "mine")
    with Store.connect(path, read_only=False, embed=model) as store:
        store.update(chunks_of("A quite different zebra.", "a.md"))
        store.insert(chunks_of("A third document.", "c.md"))
        assert store.delete(2) == 1
        assert store.index_state().bm25 == "fresh"
        assert store.chunks()["text"].tolist() == ["A quite different zebra.", "A third document."]
        store.build_index()
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT origin, start, text FROM chunks ORDER BY chunk_id").fetchall() == [
            ("a.md", 1, "A quite different zebra."),
            ("c.md", 1, "A third document."),
        ]
        # R goes on with the same sequences.
        connection.execute("INSERT INTO documents (origin, text) VALUES ('d.md', 'From R again: zebras.')")
        connection.execute(
            'INSERT INTO embeddings (doc_id, start, "end", embedding) SELECT max(doc_id), 1, 21, [1,1,1] FROM documents'
        )
    with Store.connect(path) as store:
        assert store.index_state().bm25 == "stale"
        assert store.index_state().stale_chunks == 1
        postings = store.postings()
        zebra = postings.terms["zebra"]
        assert postings.indptr[zebra + 1] - postings.indptr[zebra] == 2


def test_a_version_1_store_that_r_wrote(shared, functions, tmp_path):
    path = tmp_path / "v1.duckdb"
    schema = next(row for row in golden(shared, "v1_schema.jsonl") if row["id"] == "area")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE metadata (embedding_size INTEGER, embed_func BLOB, schema BLOB, name VARCHAR, title VARCHAR);"
            "CREATE SEQUENCE chunk_id_sequence START 1;"
            "CREATE TABLE chunks (chunk_id INTEGER DEFAULT nextval('chunk_id_sequence'), area VARCHAR, origin VARCHAR, "
            "hash VARCHAR, text VARCHAR, embedding FLOAT[10])"
        )
        function = bytes.fromhex(functions["ollama_lambda_unqualified"]["hex"])
        connection.execute(
            "INSERT INTO metadata VALUES (10, ?, ?, 'old', 'Old')", [function, bytes.fromhex(schema["hex"])]
        )
        connection.execute(
            "INSERT INTO chunks (area, origin, hash, text, embedding) SELECT 'rag', 'a', 'h', 'chunk ' || i, "
            "list_value(i, 1, 1, 1, 1, 1, 1, 1, 1, 1)::FLOAT[10] FROM range(3) t(i)"
        )
    with Store.connect(path) as store:
        assert (store.version, store.dim, store.extra_cols) == (1, 10, {"area": "VARCHAR"})
        assert store.embed_config["model"] == "nomic-embed-text"
        assert store.chunks()["text"].tolist() == ["chunk 0", "chunk 1", "chunk 2"]
        assert store.vectors().matrix[:, 0].tolist() == [0, 1, 2]
        assert "chunk" in store.postings().terms


def test_a_store_whose_metadata_lack_columns(tmp_path):
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(RAGNARS_SCHEMA)
        connection.execute("DROP TABLE metadata; CREATE TABLE metadata AS SELECT 'x' AS name")
    with Store.connect(path) as store:
        assert (store.name, store.title, store.dim, store.embed_config) == ("x", None, 3, None)
        with pytest.raises(EmbedError, match="does not say which model"):
            _ = store.embedder
    with pytest.raises(StoreError, match=r"numbers a vector"):
        Store.connect(path, embed=FunctionEmbedder(lambda texts: [[1.0]] * len(texts), 1, "one"))
