"""Kills a process that writes a store, again and again at random moments, and looks at what is left each time.

    python benchmarks/crash.py               # 100 kills
    python benchmarks/crash.py --kills 10 --documents 30

The writer ingests documents, changes some and deletes some. After each kill the file must open and hold whole documents
only: each one's text is one of the states that were written, its chunks are exactly the chunks of that text, each with
its own vector, and the keyword index agrees with the texts. The next writer goes on with the same file, and in the end the
ingest must finish.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ragnar_core.chunking import Boundaries, ChunkSettings
from ragnar_core.documents.document import MarkdownDocument
from ragnar_core.store import Analyzer, Store
from ragnar_core.store.postings import TermCoder
from ragnar_core.store.text import searched_text

DIM, BATCH, STATES = 16, 8, 3
SETTINGS = ChunkSettings(target_size=300)


@dataclass
class Outcome:
    """What a series of kills came to."""

    kills: int = 0
    while_writing: int = 0
    documents: int = 0


def document(number: int, state: int) -> MarkdownDocument:
    """A document in one of its states; all states share their first half, so that vectors can be used again."""
    rng = random.Random(number)
    sentence = " ".join(
        rng.choice(("river", "stone", "bridge", "lantern", "harbour", "meadow")) for _ in range(9)
    )
    same = "\n\n".join(f"Paragraph {i} of document {number}: {sentence} {i * number}." for i in range(6))
    own = "\n\n".join(f"State {state} of document {number}, part {i}: {sentence}." for i in range(state + 4))
    return MarkdownDocument(
        f"# Document {number}\n\n{same}\n\n## State {state}\n\n{own}\n", f"document-{number}.md"
    )


def vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    found = np.random.default_rng(seed).normal(size=DIM).astype(np.float32)
    return found / np.linalg.norm(found)


def write(path: Path, documents: int, seed: int) -> None:
    """What the process does that is killed: never ends by itself before it has written every document's last state."""

    def embed(texts: list[str]) -> np.ndarray:
        # A real model takes its time, so that a kill can fall between embedding and writing.
        time.sleep(0.002 * len(texts))
        return np.stack([vector(text) for text in texts])

    there = path.exists()
    store = Store.connect(path, read_only=False, embed=embed) if there else Store.create(path, embed)
    print("ready", flush=True)
    rng = random.Random(seed)
    for _ in range(3):
        number = rng.randrange(documents)
        store.delete(f"document-{number}.md")
        store.ingest([document(number, rng.randrange(STATES))], settings=SETTINGS, batch_size=BATCH)
    for state in range(STATES):
        store.ingest([document(n, state) for n in range(documents)], settings=SETTINGS, batch_size=BATCH)
    store.close()
    print("done", flush=True)


def inspect(path: Path) -> int:
    """Raises AssertionError unless the file holds whole documents only. Returns how many."""
    with Store.connect(path) as store:
        listed = store.documents()
        everything = store.chunks()
        vectors, postings = store.vectors(), store.postings()
        assert store.index_state().bm25 in ("fresh", "absent"), store.index_state()
        assert store.counts().chunks == len(everything) == len(vectors.chunk_ids)
        assert listed["origin"].is_unique
        row_of = {int(chunk_id): row for row, chunk_id in enumerate(vectors.chunk_ids)}
        for doc_id, origin in zip(listed["doc_id"], listed["origin"], strict=True):
            number = int(origin.removeprefix("document-").removesuffix(".md"))
            text = store.document(int(doc_id)).text
            states = [made for made in (document(number, s) for s in range(STATES)) if made.text == text]
            assert states, f"{origin} is in a state that was never written"
            wanted = Boundaries.of(states[0]).chunk(SETTINGS).table
            mine = everything[everything["doc_id"] == doc_id].sort_values("start")
            assert mine["text"].tolist() == wanted["text"].tolist(), (
                f"{origin} has other chunks than its text"
            )
            for chunk_id, context, part in zip(mine["chunk_id"], mine["context"], mine["text"], strict=True):
                stored = vectors.matrix[row_of[int(chunk_id)]]
                assert np.allclose(stored, vector(searched_text(context, part)), atol=1e-6), (
                    "a vector of another text"
                )
        texts = [searched_text(c, t) for c, t in zip(everything["context"], everything["text"], strict=True)]
        fresh = TermCoder(Analyzer(), {}).encode(texts)
        assert np.array_equal(fresh.lengths, postings.lengths), (
            "lengths in the index are not those of the texts"
        )
        assert int(fresh.indptr[-1]) == len(postings.rows), "the index has other postings than the texts"
        return len(listed)


def run(kills: int, documents: int, folder: Path, *, seed: int = 1, longest: float = 1.2) -> Outcome:
    """Kills the writer `kills` times, then lets it finish. Raises AssertionError with what was wrong."""
    path, rng, outcome = folder / "store.duckdb", random.Random(seed), Outcome()
    for number in range(kills):
        process = _start(path, documents, seed + number)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready", "the writer did not start; see its message above"
        time.sleep(rng.uniform(0, longest))
        finished = process.poll() is not None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        outcome.kills += 1
        outcome.while_writing += not finished
        if path.exists():
            outcome.documents = inspect(path)
        if finished:
            path.unlink()
    process = _start(path, documents, seed + kills)
    output, _ = process.communicate(timeout=600)
    assert "done" in output, "the ingest did not finish when it was run again"
    outcome.documents = inspect(path)
    assert outcome.documents == documents
    with Store.connect(path) as store:
        for n in range(documents):
            assert store.document(f"document-{n}.md").text == document(n, STATES - 1).text
        with store.opened.database.reading() as cursor:
            assert cursor.execute("SELECT count(*) FROM ragnar_vectors").fetchone() == (0,)
    return outcome


def _start(path: Path, documents: int, seed: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        __file__,
        "--write",
        str(path),
        "--documents",
        str(documents),
        "--seed",
        str(seed),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--longest", type=float, default=1.2, help="seconds after which a writer is killed at the latest"
    )
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write, arguments.documents, arguments.seed)
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-crash-"))
    try:
        outcome = run(
            arguments.kills, arguments.documents, folder, seed=arguments.seed, longest=arguments.longest
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{outcome.kills} kills, {outcome.while_writing} while the writer was at work: the file opened each time and held "
        f"whole documents only; the ingest finished with {outcome.documents} documents"
    )


if __name__ == "__main__":
    main()
