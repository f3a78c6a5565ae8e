"""Ingest: many documents at once, with a model that fails, a person who stops it, and a second run."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.errors import DocumentError
from ragnar_core.store import IngestProgress, Store

SETTINGS = ChunkSettings(target_size=100, target_overlap=0.0)


def document(number: int, parts: int = 20) -> MarkdownDocument:
    """A document of `parts` chunks under SETTINGS."""
    lines = [f"Document {number} part {part} ".ljust(99, "x") for part in range(parts)]
    return MarkdownDocument("\n\n".join(lines) + "\n", f"d{number}")


def test_all_is_well(store, model):
    steps: list[IngestProgress] = []
    summary = store.ingest(map(document, range(6)), settings=SETTINGS, batch_size=50, progress=steps.append)
    assert summary.ok
    assert (summary.done, summary.inserted, summary.failed, summary.pending) == (6, 6, (), ())
    assert summary.chunks == summary.chunks_embedded == len(model.texts) == store.counts().chunks == 120
    assert store.documents()["origin"].tolist() == [f"d{n}" for n in range(6)]
    assert store.chunk_settings == SETTINGS
    assert [step.origin for step in steps if step.stage == "written"] == [f"d{n}" for n in range(6)]
    assert steps[-1].documents_done == 6
    again = store.ingest(map(document, range(6)), settings=SETTINGS)
    assert (again.done, again.unchanged, again.chunks_embedded) == (6, 6, 0)


def test_batches_are_full_across_documents(tmp_path):
    sizes = []

    def embed(texts):
        sizes.append(len(texts))
        return [[1.0, float(len(text))] for text in texts]

    model = FunctionEmbedder(embed, 2, "sizes", batch_size=1000)
    with Store.create(tmp_path / "s.duckdb", model) as store:
        store.ingest(map(document, range(6)), settings=SETTINGS, batch_size=50)
    assert sizes == [50, 50, 20]


def test_a_model_that_fails_half_way(store, model):
    """Ten documents of twenty chunks; the service refuses from the 105th text on; then it is back."""
    model.fail_from = 104
    summary = store.ingest(map(document, range(10)), settings=SETTINGS, batch_size=64)
    assert not summary.ok
    assert store.documents()["origin"].tolist() == ["d0", "d1", "d2", "d3", "d4"]
    assert summary.done == 5
    assert [origin for origin, _ in summary.failed] == ["d5", "d6"]
    assert "the service is down" in summary.failed[0][1]
    assert summary.pending == ("d7", "d8", "d9")
    paid = set(model.texts)
    model.fail_from = None
    again = store.ingest(map(document, range(10)), settings=SETTINGS, batch_size=64)
    assert again.ok
    assert (again.unchanged, again.inserted) == (5, 5)
    assert len(model.texts) == len(set(model.texts)) == 200
    assert len(paid) >= 100


def test_the_old_version_stays_when_the_new_one_cannot_be_embedded(store, model):
    store.ingest([document(1)], settings=SETTINGS)
    before = store.chunks()["text"].tolist()
    model.fail_from = len(model.texts)
    changed = MarkdownDocument(document(1).text.replace("part", "piece"), "d1")
    assert store.ingest([changed], settings=SETTINGS).failed[0][0] == "d1"
    assert store.chunks()["text"].tolist() == before


def test_one_poisonous_document_does_not_stop_the_others(tmp_path):
    def embed(texts):
        if any("Document 2 part 3" in text for text in texts):
            raise RuntimeError("input too strange")
        return [[1.0, float(len(text))] for text in texts]

    with Store.create(tmp_path / "s.duckdb", FunctionEmbedder(embed, 2, "picky", batch_size=1000)) as store:
        summary = store.ingest(map(document, range(5)), settings=SETTINGS, batch_size=64)
        assert store.documents()["origin"].tolist() == ["d0", "d1", "d3", "d4"]
    assert [origin for origin, _ in summary.failed] == ["d2"]
    assert summary.pending == ()


def test_documents_that_cannot_be_read_are_listed(store, tmp_path):
    (tmp_path / "good.md").write_text("# Good\n\nText.\n")
    (tmp_path / "empty.md").write_text(" \n")
    paths = [tmp_path / "good.md", tmp_path / "empty.md", tmp_path / "missing.md"]
    summary = store.ingest(paths)
    assert summary.done == 1
    assert [origin for origin, _ in summary.failed] == [str(path) for path in paths[1:]]
    assert all(reason and "\n" not in reason for _, reason in summary.failed)
    assert store.documents()["origin"].tolist() == [str(paths[0])]
    with pytest.raises(DocumentError):
        store.ingest(paths[2:], on_error="raise")


def test_the_same_origin_twice_in_one_list(store):
    summary = store.ingest([document(1), document(1)], settings=SETTINGS)
    assert summary.done == 1
    assert summary.failed == (("d1", "d1 is in the list twice; only the first was taken"),)


def test_cancel_keeps_what_was_paid_for(tmp_path):
    cancel, asked = threading.Event(), []

    def embed(texts):
        asked.extend(texts)
        if len(asked) >= 70:
            cancel.set()
        return [[1.0, float(len(text))] for text in texts]

    with Store.create(tmp_path / "s.duckdb", FunctionEmbedder(embed, 2, "slow", batch_size=10)) as store:
        summary = store.ingest(map(document, range(10)), settings=SETTINGS, batch_size=40, cancel=cancel)
        assert summary.cancelled
        assert len(asked) == 70
        assert store.documents()["origin"].tolist() == ["d0", "d1", "d2"]
        assert summary.pending == ("d3", "d4", "d5", "d6", "d7", "d8", "d9")
        cancel.clear()
        assert store.ingest(map(document, range(10)), settings=SETTINGS, batch_size=40).ok
        assert len(asked) == 200


def test_a_crash_does_not_pay_twice(tmp_path):
    """The process ends in the middle of a long document; the next one embeds only what had not come back."""
    script = """
