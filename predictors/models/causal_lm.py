"""Fine-tuned causal language models, in full or by LoRA: the Llama-2 rows of table 1. Source: section 4, appendix C."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from predictors.errors import PredictorError
from predictors.features import TrainingData
from predictors.models.base import (
    Ensemble,
    SettingsEstimator,
    both_classes,
    part_of_progress,
    write_json,
)
from predictors.networks.causal_network import CausalNetwork, TokenPrompt, pretrained, reloaded
from predictors.networks.encoder import tokens_at_once
from predictors.networks.finetuning import random_batches
from predictors.pairs import Progress, report
from predictors.prompts import template_of
from predictors.settings import CausalLmSettings

STATE_FILE = "causal_lm.json"


class CausalLmMember(SettingsEstimator, settings=CausalLmSettings, fixed={"members": 1}):
    """One causal model, trained on all pairs from its own seed.

    It learns the answer after the prompt of its template, as that stood at `fit`, and nothing of the prompt. P(change)
    is exact: the likelihoods of 0 and 1, normalised over the two. The same seed, data, machine and number of threads
    give the same weights on a processor.
    """

    results = ("loss", "n_steps", "n_examples", "template")

    def fit(
        self, rows: Sequence[Any], labels: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Fine-tune on n pairs with n labels (0, 1 or fractions: two weighted rows each) and n weights.

        `progress(done, total, text)` counts optimiser steps.

        Raises:
            PredictorError: unusable data or settings. CheckpointError: no checkpoint, or no causal model.
            Stopped: progress said so.
        """
        data = self.training_data(rows, labels, sample_weight)
        settings: CausalLmSettings = self.settings()
        started = perf_counter()
        generator = np.random.Generator(np.random.SFC64(self.random_state))
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(int(generator.integers(2**63)))
            language_model = pretrained(settings)
            self.n_steps_, self.loss_ = _train(language_model, settings, data, generator, progress)
        self.language_model_ = language_model
        self.template_ = language_model.tokenizer.template.text
        self.classes_ = np.array([0, 1])
        self.n_examples_ = len(data.rows)
        self.seconds_ = perf_counter() - started
        return self

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. `progress` counts pairs."""
        check_is_fitted(self)
        language_model = self.language_model_
        prompts = language_model.tokenizer.tokenise(self.checked_rows(rows))
        budget = tokens_at_once(self.token_budget, language_model.device, on_cpu=1024, on_gpu=16384)
        changed = np.empty(len(prompts))
        done = 0
        with torch.inference_mode():
            for part in _parts(prompts, budget):
                scores = language_model.log_likelihoods([prompts[row] for row in part]).double()
                changed[part] = torch.sigmoid(scores[:, 1] - scores[:, 0]).cpu().numpy()
                done += len(part)
                report(progress, done, len(prompts), f"scored {done} of {len(prompts)} pairs")
        return both_classes(changed)

    def save_files(self, folder: Path) -> None:
        """Write settings, tokenizer and weights into `folder`: after LoRA, the adapter's alone."""
        state = self.saved_state()
        write_json(folder / STATE_FILE, {**state, "base_digest": self.language_model_.digest})
        self.language_model_.save(folder, self.adaptation)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; an adapter needs its checkpoint again.

        Raises:
            CheckpointError: the checkpoint under an adapter is missing or has changed.
        """
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        state.setdefault("template", "change")  # Older ones had its words alone.
        member = cls.restored(state)
        template = template_of(state["template"], "change")
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            member.language_model_ = reloaded(folder, member.settings(), state["base_digest"], template)
        return member


class CausalLmPredictor(Ensemble, settings=CausalLmSettings):
    """An ensemble of `members` causal models from seeds of their own, their probabilities averaged.

    Every member holds a whole model in memory, so that more than one suits small models only.
    """

    member_class = CausalLmMember

    @classmethod
    def check_members(cls, members: Sequence[Any]) -> None:
        """Refuse members that learnt from different prompts."""
        if len({member.template_ for member in members}) > 1:
            raise PredictorError("members: their templates differ; train them all again with one.")

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2), averaged over the members. `progress` counts pairs of all members."""
        check_is_fitted(self)
        count = len(self.members_)
        columns = []
        for index, member in enumerate(self.members_):
            inner = part_of_progress(progress, index, count, f"member {index + 1} of {count}")
            columns.append(member.predict_proba(rows, inner)[:, 1])
        return both_classes(np.mean(columns, axis=0))


def _train(
    language_model: CausalNetwork,
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
    prompts = language_model.tokenizer.tokenise(data.rows)
    answer_weights = data.weights[:, None] * np.column_stack([1 - data.labels, data.labels])
    rows_a_step = settings.batch_size * settings.gradient_accumulation
    steps_an_epoch = -(-len(prompts) // rows_a_step)
    steps = settings.epochs * steps_an_epoch
    moved = [parameter for parameter in language_model.model.parameters() if parameter.requires_grad]
    optimiser = _optimiser(moved, settings)
    losses: list[float] = []
    language_model.model.train()
    for step, rows in enumerate(random_batches(len(prompts), rows_a_step, steps, generator)):
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


def _parts(prompts: Sequence[TokenPrompt], budget: int) -> Iterator[NDArray[np.int64]]:
    """Row numbers by falling length, cut so that a padded batch has at most `budget` tokens, or one prompt."""
    lengths = np.array([prompt.length for prompt in prompts], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        count = max(1, budget // int(lengths[order[first]]))
        yield order[first : first + count]
        first += count
