"""How fast Markdown is chunked, against named peers, on the same text in the same run.

    pip install langchain-text-splitters semantic-text-splitter chonkie raghilda
    python benchmarks/chunking.py                  # 1 MB and 5 MB of made-up Markdown
    python benchmarks/chunking.py --file book.md   # a file of your own

Each chunker runs in a process of its own, single-threaded, and makes chunks of 1,600 characters that overlap
by half (where it can overlap). Figures are CPU time, the best of a few runs, so that a busy machine matters
less; MB are millions of UTF-8 bytes. Memory is the highest resident size of the process above what it had
after its imports and the text. A peer that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SIZE, OVERLAP = 1600, 0.5
ENOUGH_SECONDS = 3.0
TOO_LONG_SECONDS = 300
Run = Callable[[str], int]


def ours() -> Run:
    from ragnar_core.chunking import markdown_chunk

    return lambda text: len(markdown_chunk(text, target_size=SIZE, target_overlap=OVERLAP).texts)


def ours_with_table() -> Run:
    from ragnar_core.chunking import markdown_chunk

    return lambda text: len(markdown_chunk(text, target_size=SIZE, target_overlap=OVERLAP).table)


def ours_anchored() -> Run:
    from ragnar_core.chunking import markdown_chunk

    return lambda text: len(markdown_chunk(text, target_size=SIZE, strategy="anchored").texts)


def raghilda() -> Run:
    from raghilda.chunker import MarkdownChunker

    chunker = MarkdownChunker(SIZE, OVERLAP, max_snap_distance=266)
    return lambda text: len(list(chunker.chunk_text(text)))


def langchain_headings_then_recursive() -> Run:
    from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

    headings = MarkdownHeaderTextSplitter([("#" * n, f"h{n}") for n in range(1, 7)], strip_headers=False)
    sizes = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=int(SIZE * OVERLAP))
    return lambda text: len(sizes.split_documents(headings.split_text(text)))


def langchain_recursive_with_positions() -> Run:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=SIZE, chunk_overlap=int(SIZE * OVERLAP), add_start_index=True
    )
    return lambda text: len(splitter.create_documents([text]))


def semantic_text_splitter() -> Run:
    from semantic_text_splitter import TextSplitter

    splitter = TextSplitter(SIZE, overlap=int(SIZE * OVERLAP))
    return lambda text: len(splitter.chunk_indices(text))


def semantic_markdown_splitter() -> Run:
    from semantic_text_splitter import MarkdownSplitter

    splitter = MarkdownSplitter(SIZE, overlap=int(SIZE * OVERLAP))
    return lambda text: len(splitter.chunk_indices(text))


def chonkie_recursive() -> Run:
    from chonkie import RecursiveChunker

    chunker = RecursiveChunker(tokenizer="character", chunk_size=SIZE)
    return lambda text: len(chunker.chunk(text))


def chonkie_sentence() -> Run:
    from chonkie import SentenceChunker

    chunker = SentenceChunker(tokenizer="character", chunk_size=SIZE, chunk_overlap=int(SIZE * OVERLAP))
    return lambda text: len(chunker.chunk(text))


# name, how to make it, the package it needs, the ratio we want at 1 MB and at 5 MB, what it leaves out
CHUNKERS: list[tuple[str, Callable[[], Run], str, float, float, str]] = [
    ("ragnar_core", ours, "cmarkgfm", 0, 0, ""),
    ("ragnar_core, DataFrame made", ours_with_table, "cmarkgfm", 0, 0, ""),
    ("ragnar_core, anchored", ours_anchored, "cmarkgfm", 0, 0, ""),
    ("raghilda MarkdownChunker", raghilda, "raghilda", 80, 80, ""),
    (
        "langchain headings + Recursive",
        langchain_headings_then_recursive,
        "langchain_text_splitters",
        2,
        2,
        "",
    ),
    (
        "langchain Recursive, positions",
        langchain_recursive_with_positions,
        "langchain_text_splitters",
        0,
        0,
        "no headings",
    ),
    ("semantic TextSplitter", semantic_text_splitter, "semantic_text_splitter", 1.5, 5, "no headings"),
    ("semantic MarkdownSplitter", semantic_markdown_splitter, "semantic_text_splitter", 0, 0, "no context"),
    ("chonkie Recursive", chonkie_recursive, "chonkie", 0, 0, "no headings, no overlap"),
    ("chonkie Sentence", chonkie_sentence, "chonkie", 0, 0, "no headings"),
]

R_SCRIPT = """
path <- commandArgs(TRUE)[1]
text <- paste(readLines(path, encoding = "UTF-8"), collapse = "\\n")
took <- system.time(chunks <- ragnar::markdown_chunk(text, target_size = 1600L, target_overlap = 0.5))
cat(sprintf('{"chunks": %d, "seconds": %f, "memory": null}', nrow(chunks), took[["user.self"]] + took[["sys.self"]]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, action="append", help="a Markdown file instead of made-up text")
    parser.add_argument("--quick", action="store_true", help="1 MB only")
    parser.add_argument("--one", nargs=2, metavar=("CHUNKER", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(int(arguments.one[0]), Path(arguments.one[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.file or made_up_files(Path(folder), [1] if arguments.quick else [1, 5])
        for file in files:
            compare(file)
        sliders(files[0])


def compare(file: Path) -> None:
    size = file.stat().st_size / 1e6
    print(f"\n{file.name}: {size:.2f} MB, chunks of {SIZE} characters, overlap {OVERLAP:.0%}\n")
    print(f"{'chunker':33} {'chunks':>7} {'MB/s':>7} {'we are':>8} {'wanted':>7} {'memory':>8}  remarks")
    fastest = None
    for number, (name, _, package, small, large, remark) in enumerate(CHUNKERS):
        if importlib.util.find_spec(package) is None:
            print(f"{name:33} not installed (pip install {package.replace('_', '-')})")
            continue
        row = in_a_process([sys.executable, __file__, "--one", str(number), str(file)])
        fastest = report(name, row, size, fastest, large if size > 3 else small, remark)
    report_r(file, size, fastest)


def report(
    name: str, row: dict[str, Any], size: float, first: float | None, wanted: float, remark: str
) -> float | None:
    if "error" in row:
        print(f"{name:33} {row['error']}")
        return first
    speed = size / row["seconds"]
    first = first or speed
    ratio = f"{first / speed:7.1f}x" if first != speed else ""
    goal = f"{wanted:.1f}x" if wanted else ""
    memory = f"{row['memory'] / 1e6:5.0f} MB" if row["memory"] is not None else ""
    print(f"{name:33} {row['chunks']:7,} {speed:7.2f} {ratio:>8} {goal:>7} {memory:>8}  {remark}")
    return first


def report_r(file: Path, size: float, first: float | None) -> None:
    name = "ragnar in R"
    if shutil.which("Rscript") is None:
        print(f"{name:33} Rscript is not installed")
        return
    row = in_a_process(["Rscript", "--vanilla", "-e", R_SCRIPT, str(file)])
    if "error" in row:
        print(f"{name:33} the R package ragnar is not installed (0.63 MB/s where it was measured)")
        return
    report(name, row, size, first, 25, "")


def in_a_process(command: list[str]) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOO_LONG_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {TOO_LONG_SECONDS} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:90]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def measure(number: int, file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    run = CHUNKERS[number][1]()
    run(text[:20_000])
    before = highest_memory()
    chunks, best, spent = 0, float("inf"), 0.0
    memory = 0
    while spent < ENOUGH_SECONDS:
        started = time.process_time()
        chunks = run(text)
        took = time.process_time() - started
        memory = memory or highest_memory() - before
        best, spent = min(best, took), spent + took
    return {"chunks": chunks, "seconds": best, "memory": memory}


def highest_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def sliders(file: Path) -> None:
    """What a changed setting costs when the text's boundaries are known."""
    if importlib.util.find_spec("cmarkgfm") is None:
        return
    from ragnar_core.chunking import Boundaries, ChunkSettings

    boundaries = Boundaries.of(file.read_text(encoding="utf-8"))
    print(f"\nA changed slider, {file.name} (CPU ms: cuts and contexts; with the texts)\n")
    for size, overlap in ((1600, 0.5), (1200, 0.5), (800, 0.5), (800, 0.0), (400, 0.5), (400, 0.75)):
        boundaries.chunk(ChunkSettings(size + 1, overlap))
        times = []
        for step in range(2, 30):
            started = time.process_time()
            chunks = boundaries.chunk(ChunkSettings(size + step, overlap))
            snapped = time.process_time()
            texts = chunks.texts
            times.append((snapped - started, time.process_time() - started, len(texts)))
        cut, whole, count = (sorted(column)[len(times) // 2] for column in zip(*times, strict=True))
        print(f"size {size:5}, overlap {overlap:4.0%}: {count:6,} chunks {cut * 1e3:6.2f} {whole * 1e3:6.2f}")


def made_up_files(folder: Path, sizes: list[int]) -> list[Path]:
    files = []
    for size in sizes:
        file = folder / f"made-up-{size}MB.md"
        file.write_text(made_up_markdown(size * 1_000_000), encoding="utf-8")
        files.append(file)
    return files


def made_up_markdown(size: int) -> str:
    """ASCII Markdown like a manual's: headings, wrapped prose, lists, code, tables. Always the same."""
    dice = random.Random(20)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(dice.choices(letters, range(22, 0, -1), k=dice.randint(1, 9))) for _ in range(4_000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]

    def phrase(least: int, most: int) -> str:
        return " ".join(dice.choices(words, weights, k=dice.randint(least, most)))

    def sentence() -> str:
        return f"{phrase(4, 22).capitalize()}{dice.choice('.....?!')}"

    def prose() -> str:
        return textwrap.fill(" ".join(sentence() for _ in range(dice.randint(1, 4))), 80)

    blocks: list[str] = []
    written = 0
    while written < size:
        kind = dice.random()
        if kind < 0.16:
            block = f"{'#' * dice.choice((1, 2, 2, 3, 3, 3, 4))} {phrase(1, 6).capitalize()}"
        elif kind < 0.30:
            indents = ["", *dice.choices(("", "  "), k=dice.randint(2, 8))]
            block = "\n".join(f"{indent}* `{phrase(1, 1)}` {phrase(2, 14)}" for indent in indents)
        elif kind < 0.42:
            code = "\n".join(
                f"{'    ' * dice.randint(0, 2)}{phrase(1, 5)}()" for _ in range(dice.randint(2, 12))
            )
            block = f"```python\n{code}\n```"
        elif kind < 0.45:
            rows = "\n".join(
                f"| {phrase(1, 3)} | {dice.randint(1, 999)} |" for _ in range(dice.randint(2, 10))
            )
            block = f"| name | value |\n|------|------:|\n{rows}"
        elif kind < 0.48:
            block = textwrap.indent(prose(), "> ")
        else:
            block = (
                f"{prose()} See [{phrase(1, 3)}](https://example.org/{phrase(1, 1)}) and `{phrase(1, 2)}`."
            )
        blocks.append(block)
        written += len(block) + 2
    return "\n\n".join(blocks)[:size]


if __name__ == "__main__":
    main()
