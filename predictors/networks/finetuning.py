"""The training loop and the scoring loop of the BERT predictor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from predictors.errors import PredictorError
from predictors.features import Row, TrainingData
from predictors.pairs import Progress, report
from predictors.settings import BertSettings

from .encoder import Batch, Dropout, Encoder, FlatWeights, to_batch, tokens_at_once
from .heads import Head
from .text import Inputs, RowTokenizer, TokenRow

_STEPS_BETWEEN_REPORTS = 5
# What frozen layers computed is kept for so many bytes of training rows; the rest is computed again in every epoch.
_KEPT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Network:
    """A tokenizer, an encoder and a head, with what they read, and where and in what they compute."""

    tokenizer: RowTokenizer
    inputs: Inputs
    encoder: Encoder
    head: Head
    dtype: torch.dtype
    device: torch.device

    def tokenise(self, rows: Sequence[Row]) -> list[TokenRow]:
        """Checked rows as tokens; errors as in `RowTokenizer.tokenise`."""
        return self.tokenizer.tokenise(rows, self.inputs)

    def batch(self, rows: Sequence[TokenRow]) -> Batch:
        """Rows, sorted by falling length, on the device."""
        return to_batch(self.tokenizer.lay_out(rows), self.dtype, self.device)

    def logits(self, batch: Batch, dropout: Dropout | None = None, below: torch.Tensor | None = None) -> torch.Tensor:
        """Logits of label 1, (B,); `below` as in `Encoder.encode`."""
        return self.head.logits(self.encoder.encode(batch, dropout, below), batch, dropout)

    def batches(self, rows: Sequence[TokenRow], token_budget: int | None) -> Iterator[tuple[NDArray[np.int64], Batch]]:
        """Row numbers and batches of rows of like length, up to `token_budget` tokens each."""
        for chosen in self.tokenizer.by_length(rows, tokens_at_once(token_budget, self.device)):
            yield chosen, self.batch([rows[row] for row in chosen])


class TrainingRun(NamedTuple):
    """What training did: optimiser steps, and the mean loss in nats over the last epoch's worth of them."""

    steps: int
    loss: float


