"""What turns the encoder's hidden states into one logit a row: the paper's head, and one that compares the texts."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from .encoder import Batch, Dropout, FlatWeights
from .text import FIRST, OTHERS

HeadKind = Literal["paper", "segments"]
_POOLER = ("pooler.dense.weight", "pooler.dense.bias")


class Head:
    """A float32 head over packed hidden states.

    `paper`: the pooled first token through one linear layer, as in sequence classification. `segments`: the mean u of
    the first text's tokens, the mean v of all others' (0 where there is one text), |u - v| and u * v through one linear
    layer. Either reads the batch's numbers next to it.
    `pretrained` weights (the pooler, where the checkpoint has one) move at the encoder's learning rate, `fresh` ones
    at the head's.
    """

    def __init__(self, kind: HeadKind, tensors: dict[str, torch.Tensor], device: torch.device) -> None:
        self.kind = kind
        self.pretrained = FlatWeights({n: t for n, t in tensors.items() if n in _POOLER}, torch.float32, device)
        self.fresh = FlatWeights({n: t for n, t in tensors.items() if n not in _POOLER}, torch.float32, device)

    def logits(self, hidden: torch.Tensor, batch: Batch, dropout: Dropout | None) -> torch.Tensor:
        """Logits of label 1, (B,), from hidden states (T, hidden)."""
        features = self._pooled(hidden, batch) if self.kind == "paper" else self._compared(hidden, batch)
        if batch.numbers.shape[1]:
            features = torch.cat([features, batch.numbers], dim=1)
        if dropout is not None:
            features = dropout(features)
        weights = self.fresh.views
        return functional.linear(features, weights["classifier.weight"], weights["classifier.bias"])[:, 0]

    def state(self) -> dict[str, torch.Tensor]:
        """All weights, float32 on the CPU."""
        return {**self.pretrained.state(), **self.fresh.state()}

    def _pooled(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        weights = {**self.pretrained.views, **self.fresh.views}
        first = hidden[batch.starts]
        return torch.tanh(functional.linear(first, weights[_POOLER[0]], weights[_POOLER[1]]))

    @staticmethod
    def _compared(hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        first, others = mean_of(hidden, batch, FIRST), mean_of(hidden, batch, OTHERS)
        return torch.cat([first, others, (first - others).abs(), first * others], dim=1)


def new_head(
    kind: HeadKind,
    hidden_size: int,
    numbers: int,
    pretrained: dict[str, torch.Tensor],
    generator: np.random.Generator,
    device: torch.device,
    numbers_alone: NDArray[np.float32] | None = None,
) -> Head:
    """An untrained head: random weights of standard deviation 0.02, the checkpoint's own pooler where it has one.

    numbers: how many numbers it reads in addition to the texts.
    numbers_alone: (1 + numbers,), bias and weights of the numbers to start from instead.
    """
    width = (hidden_size if kind == "paper" else 4 * hidden_size) + numbers
    shapes = {"classifier.weight": (1, width), "classifier.bias": (1,)}
    if kind == "paper":
        shapes = {_POOLER[0]: (hidden_size, hidden_size), _POOLER[1]: (hidden_size,), **shapes}
    has_pooler = all(name in pretrained for name in _POOLER)
    tensors = {}
    for name, shape in shapes.items():
        if name in _POOLER and has_pooler:
            tensors[name] = pretrained[name]
        elif name.endswith(".bias"):
            tensors[name] = torch.zeros(shape)
        else:
            tensors[name] = torch.from_numpy(generator.normal(scale=0.02, size=shape).astype(np.float32))
    if numbers_alone is not None:
        start = torch.from_numpy(numbers_alone)
        tensors["classifier.bias"] = start[:1]
        tensors["classifier.weight"][:, width - numbers :] = start[1:]
    return Head(kind, tensors, device)


def mean_of(hidden: torch.Tensor, batch: Batch, segment: int) -> torch.Tensor:
    """Mean hidden state of each row's tokens of one segment, (B, hidden); zeros where it has none."""
    belongs = torch.zeros(len(batch.starts), len(hidden), device=hidden.device)
    tokens = torch.nonzero(batch.segments == segment)[:, 0]
    belongs[batch.pair_of_token[tokens], tokens] = 1.0
    return (belongs @ hidden) / belongs.sum(dim=1, keepdim=True).clamp(min=1.0)