import os, sys
from ragnar_core.chunking import ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.embedding import FunctionEmbedder
from ragnar_core.store import Store
path, ledger, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
lines = [f"Long part {part} ".ljust(99, "x") for part in range(200)]
def embed(texts):
    done = sum(1 for _ in open(ledger)) if os.path.exists(ledger) else 0
    if done >= limit:
        os._exit(9)
    with open(ledger, "a") as file:
        file.write(("text" + chr(10)) * len(texts))
    return [[1.0, float(len(text))] for text in texts]
model = FunctionEmbedder(embed, 2, "paid", batch_size=20)
there = os.path.exists(path)
store = Store.connect(path, read_only=False, embed=model) if there else Store.create(path, model)
document = MarkdownDocument("\\n\\n".join(lines) + "\\n", "long")
summary = store.ingest([document], settings=ChunkSettings(target_size=100, target_overlap=0.0), batch_size=20)
print(summary.chunks_embedded, summary.vectors_reused, store.counts().chunks)
store.close()
"""
    arguments = [sys.executable, "-c", script, str(tmp_path / "s.duckdb"), str(tmp_path / "ledger")]
    root = Path(__file__).resolve().parents[2]
    first = subprocess.run([*arguments, "120"], cwd=root, capture_output=True, text=True, check=False)
    assert first.returncode == 9, first.stderr
    second = subprocess.run([*arguments, "999"], cwd=root, capture_output=True, text=True, check=True)
    embedded, reused, chunks = map(int, second.stdout.split())
    assert reused == 120
    assert embedded == chunks - 120 > 0
    assert len((tmp_path / "ledger").read_text().splitlines()) == chunks


def test_prepare_turns_anything_into_documents(store):
    summary = store.ingest(
        [{"id": "r1", "body": "A row."}, {"id": "r2", "body": 3}],
        prepare=lambda row: MarkdownDocument(row["body"], row["id"]),
    )
    assert store.document("r1").text == "A row."
    assert summary.done == 1
    assert len(summary.failed) == 1


def test_documents_without_origin_come_once(store):
    for _ in range(2):
        store.ingest([MarkdownDocument("A nameless text.")])
    assert store.documents()["origin"].tolist() == [None]


def test_files_are_read_by_several_threads(store, tmp_path):
    threads = set()

    def prepare(number):
        threads.add(threading.current_thread().name)
        barrier.wait(timeout=30)
        return document(number, 1)

    barrier = threading.Barrier(3)
    summary = store.ingest(range(6), prepare=prepare, workers=3, settings=SETTINGS)
    assert summary.done == 6
    assert len(threads) == 3
