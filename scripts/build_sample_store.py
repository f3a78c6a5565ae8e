"""Build the sample store `data/handbook.duckdb` from `docs/handbook/`. Run it after changing the handbook.

python scripts/build_sample_store.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ragnar_core import ChunkSettings, Embedder, Store, embed_default, read_as_markdown

ROOT = Path(__file__).resolve().parents[1]
HANDBOOK = ROOT / "docs" / "handbook"
SAMPLE = ROOT / "data" / "handbook.duckdb"
SETTINGS = ChunkSettings.workbench(target_size=1200, target_overlap=0.25)


def build(location: Path, embed: Embedder) -> None:
    """Read, chunk, embed and index the handbook into a new store at `location`, replacing what is there."""
    paths = sorted(path for path in HANDBOOK.iterdir() if path.suffix in (".md", ".html"))
    documents = [read_as_markdown(path, origin=f"handbook/{path.name}") for path in paths]
    location.parent.mkdir(parents=True, exist_ok=True)
    title = "The handbook of Ragnar Workbench"
    with Store.create(location, embed, name="handbook", title=title, overwrite=True) as store:
        summary = store.ingest(documents, settings=SETTINGS)
    if not summary.ok:
        raise SystemExit(f"not complete: {summary}")
    print(f"{location}: {summary.done} documents, {summary.chunks_embedded} chunks, {summary.seconds:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("location", nargs="?", type=Path, default=SAMPLE)
    build(parser.parse_args().location, embed_default())
