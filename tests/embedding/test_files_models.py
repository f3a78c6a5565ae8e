"""Models on disk: a tiny ONNX model and a tiny model2vec folder, written here, and the real one that is bundled."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from ragnar_core.embedding import (
    EmbedReport,
    EmbedRunError,
    bundled,
    default_available,
    embed_default,
    embed_files,
    embedder_from_config,
)
from ragnar_core.errors import EmbedError

pytest.importorskip("onnxruntime", reason="models on disk need onnxruntime")
tokenizers = pytest.importorskip("tokenizers", reason="models on disk need tokenizers")

WORDS = {"[UNK]": 0, "cat": 1, "dog": 2, "sea": 3, "query:": 4, "[PAD]": 5}
TABLE = np.array([[9, 9], [1, 0], [0, 1], [3, 4], [0, -2], [7, 7]], dtype=np.float32)


def field(number: int, value: bytes | int | str) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def onnx_lookup(table: np.ndarray) -> bytes:
    """An ONNX model that looks each token's row up: `last_hidden_state = Gather(table, input_ids)`."""

    def value(name: str, kind: int, dimensions: list[str | int]) -> bytes:
        shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dimensions)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    tensor = (
        b"".join(field(1, n) for n in table.shape)
        + field(2, 1)
        + field(8, "table")
        + field(9, table.tobytes())
    )
    node = field(1, "table") + field(1, "input_ids") + field(2, "last_hidden_state") + field(4, "Gather")
    graph = field(1, node) + field(2, "g") + field(5, tensor)
    graph += field(11, value("input_ids", 7, ["batch", "length"])) + field(
        11, value("attention_mask", 7, ["batch", "length"])
    )
    graph += field(12, value("last_hidden_state", 1, ["batch", "length", table.shape[1]]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def write_tokenizer(folder: Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header, data = {}, b""
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {
            "dtype": kinds[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": offsets,
        }
        data += raw
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture
def onnx_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(onnx_lookup(TABLE))
    write_tokenizer(folder)
    return folder


@pytest.fixture
def model2vec_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-static"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    write_safetensors(folder / "model.safetensors", {"embeddings": TABLE})
    write_tokenizer(folder)
    return folder


def test_an_onnx_folder_pools_the_mean_without_padding(onnx_folder):
    embedder = embed_files(onnx_folder)
    out = embedder.embed(["cat", "cat dog", "", "sea cat cat dog"])
    half = 0.5**0.5
    assert out[0].tolist() == [1, 0]
    assert out[1] == pytest.approx([half, half], abs=1e-6)
    assert np.isnan(out[2]).all()
    assert out[3] == pytest.approx([half, half], abs=1e-6)
    assert embedder.dim == 2
    assert embedder.label == "tiny-model (on disk)"


def test_vectors_do_not_depend_on_the_batch(onnx_folder):
    embedder = embed_files(onnx_folder)
    texts = [" ".join(["cat", "dog", "sea"][: 1 + i % 3]) + " sea" * (i % 40) for i in range(700)]
    together = embedder.embed(texts)
    for i in (0, 1, 2, 350, 698, 699):
        assert together[i] == pytest.approx(embedder.embed([texts[i]])[0], abs=1e-6)


def test_pooling_scaling_and_prefixes_can_be_chosen(onnx_folder):
    assert embed_files(onnx_folder, pooling="cls").embed(["dog cat"]).tolist() == [[0, 1]]
    assert embed_files(onnx_folder, pooling="last").embed(["dog cat", "cat dog dog"]).tolist() == [
        [1, 0],
        [0, 1],
    ]
    assert embed_files(onnx_folder, normalise=False).embed(["sea"]).tolist() == [[3, 4]]
    plain = embed_files(onnx_folder, query_prefix="query: ", normalise=False)
    assert plain.embed_query("cat").tolist() == [0.5, -1]
    assert plain.embed(["cat"]).tolist() == [[1, 0]]


def test_the_folder_says_how_it_wants_to_be_run(onnx_folder):
    (onnx_folder / "1_Pooling").mkdir()
    (onnx_folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (onnx_folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 3}))
    prompts = {"prompts": {"query": "query: ", "document": ""}}
    (onnx_folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    embedder = embed_files(onnx_folder)
    report = EmbedReport()
    assert embedder.embed(["dog cat cat cat"], report=report).tolist() == [[0, 1]]
    assert report.truncated == [0]
    assert embedder.max_tokens == 3
    assert embedder.embed_query("cat").tolist() == [0, -1]
    with pytest.raises(EmbedRunError, match="Text 2 of 2 is longer than the 3 tokens"):
        embed_files(onnx_folder, too_long="refuse").embed(["cat", "dog cat cat cat"])


def test_a_file_in_a_folder_named_onnx_finds_its_tokenizer_above(onnx_folder):
    (onnx_folder / "onnx").mkdir()
    (onnx_folder / "model.onnx").rename(onnx_folder / "onnx" / "model.onnx")
    assert embed_files(onnx_folder).embed(["cat"]).tolist() == [[1, 0]]
    assert embed_files(onnx_folder / "onnx" / "model.onnx").embed(["dog"]).tolist() == [[0, 1]]


def test_config_makes_it_again(onnx_folder):
    embedder = embed_files(onnx_folder, pooling="last", max_tokens=9, normalise=False, query_prefix="q ")
    assert embedder.config == {
        "provider": "files",
        "model": str(onnx_folder),
        "pooling": "last",
        "max_tokens": 9,
        "normalise": False,
        "query_prefix": "q ",
        "document_prefix": "",
    }
    again = embedder_from_config(embedder.config)
    assert again.config == embedder.config
    assert again.embed(["cat sea"]).tolist() == [[3, 4]]


def test_tokens_are_counted_by_its_tokenizer(onnx_folder, model2vec_folder):
    assert embed_files(onnx_folder).count_tokens(["cat dog sea", "cat"]).tolist() == [3, 1]
    assert embed_files(model2vec_folder).count_tokens(["cat dog sea", "cat"]).tolist() == [3, 1]


def test_a_model2vec_folder_is_averaged_without_unknown_words(model2vec_folder):
    out = embed_files(model2vec_folder).embed(["cat", "cat dog zzz", "zzz"])
    half = 0.5**0.5
    assert out[0].tolist() == [1, 0]
    assert out[1] == pytest.approx([half, half], abs=1e-6)
    assert out[2] == pytest.approx([half, half], abs=1e-6)


def test_a_model2vec_folder_may_have_weights_and_shared_rows(model2vec_folder):
    tensors = {
        "embeddings": np.array([[1, 0], [0, 1]], dtype=np.float16),
        "weights": np.array([0, 3, 4, 0, 0, 0], dtype=np.float32),
        "mapping": np.array([0, 0, 1, 1, 1, 1], dtype=np.int64),
    }
    write_safetensors(model2vec_folder / "model.safetensors", tensors)
    assert embed_files(model2vec_folder).embed(["cat dog"])[0] == pytest.approx([0.6, 0.8], abs=1e-6)


@pytest.mark.skipif(default_available() is not None, reason=str(default_available()))
def test_the_bundled_model_named_by_path_gives_the_same_vectors():
    weights, _ = bundled.locate(bundled.BGE_SMALL)
    by_path = embed_files(weights, pooling="cls")
    texts = ["To change your password open Settings.", "The weather in Paris is mild."]
    assert (by_path.embed(texts) == embed_default().embed(texts)).all()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "holds no embedding model that is known here"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"x"), "has no tokenizer"),
        (lambda folder: (folder / "modules.json").write_text("[]"), None),
    ],
)
def test_folders_without_a_model_are_refused(tmp_path, prepare, message):
    prepare(tmp_path)
    if message is None:
        # Such a folder is one of sentence-transformers; making the embedder does not load it.
        assert embed_files(tmp_path).config["model"] == str(tmp_path)
        return
    with pytest.raises(EmbedError, match=message):
        embed_files(tmp_path)


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(EmbedError, match=r"There is no embedding model at .*absent"):
        embed_files(tmp_path / "absent")
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(EmbedError, match=r"model\.bin is not an ONNX file"):
        embed_files(tmp_path / "model.bin")


def test_a_broken_model_says_so_at_first_use(onnx_folder, model2vec_folder):
    (onnx_folder / "model.onnx").write_bytes(b"this is no model")
    with pytest.raises(EmbedError, match=r"The model in .*tiny-model cannot be loaded"):
        embed_files(onnx_folder).embed(["cat"])
    (model2vec_folder / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(EmbedError, match="not a safetensors file"):
        embed_files(model2vec_folder).embed(["cat"])


def test_a_sentence_transformers_folder_is_run_by_that_package(tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is an optional extra"
    )
    import transformers

    write_tokenizer(tmp_path)
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), unk_token="[UNK]", pad_token="[PAD]"
    )
    config = transformers.BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    words.save_pretrained(tmp_path / "bert")
    # A plain transformer gets a layer that takes the mean.
    model = library.SentenceTransformer(str(tmp_path / "bert"), device="cpu")
    model.save(str(tmp_path / "st"))
    embedder = embed_files(tmp_path / "st")
    texts = ["cat dog", "sea", "cat sea dog dog"]
    out = embedder.embed(texts)
    assert out.shape == (3, 8)
    assert out == pytest.approx(model.encode(texts, normalize_embeddings=True), abs=1e-5)
    assert embedder_from_config(embedder.config).dim == 8
