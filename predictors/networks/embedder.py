"""Sentence embeddings by a local checkpoint: the mean of its last hidden states. Imports torch; knows no cache."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from predictors.errors import PredictorError
from predictors.pairs import Progress, report

from .checkpoints import read_checkpoint
from .encoder import LAYOUT, Encoder, build_encoder, compute_dtype, device_of, to_batch
from .text import PackedRows

# Sentence encoders were trained on no longer texts, even where they have positions for them.
_MAX_TOKENS = 512
_TEXTS_BETWEEN_REPORTS = 16


class LocalEmbedder:
    """An encoder and its tokenizer. `numerics` names what besides the weights decides about the last bits."""

    def __init__(self, tokenizer: Tokenizer, encoder: Encoder, dtype: torch.dtype, device: torch.device) -> None:
        self.tokenizer, self.encoder = tokenizer, encoder
        self.dtype, self.device = dtype, device
        self.tokenizer.enable_truncation(max_length=min(_MAX_TOKENS, encoder.max_positions))

    def embed(self, texts: list[str], progress: Progress | None, before: int, total: int) -> NDArray[np.float32]:
        """Embeddings of n texts, float32 (n, d), rows of norm 1. `progress` counts from `before` to `total`.

        One text a forward pass. In a batch the products round differently with every company a text is in (in
        bfloat16 a third of all numbers changed), so that what is kept of an earlier call, and with it a tree's
        split, would depend on the past. Packed batches would save a third of the time.

        Raises:
            PredictorError: the checkpoint's tokenizer makes no token of a text. Stopped: `progress` said so.
        """
        rows = np.empty((len(texts), self.encoder.hidden_size), dtype=np.float32)
        with torch.inference_mode():
            for number, encoding in enumerate(self.tokenizer.encode_batch(texts)):
                length = len(encoding.ids)
                if not length:
                    raise PredictorError(f"texts: {texts[number]!r} has no tokens for this model; leave it out.")
                zeros = np.zeros(length, dtype=np.int64)
                row = PackedRows(
                    ids=np.array(encoding.ids, dtype=np.int64),
                    positions=np.arange(length),
                    types=zeros,
                    segments=zeros,
                    lengths=np.array([length]),
                    numbers=np.empty((1, 0), dtype=np.float32),
                )
                hidden = self.encoder.encode(to_batch(row, self.dtype, self.device), None)
                rows[number] = torch.nn.functional.normalize(hidden.mean(dim=0), dim=0).cpu().numpy()
                if (number + 1) % _TEXTS_BETWEEN_REPORTS == 0:
                    report(progress, before + number + 1, total, f"embedded {before + number + 1} of {total} texts")
        return rows


def numerics() -> str:
    """The device, the type and the layout that embeddings are computed in on this machine."""
    device = device_of("auto")
    return f"{device.type} {compute_dtype('auto', device)} {LAYOUT}"


@lru_cache(maxsize=2)
def embedder_of(name: str, digest: str) -> LocalEmbedder:
    """The embedder of a checkpoint, kept in memory; `digest` is that of its files, so that a changed one is read again.

    Raises:
        CheckpointError: it is missing, damaged, or its hub is out of reach.
    """
    device = device_of("auto")
    dtype = compute_dtype("auto", device)
    checkpoint = read_checkpoint(name)
    return LocalEmbedder(checkpoint.tokenizer, build_encoder(checkpoint, dtype, device), dtype, device)