def train(
    network: Network,
    settings: BertSettings,
    data: TrainingData,
    generator: np.random.Generator,
    progress: Progress | None,
) -> TrainingRun:
    """Fine-tune in place: AdamW, linear schedule without warm-up, gradient norm clipped, weighted cross-entropy.

    A fractional label enters as the cross-entropy against that fraction, which equals two weighted rows.

    Raises:
        Stopped: `progress` returned False. PredictorError: the loss left the finite numbers.
    """
    tokens = network.tokenise(data.rows)
    steps_an_epoch = -(-len(tokens) // settings.batch_size)
    steps = max(settings.epochs * steps_an_epoch, settings.min_steps)
    rate = network.encoder.default_dropout if settings.dropout is None else settings.dropout
    dropout = Dropout(rate, generator)
    body = network.encoder.begin_training(network.tokenizer.used_ids(tokens))
    heads = [network.head.pretrained, network.head.fresh]
    for buffer in heads:
        buffer.begin_training()
    optimiser = _Optimiser([*body, network.head.pretrained], [network.head.fresh], settings, steps)
    losses: list[torch.Tensor] = []
    below = _Below(network, tokens) if network.encoder.frozen_layers else None
    try:
        for step, rows in enumerate(random_batches(len(tokens), settings.batch_size, steps, generator)):
            losses.append(_gradients(network, settings, data, tokens, rows, dropout, below))
            optimiser.step(step)
            if (step + 1) % _STEPS_BETWEEN_REPORTS == 0 or step + 1 == steps:
                recent = float(torch.stack(losses[-steps_an_epoch:]).mean())
                if not np.isfinite(recent):
                    raise PredictorError("learning_rate: training diverged (the loss is not a number); lower it.")
                report(progress, step + 1, steps, f"step {step + 1} of {steps}, loss {recent:.3f}")
    finally:
        for buffer in heads:
            buffer.end_training()
        network.encoder.end_training(optimiser.kept)
    return TrainingRun(steps, float(torch.stack(losses[-steps_an_epoch:]).mean()))


def predict(
    networks: Sequence[Network], tokens: Sequence[TokenRow], token_budget: int | None, progress: Progress | None
) -> NDArray[np.float64]:
    """Probabilities of label 1 by every network, (networks, n).

    Batches hold rows of like length, up to `token_budget` tokens. Networks with the same frozen layers share what
    these compute. All networks must have the tokenizer and inputs of the first.
    """
    probabilities = np.empty((len(networks), len(tokens)), dtype=np.float64)
    shared = share_frozen_layers(networks)
    done = 0
    with torch.inference_mode():
        for rows, batch in networks[0].batches(tokens, token_budget):
            below = networks[0].encoder.below(batch) if shared else None
            for number, network in enumerate(networks):
                logits = network.logits(batch, below=below)
                probabilities[number, rows] = torch.sigmoid(logits.double()).cpu().numpy()
            done += len(rows)
            report(progress, done, len(tokens), f"scored {done} of {len(tokens)} rows")
    return probabilities


def share_frozen_layers(networks: Sequence[Network]) -> bool:
    """Whether several networks have frozen layers, the same ones, so that one pass through these serves all."""
    if len(networks) == 1 or not all(network.encoder.frozen_layers for network in networks):
        return False
    return len({network.encoder.frozen_digest() for network in networks}) == 1


class _Below:
    """What the frozen layers make of each training row, computed when first asked for and kept while there is room."""

    def __init__(self, network: Network, tokens: Sequence[TokenRow]) -> None:
        self.network, self.tokens = network, tokens
        self.kept: dict[int, torch.Tensor] = {}
        self.room = _KEPT_BYTES

    def states(self, rows: NDArray[np.int64]) -> torch.Tensor:
        """Hidden states of `rows`, which are sorted by falling length, one after another: (T, hidden)."""
        missing = [int(row) for row in rows if int(row) not in self.kept]
        new_states = {}
        if missing:
            batch = self.network.batch([self.tokens[row] for row in missing])
            lengths = [self.network.tokenizer.length(self.tokens[row]) for row in missing]
            new_states = dict(zip(missing, self.network.encoder.below(batch).split(lengths), strict=True))
        states = torch.cat([new_states[row] if row in new_states else self.kept[row] for row in map(int, rows)])
        for row, state in new_states.items():
            size = state.numel() * state.element_size()
            if size <= self.room:
                self.kept[row] = state.clone()
                self.room -= size
        return states


def _gradients(
    network: Network,
    settings: BertSettings,
    data: TrainingData,
    tokens: Sequence[TokenRow],
    rows: NDArray[np.int64],
    dropout: Dropout,
    below: _Below | None,
) -> torch.Tensor:
    """Add one batch's gradients and return its loss. A batch above the token budget is computed in parts."""
    total = torch.zeros((), device=network.device)
    for part, batch in network.batches([tokens[row] for row in rows], settings.token_budget):
        members = rows[part]
        logits = network.logits(batch, dropout, below.states(members) if below else None)
        labels = torch.from_numpy(data.labels[members]).to(network.device, torch.float32)
        weights = torch.from_numpy(data.weights[members]).to(network.device, torch.float32)
        loss = functional.binary_cross_entropy_with_logits(logits, labels, weights, reduction="sum") / len(rows)
        loss.backward()
        total += loss.detach()
    return total


def random_batches(count: int, size: int, steps: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Row numbers of `steps` batches: one random order after another, the last batch of each possibly smaller."""
    made = 0
    while True:
        order = generator.permutation(count)
        for first in range(0, count, size):
            if made == steps:
                return
            yield order[first : first + size]
            made += 1


class _Optimiser:
    """AdamW over flat buffers, the body and the head at their own rates, both falling linearly to 0."""

    def __init__(self, body: list[FlatWeights], fresh: list[FlatWeights], settings: BertSettings, steps: int) -> None:
        self.buffers = [*body, *fresh]
        self.settings, self.steps = settings, steps
        self.kept = 1.0
        self.rates = [settings.learning_rate, settings.rate_of_head]
        groups = [{"params": [buffer.master for buffer in part]} for part in (body, fresh)]
        # Weight decay is done below: in a flat buffer it would also reach biases and norms.
        self.adam = torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=0.0, fused=True)
        self.decayed = [[view for buffer in part for view in buffer.decayed()] for part in (body, fresh)]

    def step(self, number: int) -> None:
        """Clip, move all weights at the rates of step `number` (from 0), and clear the gradients."""
        for buffer in self.buffers:
            buffer.collect_gradient()
        torch.nn.utils.clip_grad_norm_([buffer.master for buffer in self.buffers], self.settings.max_grad_norm)
        left = 1 - number / self.steps
        for group, rate, decayed in zip(self.adam.param_groups, self.rates, self.decayed, strict=True):
            group["lr"] = rate * left
            if self.settings.weight_decay:
                for view in decayed:
                    view.mul_(1 - rate * left * self.settings.weight_decay)
        self.kept *= 1 - self.rates[0] * left * self.settings.weight_decay
        self.adam.step()
        for buffer in self.buffers:
            buffer.after_step()
