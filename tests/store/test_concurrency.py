"""Many threads, one file. `RAGNAR_SOAK_SECONDS=60` runs the full length."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.store import Store

SECONDS = float(os.environ.get("RAGNAR_SOAK_SECONDS", "6"))
SETTINGS = ChunkSettings(target_size=100, target_overlap=0.0)
ROOT = Path(__file__).resolve().parents[2]


def document(number: int, state: int = 0) -> MarkdownDocument:
    lines = [f"Document number{number} state{state} part{part} ".ljust(99, "x") for part in range(10)]
    return MarkdownDocument("\n\n".join(lines) + "\n", f"d{number}")


def test_an_ingest_and_eight_searchers(store, model):
    """Each answer is checked: the nearest vector to a chunk's own is that chunk; a word that names a document finds that
    document's chunks, all of one state; a fetched text is the slice of its document."""
    store.ingest([document(number) for number in range(20)], settings=SETTINGS)
    stop, wrong, counts = threading.Event(), [], []

    def search(seed: int) -> None:
        rng, done = random.Random(seed), 0
        try:
            with Store.connect(store.location) as mine:
                while not (stop.is_set() and done):
                    number = rng.randrange(20)
                    vectors, postings = mine.vectors(), mine.postings()
                    row = rng.randrange(len(vectors.chunk_ids))
                    nearest = int(np.argmax(vectors.matrix @ vectors.matrix[row]))
                    assert np.array_equal(vectors.matrix[nearest], vectors.matrix[row])
                    i = postings.terms[f"number{number}"]
                    ids = postings.chunk_ids[postings.rows[postings.indptr[i] : postings.indptr[i + 1]]]
                    assert len(ids) == 10, f"document {number} has {len(ids)} chunks"
                    rows = mine.fetch(ids)
                    # Between the two calls the document may have been replaced: then all its rows are gone, never some.
                    assert len(rows) in (0, 10)
                    assert all(f"number{number} " in text for text in rows["text"])
                    assert len({text.split()[2] for text in rows["text"]}) <= 1
                    done += 1
        except Exception as error:
            wrong.append(error)
        counts.append(done)

    def write() -> None:
        try:
            for state in range(1, 100_000):
                store.ingest([document(number, state) for number in range(20)], settings=SETTINGS)
                if stop.is_set():
                    break
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(8)] + [
        threading.Thread(target=write)
    ]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    stop.set()
    for thread in threads:
        thread.join(timeout=300)
    assert wrong == []
    assert len(counts) == 8
    assert min(counts) > 0
    assert store.index_state().bm25 == "fresh"


def test_reading_becomes_writing_and_reading_again(tmp_path, embed, chunks_of):
    path = tmp_path / "s.duckdb"
    with Store.create(path, embed) as store:
        store.insert(chunks_of("The zebra.", "a"))
    with Store.connect(path, embed=embed) as reader:
        first = reader.vectors()
        with Store.connect(path, read_only=False, embed=embed) as writer:
            writer.insert(chunks_of("The lion.", "b"))
            assert reader.counts().documents == 2
            assert len(reader.vectors().chunk_ids) == 2
        # The last writer is gone, so another process may read as well.
        code = "import sys; from ragnar_core.store import Store; print(Store.connect(sys.argv[1]).counts().documents)"
        run = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert run.stdout.strip() == "2"
        assert reader.document("b").text == "The lion."
        assert len(first.chunk_ids) == 1


def test_stores_of_one_file_share_one_open_database(tmp_path, embed):
    path = tmp_path / "s.duckdb"
    with Store.create(path, embed) as one, Store.connect(tmp_path / "." / "s.duckdb") as two:
        assert one.opened is two.opened
    with Store.connect(path) as three:
        assert three.opened is not one.opened


def test_two_writers_take_turns(store, chunks_of):
    wrong = []

    def insert(name: str) -> None:
        try:
            with Store.connect(store.location, read_only=False, embed=store.embedder) as mine:
                for number in range(10):
                    mine.insert(chunks_of(f"Text {name} {number}.", f"{name}{number}"))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=insert, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert wrong == []
    assert store.counts().documents == 20
    assert sorted(store.vectors().chunk_ids) == list(range(1, 21))
    assert store.index_state().bm25 == "fresh"
