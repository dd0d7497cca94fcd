"""The BERT predictor: cross-encoders fine-tuned on pairs, an ensemble's probabilities averaged (section 4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from tokenizers import Tokenizer

from predictors.errors import PredictorError
from predictors.estimators.checkpoints import read_checkpoint
from predictors.estimators.encoder import build_encoder, compute_dtype, rebuild_encoder
from predictors.estimators.finetuning import Network, predict, train
from predictors.estimators.heads import Head, new_head
from predictors.estimators.shared import both_classes, device_of, part_of_progress, write_json
from predictors.estimators.text import PairTokenizer
from predictors.pairs import Pair, Progress, as_pairs, check_training_data
from predictors.settings import BUNDLED_CHECKPOINT, BertSettings

WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE, STATE_FILE = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "bert.json",
)


class BertMember(ClassifierMixin, BaseEstimator):
    """One network of the ensemble: a pretrained encoder with a head, trained on all rows from its own seed.

    The parameters are those of `BertSettings` without `members`. The same seed, data, machine and number of threads
    give the same weights, bit for bit.
    """

    artifact_kind = "bert_member"

    def __init__(
        self,
        checkpoint: str = BUNDLED_CHECKPOINT,
        epochs: int = 2,
        batch_size: int = 32,
        learning_rate: float = 5e-5,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        min_steps: int = 0,
        head: Literal["paper", "segments"] = "paper",
        head_learning_rate: float | None = None,
        dropout: float | None = None,
        max_length: int = 512,
        frozen_layers: int = 0,
        token_budget: int | None = None,
        bfloat16: bool | Literal["auto"] = "auto",
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.checkpoint = checkpoint
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_grad_norm = max_grad_norm
        self.min_steps = min_steps
        self.head = head
        self.head_learning_rate = head_learning_rate
        self.dropout = dropout
        self.max_length = max_length
        self.frozen_layers = frozen_layers
        self.token_budget = token_budget
        self.bfloat16 = bfloat16
        self.device = device
        self.random_state = random_state

    def settings(self) -> BertSettings:
        """The parameters as checked settings of an ensemble of one."""
        params = self.get_params()
        params.pop("random_state")
        return BertSettings(members=1, **params)

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Fine-tune on n pairs with n labels (0, 1 or fractions) and n weights.

        `progress(done, total, text)` counts optimiser steps.

        Raises:
            PredictorError: unusable data or settings. CheckpointError: no checkpoint. Stopped: progress said so.
        """
        data = check_training_data(pairs, labels, sample_weight)
        settings = self.settings()
        started = perf_counter()
        device = device_of(settings.device)
        dtype = compute_dtype(settings.bfloat16, device)
        checkpoint = read_checkpoint(settings.checkpoint)
        encoder = build_encoder(checkpoint, dtype, device, settings.frozen_layers)
        tokenizer = PairTokenizer(checkpoint.tokenizer, min(settings.max_length, encoder.max_positions))
        generator = np.random.Generator(np.random.SFC64(self.random_state))
        network = Network(
            tokenizer=tokenizer,
            encoder=encoder,
            head=new_head(settings.head, encoder.hidden_size, checkpoint.weights or {}, generator, device),
            dtype=dtype,
            device=device,
        )
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(generator.integers(2**63)))
            run = train(network, settings, data, generator, progress)
        self.network_ = network
        self.classes_ = np.array([0, 1])
        self.loss_ = run.loss
        self.n_steps_ = run.steps
        self.n_examples_ = len(data.pairs)
        self.seconds_ = perf_counter() - started
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. `progress` counts pairs."""
        check_is_fitted(self)
        return both_classes(_ensemble([self], as_pairs(pairs), progress))

    def predict(self, pairs: list[Pair]) -> NDArray[np.int64]:
        """The likelier class of each pair, 0 or 1."""
        return (self.predict_proba(pairs)[:, 1] > 0.5).astype(np.int64)

    def save_files(self, folder: Path) -> None:
        """Write configuration, tokenizer and weights into `folder`: all that `load_files` needs."""
        check_is_fitted(self)
        network = self.network_
        state = {
            "params": self.get_params(),
            "loss": self.loss_,
            "n_steps": self.n_steps_,
            "n_examples": self.n_examples_,
            "max_length": network.tokenizer.max_length,
        }
        weights = {f"encoder.{name}": tensor.contiguous() for name, tensor in network.encoder.state().items()}
        weights |= {f"head.{name}": tensor for name, tensor in network.head.state().items()}
        write_json(folder / CONFIG_FILE, network.encoder.config)
        write_json(folder / STATE_FILE, state)
        network.tokenizer.tokenizer.save(str(folder / TOKENIZER_FILE))
        save_file(weights, folder / WEIGHTS_FILE)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; needs neither the hub nor the checkpoint."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        member = cls(**state["params"])
        settings = member.settings()
        device = device_of(settings.device)
        dtype = compute_dtype(settings.bfloat16, device)
        weights = load_file(folder / WEIGHTS_FILE)
        body = {name.removeprefix("encoder."): t for name, t in weights.items() if name.startswith("encoder.")}
        head = {name.removeprefix("head."): t for name, t in weights.items() if name.startswith("head.")}
        member.network_ = Network(
            tokenizer=PairTokenizer(Tokenizer.from_file(str(folder / TOKENIZER_FILE)), state["max_length"]),
            encoder=rebuild_encoder(folder, config, body, dtype, device, settings.frozen_layers),
            head=Head(settings.head, head, device),
            dtype=dtype,
            device=device,
        )
        member.classes_ = np.array([0, 1])
        member.loss_ = state["loss"]
        member.n_steps_ = state["n_steps"]
        member.n_examples_ = state["n_examples"]
        return member


class BertPredictor(ClassifierMixin, BaseEstimator):
    """The ensemble of table 1: `members` networks from seeds of their own, their probabilities averaged.

    The parameters are those of `BertSettings`. A service that trains each member as a step of its own fits
    `member(0)`, `member(1)`, ... and joins them by `from_members`, with the same result as `fit`.
    """

    artifact_kind = "bert"

    def __init__(
        self,
        checkpoint: str = BUNDLED_CHECKPOINT,
        members: int = 5,
        epochs: int = 2,
        batch_size: int = 32,
        learning_rate: float = 5e-5,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        min_steps: int = 0,
        head: Literal["paper", "segments"] = "paper",
        head_learning_rate: float | None = None,
        dropout: float | None = None,
        max_length: int = 512,
        frozen_layers: int = 0,
        token_budget: int | None = None,
        bfloat16: bool | Literal["auto"] = "auto",
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.checkpoint = checkpoint
        self.members = members
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_grad_norm = max_grad_norm
        self.min_steps = min_steps
        self.head = head
        self.head_learning_rate = head_learning_rate
        self.dropout = dropout
        self.max_length = max_length
        self.frozen_layers = frozen_layers
        self.token_budget = token_budget
        self.bfloat16 = bfloat16
        self.device = device
        self.random_state = random_state

    @classmethod
    def from_members(cls, members: Sequence[BertMember]) -> Self:
        """The fitted ensemble of members that were fitted one by one, perhaps on several machines.

        Raises:
            PredictorError: there are none, or they do not belong together.
            sklearn.exceptions.NotFittedError: one of them was not fitted.
        """
        if not members:
            raise PredictorError("members: there are none; an ensemble needs at least one fitted member.")
        for member in members:
            check_is_fitted(member)
        if len({member.network_.tokenizer.fingerprint for member in members}) > 1:
            raise PredictorError("members: they read texts by different tokenizers; join those of one training.")
        params = {**members[0].get_params(), "members": len(members)}
        ensemble = cls(**params)
        ensemble.members_ = list(members)
        ensemble.classes_ = np.array([0, 1])
        return ensemble

    def member(self, index: int) -> BertMember:
        """The unfitted member number `index`, from 0, with its own seed.

        Raises:
            PredictorError: there is no such member, or a setting is out of range.
        """
        params = self.get_params()
        seed = params.pop("random_state")
        BertSettings(**params)
        if not 0 <= index < self.members:
            raise PredictorError(f"member: {index} is not one of the {self.members} members, counted from 0.")
        params.pop("members")
        return BertMember(**params, random_state=member_seed(seed, index))

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Fit all members, one after another; as `BertMember.fit`. `progress` counts steps of all members."""
        fitted = []
        for index in range(self.members):
            inner = part_of_progress(progress, index, self.members, f"member {index + 1} of {self.members}")
            fitted.append(self.member(index).fit(pairs, labels, sample_weight, inner))
        self.members_ = fitted
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2), averaged over the members. `progress` counts pairs."""
        check_is_fitted(self)
        return both_classes(_ensemble(self.members_, as_pairs(pairs), progress))

    def predict(self, pairs: list[Pair]) -> NDArray[np.int64]:
        """The likelier class of each pair, 0 or 1."""
        return (self.predict_proba(pairs)[:, 1] > 0.5).astype(np.int64)

    def save_files(self, folder: Path) -> None:
        """Write every member into a folder of its own below `folder`."""
        check_is_fitted(self)
        for index, member in enumerate(self.members_):
            inner = folder / f"member-{index:02d}"
            inner.mkdir()
            member.save_files(inner)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote."""
        return cls.from_members([BertMember.load_files(inner) for inner in sorted(folder.glob("member-*"))])


def member_seed(seed: int, index: int) -> int:
    """The seed of member `index` of an ensemble seeded with `seed`: independent streams, equal on every machine."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0])


def _ensemble(members: Sequence[BertMember], pairs: list[Pair], progress: Progress | None) -> NDArray[np.float64]:
    """Mean probability of change, (n,). Pairs are tokenised once for all members."""
    if not pairs:
        return np.empty(0)
    networks = [member.network_ for member in members]
    budget = networks[0].tokens_at_once(members[0].settings())
    return predict(networks, networks[0].tokenizer.tokenise(pairs), budget, progress).mean(axis=0)
