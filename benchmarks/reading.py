"""Reading against plain markitdown: documents per second, and peak memory over 300 mixed documents.

    python benchmarks/reading.py            # 300 documents, made by this script
    python benchmarks/reading.py --documents 60

Both readers get the same bytes in the same process, in turns, so that a busy machine slows both; CPU seconds
are compared. Memory is the peak of a process of its own for each reader, over the same documents.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

WORDS = [
    "store", "passage", "chunk", "heading", "retrieval", "vector", "index", "overlap", "document", "reading",
    "table", "column", "page", "market", "report", "quarter", "result", "measure", "sample", "river", "mountain",
    "garden", "window", "music", "letter", "number", "question", "answer",
]  # fmt: skip
SHARES = {"html": 30, "md": 14, "txt": 10, "csv": 10, "json": 4, "docx": 10, "xlsx": 8, "pptx": 4, "pdf": 10}


def documents(count: int) -> Iterator[tuple[str, bytes]]:
    """`count` documents of mixed kinds as (name, bytes), the same on each run."""
    chance = random.Random(7)
    total = sum(SHARES.values())
    for kind, share in SHARES.items():
        for number in range(max(1, round(count * share / total))):
            yield f"{kind}-{number}.{kind}", MAKERS[kind](chance)


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(8, 18))).capitalize() + "."


def paragraph(chance: random.Random) -> str:
    return " ".join(sentence(chance) for _ in range(chance.randint(3, 7)))


def html(chance: random.Random) -> bytes:
    parts = ["<html><head><title>A page</title></head><body><nav>"]
    parts += [f"<a href='/{n}'>{chance.choice(WORDS)}</a>" for n in range(30)]
    parts.append("</nav><main><h1>A page</h1>")
    for _ in range(12):
        parts.append(
            f"<h2>{chance.choice(WORDS)}</h2><p>{paragraph(chance)} <b>bold</b> <a href='x'>link</a></p>"
        )
        parts.append("<ul>" + "".join(f"<li>{sentence(chance)}</li>" for _ in range(4)) + "</ul>")
    cells = "".join(f"<tr><td>{chance.choice(WORDS)}</td><td>{n}</td></tr>" for n in range(20))
    parts.append(f"<table><tr><th>name</th><th>n</th></tr>{cells}</table><pre><code>x = 1</code></pre>")
    return "".join([*parts, "</main><footer>end</footer></body></html>"]).encode()


def markdown(chance: random.Random) -> bytes:
    return "\n\n".join(f"## {chance.choice(WORDS)}\n\n{paragraph(chance)}" for _ in range(20)).encode()


def text(chance: random.Random) -> bytes:
    return "\n\n".join(paragraph(chance) for _ in range(25)).encode()


def table(chance: random.Random) -> bytes:
    rows = [f"{n},{chance.choice(WORDS)},{chance.random():.4f},{sentence(chance)}" for n in range(200)]
    return "\n".join(["id,word,value,note", *rows]).encode()


def json_text(chance: random.Random) -> bytes:
    rows = ",\n".join(f'  {{"id": {n}, "text": "{sentence(chance)}"}}' for n in range(60))
    return f"[\n{rows}\n]".encode()


def word(chance: random.Random) -> bytes:
    from docx import Document

    document = Document()
    for _ in range(8):
        document.add_heading(chance.choice(WORDS), 2)
        document.add_paragraph(paragraph(chance))
    grid = document.add_table(6, 3)
    for cell in grid._cells:
        cell.text = chance.choice(WORDS)
    return saved(document.save)


def workbook(chance: random.Random) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["id", "word", "value", "note"])
    for n in range(150):
        book.active.append([n, chance.choice(WORDS), chance.random(), sentence(chance)])
    return saved(book.save)


def slides(chance: random.Random) -> bytes:
    from pptx import Presentation

    presentation = Presentation()
    for _ in range(10):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = chance.choice(WORDS)
        slide.placeholders[1].text = sentence(chance)
    return saved(presentation.save)


def pdf(chance: random.Random) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=True)
    for _ in range(5):
        for row in range(45):
            canvas.drawString(60, 780 - 16 * row, sentence(chance)[:90])
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    "html": html, "md": markdown, "txt": text, "csv": table, "json": json_text, "docx": word,
    "xlsx": workbook, "pptx": slides, "pdf": pdf,
}  # fmt: skip


def readers() -> dict[str, Callable[[str, bytes], str]]:
    """Both readers, by name, warmed up."""
    from markitdown import MarkItDown

    from ragnar_core.documents import read_bytes

    plain = MarkItDown()

    def theirs(name: str, data: bytes) -> str:
        return plain.convert_stream(io.BytesIO(data), file_extension="." + name.rsplit(".", 1)[1]).markdown

    def ours(name: str, data: bytes) -> str:
        return read_bytes(data, name).text

    return {"markitdown": theirs, "ragnar_core": ours}


def compare(count: int) -> None:
    """CPU seconds of both over the same documents, kind by kind."""
    files = list(documents(count))
    both = readers()
    for kind in SHARES:
        sample = next(file for file in files if file[0].endswith("." + kind))
        for read in both.values():
            read(*sample)
    spent: dict[tuple[str, str], float] = {}
    for index, (name, data) in enumerate(files):
        order = list(both) if index % 2 else list(both)[::-1]
        for reader in order:
            began = time.process_time()
            both[reader](name, data)
            key = (reader, name.rsplit(".", 1)[1])
            spent[key] = spent.get(key, 0.0) + time.process_time() - began
    print(
        f"{'kind':6}{'documents':>10}{'markitdown':>12}{'ragnar_core':>13}{'ratio of CPU':>14}   (documents per CPU second)"
    )
    totals = dict.fromkeys(both, 0.0)
    for kind in SHARES:
        number = sum(name.endswith("." + kind) for name, _ in files)
        theirs, ours = (spent[reader, kind] for reader in both)
        totals["markitdown"] += theirs
        totals["ragnar_core"] += ours
        print(f"{kind:6}{number:>10}{number / theirs:>12.1f}{number / ours:>13.1f}{ours / theirs:>14.2f}")
    theirs, ours = totals["markitdown"], totals["ragnar_core"]
    print(
        f"{'all':6}{len(files):>10}{len(files) / theirs:>12.1f}{len(files) / ours:>13.1f}{ours / theirs:>14.2f}"
    )


def memory(reader: str, count: int) -> None:
    """Read all documents with one reader and print the peak resident memory in MB."""
    read = readers()[reader]
    for name, data in documents(count):
        read(name, data)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--memory", choices=["markitdown", "ragnar_core"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        memory(arguments.memory, arguments.documents)
        return
    compare(arguments.documents)
    for reader in ("markitdown", "ragnar_core"):
        command = [sys.executable, __file__, "--memory", reader, "--documents", str(arguments.documents)]
        peak = (
            subprocess.run(command, capture_output=True, text=True, check=True)
            .stdout.strip()
            .splitlines()[-1]
        )
        print(f"peak memory, {reader}: {peak} MB over {arguments.documents} documents")


if __name__ == "__main__":
    main()
