"""Fine-tuned causal language models, in full or by LoRA: the Llama-2 rows of table 1. Source: section 4, appendix C."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from predictors.errors import PredictorError
from predictors.estimators.bert import member_seed
from predictors.estimators.language_model import LanguageModel, TokenPrompt, pretrained, reloaded
from predictors.estimators.shared import both_classes, part_of_progress, write_json
from predictors.pairs import Pair, Progress, TrainingData, as_pairs, check_training_data, report
from predictors.settings import CausalLmSettings

STATE_FILE = "causal_lm.json"
_TOKENS_ON_CPU, _TOKENS_ON_GPU = 1024, 16384


class _CausalLm(ClassifierMixin, BaseEstimator):
    """The parameters of `CausalLmSettings`, which a member and an ensemble share."""

    def __init__(
        self,
        checkpoint: str = "meta-llama/Llama-2-7b-hf",
        adaptation: Literal["full", "lora"] = "full",
        lora_rank: int = 16,
        lora_alpha: int = 32,
        lora_dropout: float = 0.05,
        lora_targets: str = "all-linear",
        members: int = 1,
        epochs: int = 3,
        batch_size: int = 4,
        learning_rate: float | None = None,
        gradient_accumulation: int = 1,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        max_length: int = 1024,
        token_budget: int | None = None,
        bfloat16: bool | Literal["auto"] = "auto",
        device: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.checkpoint = checkpoint
        self.adaptation = adaptation
        self.lora_rank = lora_rank
        self.lora_alpha = lora_alpha
        self.lora_dropout = lora_dropout
        self.lora_targets = lora_targets
        self.members = members
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.gradient_accumulation = gradient_accumulation
        self.weight_decay = weight_decay
        self.max_grad_norm = max_grad_norm
        self.max_length = max_length
        self.token_budget = token_budget
        self.bfloat16 = bfloat16
        self.device = device
        self.random_state = random_state

    def settings(self) -> CausalLmSettings:
        """The parameters as checked settings."""
        params = self.get_params()
        params.pop("random_state")
        return CausalLmSettings(**params)

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        raise NotImplementedError

    def predict(self, pairs: list[Pair]) -> NDArray[np.int64]:
        """The likelier class of each pair, 0 or 1."""
        return (self.predict_proba(pairs)[:, 1] > 0.5).astype(np.int64)


class CausalLmMember(_CausalLm):
    """One causal model, trained on all rows from its own seed; `members` is 1.

    It learns the answer after the prompt of `predictors.prompts`, and nothing of the prompt. P(change) is exact: the
    likelihoods of " 0" and " 1", normalised over the two. The same seed, data, machine and number of threads give
    the same weights on a processor.
    """

    artifact_kind = "causal_lm_member"

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Fine-tune on n pairs with n labels (0, 1 or fractions: two weighted rows each) and n weights.

        `progress(done, total, text)` counts optimiser steps.

        Raises:
            PredictorError: unusable data or settings. CheckpointError: no checkpoint, or no causal model.
            Stopped: progress said so.
        """
        data = check_training_data(pairs, labels, sample_weight)
        settings = self.settings()
        started = perf_counter()
        generator = np.random.Generator(np.random.SFC64(self.random_state))
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(int(generator.integers(2**63)))
            language_model = pretrained(settings)
            self.n_steps_, self.loss_ = _train(language_model, settings, data, generator, progress)
        self.language_model_ = language_model
        self.classes_ = np.array([0, 1])
        self.n_examples_ = len(data.pairs)
        self.seconds_ = perf_counter() - started
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. `progress` counts pairs."""
        check_is_fitted(self)
        language_model = self.language_model_
        prompts = language_model.tokenizer.tokenise(as_pairs(pairs))
        budget = self.token_budget or (_TOKENS_ON_CPU if language_model.device.type == "cpu" else _TOKENS_ON_GPU)
        changed = np.empty(len(prompts))
        done = 0
        with torch.inference_mode():
            for rows in _parts(prompts, budget):
                scores = language_model.log_likelihoods([prompts[row] for row in rows]).double()
                changed[rows] = torch.sigmoid(scores[:, 1] - scores[:, 0]).cpu().numpy()
                done += len(rows)
                report(progress, done, len(prompts), f"scored {done} of {len(prompts)} pairs")
        return both_classes(changed)

    def save_files(self, folder: Path) -> None:
        """Write settings, tokenizer and weights into `folder`: after LoRA, the adapter's alone."""
        check_is_fitted(self)
        state = {
            "params": self.get_params(),
            "base_digest": self.language_model_.digest,
            "loss": self.loss_,
            "n_steps": self.n_steps_,
            "n_examples": self.n_examples_,
        }
        write_json(folder / STATE_FILE, state)
        self.language_model_.save(folder, self.adaptation)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; an adapter needs its checkpoint again.

        Raises:
            CheckpointError: the checkpoint under an adapter is missing or has changed.
        """
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        member = cls(**state["params"])
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            member.language_model_ = reloaded(folder, member.settings(), state["base_digest"])
        member.classes_ = np.array([0, 1])
        member.loss_ = state["loss"]
        member.n_steps_ = state["n_steps"]
        member.n_examples_ = state["n_examples"]
        return member


class CausalLmPredictor(_CausalLm):
    """An ensemble of `members` causal models from seeds of their own, their probabilities averaged.

    Every member holds a whole model in memory, so that more than one suits small models only. As for the BERT,
    `member(0)`, `member(1)`, ... may be fitted one by one and joined by `from_members`.
    """

    artifact_kind = "causal_lm"

    @classmethod
    def from_members(cls, members: Sequence[CausalLmMember]) -> Self:
        """The fitted ensemble of members that were fitted one by one, perhaps on several machines.

        Raises:
            PredictorError: there are none. sklearn.exceptions.NotFittedError: one of them was not fitted.
        """
        if not members:
            raise PredictorError("members: there are none; an ensemble needs at least one fitted member.")
        for member in members:
            check_is_fitted(member)
        ensemble = cls(**{**members[0].get_params(), "members": len(members)})
        ensemble.members_ = list(members)
        ensemble.classes_ = np.array([0, 1])
        return ensemble

    def member(self, index: int) -> CausalLmMember:
        """The unfitted member number `index`, from 0, with its own seed.

        Raises:
            PredictorError: there is no such member, or a setting is out of range.
        """
        self.settings()
        if not 0 <= index < self.members:
            raise PredictorError(f"member: {index} is not one of the {self.members} members, counted from 0.")
        params = {**self.get_params(), "members": 1, "random_state": member_seed(self.random_state, index)}
        return CausalLmMember(**params)

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Fit all members, one after another; as `CausalLmMember.fit`. `progress` counts steps of all members."""
        fitted = []
        for index in range(self.settings().members):
            inner = part_of_progress(progress, index, self.members, f"member {index + 1} of {self.members}")
            fitted.append(self.member(index).fit(pairs, labels, sample_weight, inner))
        self.members_ = fitted
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2), averaged over the members. `progress` counts pairs of all members."""
        check_is_fitted(self)
        count = len(self.members_)
        columns = []
        for index, member in enumerate(self.members_):
            inner = part_of_progress(progress, index, count, f"member {index + 1} of {count}")
            columns.append(member.predict_proba(pairs, inner)[:, 1])
        return both_classes(np.mean(columns, axis=0))

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
        return cls.from_members([CausalLmMember.load_files(inner) for inner in sorted(folder.glob("member-*"))])


def _train(
    language_model: LanguageModel,
    settings: CausalLmSettings,
    data: TrainingData,
    generator: np.random.Generator,
    progress: Progress | None,
) -> tuple[int, float]:
    """Fine-tune in place; returns the optimiser steps and the mean loss in nats over the last epoch.

    AdamW, linear schedule without warm-up, gradient norm clipped. The loss of a row is the cross-entropy of the answer
    over the whole vocabulary; a fraction f weighs the answer 1 by f and the answer 0 by 1 - f.

    Raises:
        Stopped: `progress` returned False. PredictorError: the loss left the finite numbers.
    """
    prompts = language_model.tokenizer.tokenise(data.pairs)
    answer_weights = data.weights[:, None] * np.column_stack([1 - data.labels, data.labels])
    rows_a_step = settings.batch_size * settings.gradient_accumulation
    steps_an_epoch = -(-len(prompts) // rows_a_step)
    steps = settings.epochs * steps_an_epoch
    moved = [parameter for parameter in language_model.model.parameters() if parameter.requires_grad]
    optimiser = _optimiser(moved, settings)
    losses: list[float] = []
    language_model.model.train()
    for step, rows in enumerate(_steps(len(prompts), rows_a_step, settings.epochs, generator)):
        loss = 0.0
        for first in range(0, len(rows), settings.batch_size):
            part = rows[first : first + settings.batch_size]
            weights = answer_weights[part]
            scores = language_model.log_likelihoods([prompts[row] for row in part], wanted=weights > 0)
            wanted = torch.as_tensor(weights, dtype=torch.float32, device=language_model.device)
            batch_loss = -(wanted * scores).sum() / len(rows)
            batch_loss.backward()
            loss += float(batch_loss.detach())
        if not np.isfinite(loss):
            raise PredictorError("learning_rate: training diverged (the loss is not a number); lower it.")
        losses.append(loss)
        torch.nn.utils.clip_grad_norm_(moved, settings.max_grad_norm)
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * (1 - step / steps)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        recent = float(np.mean(losses[-steps_an_epoch:]))
        report(progress, step + 1, steps, f"step {step + 1} of {steps}, loss {recent:.3f}")
    language_model.model.eval()
    return steps, float(np.mean(losses[-steps_an_epoch:]))


def _optimiser(moved: list[torch.nn.Parameter], settings: CausalLmSettings) -> torch.optim.AdamW:
    """AdamW; weight decay reaches matrices, not biases or norms."""
    matrices = [parameter for parameter in moved if parameter.ndim > 1]
    rest = [parameter for parameter in moved if parameter.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.rate)


def _steps(count: int, size: int, epochs: int, generator: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Row numbers of each step: a random order an epoch, its last step possibly smaller."""
    for _ in range(epochs):
        order = generator.permutation(count)
        for first in range(0, count, size):
            yield order[first : first + size]


def _parts(prompts: Sequence[TokenPrompt], budget: int) -> Iterator[NDArray[np.int64]]:
    """Row numbers by falling length, cut so that a padded batch has at most `budget` tokens, or one prompt."""
    lengths = np.array([prompt.length for prompt in prompts], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        count = max(1, budget // int(lengths[order[first]]))
        yield order[first : first + count]
        first += count
