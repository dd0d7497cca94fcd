"""The settings of predictors. Their defaults stand here alone: estimators take their parameters from these classes.

Imports nothing heavy: web code may read them. `predictors.registry` says whose settings they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from predictors.errors import PredictorError

BUNDLED_CHECKPOINT = "bundled:minilm-l6"


@dataclass(frozen=True)
class NoSettings:
    """Nothing to set."""


@dataclass(frozen=True)
class LogisticSettings:
    """Logistic regression without a penalty, as in the paper (section 4).

    numbers: the names of the numbers that it reads; empty means all that the training rows have.
    """

    numbers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.numbers, str) or not isinstance(self.numbers, Sequence):
            raise PredictorError(f"numbers: {self.numbers!r} is not a list of names.")
        for name in self.numbers:
            _require_text("numbers", name)
        if len(set(self.numbers)) < len(self.numbers):
            raise PredictorError(f"numbers: {', '.join(self.numbers)} names one twice; name each once.")
        object.__setattr__(self, "numbers", tuple(self.numbers))  # A list where it was read from a file.


@dataclass(frozen=True)
class BertSettings:
    """The fine-tuned encoder of texts. The defaults are the paper's training recipe (appendix C).

    checkpoint: `bundled:minilm-l6`, a local folder or a Hugging Face id, for instance google-bert/bert-base-uncased.
    members: networks in the ensemble, their probabilities averaged.
    epochs, batch_size, learning_rate, weight_decay, max_grad_norm: AdamW, linear schedule without warm-up.
    min_steps: at least this many optimiser steps; epochs repeat until it is reached.
    head: `paper` (pooled [CLS] -> linear) or `segments` (means of the first text and of the others, and their
        interactions; of a pair also the outcome). Numbers of features enter either.
    head_learning_rate: of the head alone; None means 1e-3 for `segments`, else the learning rate.
    dropout: None keeps the checkpoint's own.
    max_length: tokens of one row, special ones included; longer rows lose the ends of their longest texts.
    frozen_layers: so many of the lowest layers, with the embeddings, stay as the checkpoint has them. What they compute
        is computed once a training row, and once for all members when scoring: a quick ensemble on a small machine.
    token_budget: tokens in one forward pass; a batch above it is computed in parts, with the same result. None means
        2,048 on a processor, where more is slower and takes more memory, and 32,768 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: str = BUNDLED_CHECKPOINT
    members: int = 5
    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 5e-5
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    min_steps: int = 0
    head: Literal["paper", "segments"] = "paper"
    head_learning_rate: float | None = None
    dropout: float | None = None
    max_length: int = 512
    frozen_layers: int = 0
    token_budget: int | None = None
    bfloat16: bool | Literal["auto"] = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        at_least = {"members": 1, "epochs": 1, "batch_size": 1, "max_length": 16, "min_steps": 0, "frozen_layers": 0}
        if self.token_budget is not None:
            at_least["token_budget"] = 1
        for name, least in at_least.items():
            _require_whole(name, getattr(self, name), least)
        for name in ("learning_rate", "max_grad_norm"):
            _require_number(name, getattr(self, name), above=0.0)
        if self.head_learning_rate is not None:
            _require_number("head_learning_rate", self.head_learning_rate, above=0.0)
        _require_number("weight_decay", self.weight_decay)
        if self.dropout is not None:
            _require_number("dropout", self.dropout)
            if self.dropout >= 1:
                raise PredictorError(f"dropout: {self.dropout!r} must be below 1.")
        if self.head not in ("paper", "segments"):
            raise PredictorError(f"head: {self.head!r} is not known; use 'paper' or 'segments'.")
        _require_bfloat16(self.bfloat16)
        for name in ("checkpoint", "device"):
            _require_text(name, getattr(self, name))

    @property
    def rate_of_head(self) -> float:
        """Learning rate of the head: a fresh head of many inputs needs larger steps than a pretrained network."""
        if self.head_learning_rate is not None:
            return self.head_learning_rate
        return 1e-3 if self.head == "segments" else self.learning_rate


@dataclass(frozen=True)
class EmbeddingXgboostSettings:
    """Boosted trees over fixed sentence embeddings of the texts, and the numbers: of a pair, the outcome (section 4).

    The defaults suit a few hundred to some ten thousand rows: many small, slow trees, each seeing a part of the rows
    and of the hundreds of columns.

    embeddings: `bundled:minilm-l6`, a local folder, a Hugging Face id, `endpoint:MODEL` or `voyage:MODEL` (see
        `predictors.embeddings`).
    trees, depth, learning_rate: boosting rounds, greatest depth of a tree, and how much of each tree is added.
    subsample, column_sample: share of rows and of columns that a tree may use.
    min_child_weight: least sum of p (1 - p) over the rows of a leaf, weights having mean 1.
    l2: penalty on the squared values of leaves.
    """

    embeddings: str = BUNDLED_CHECKPOINT
    trees: int = 300
    depth: int = 4
    learning_rate: float = 0.03
    subsample: float = 0.7
    column_sample: float = 0.3
    min_child_weight: float = 2.0
    l2: float = 1.0

    def __post_init__(self) -> None:
        _require_whole("trees", self.trees, 1)
        _require_whole("depth", self.depth, 1)
        for name in ("learning_rate", "subsample", "column_sample"):
            _require_number(name, getattr(self, name), above=0.0)
            if getattr(self, name) > 1:
                raise PredictorError(f"{name}: {getattr(self, name)!r} must be at most 1.")
        _require_number("min_child_weight", self.min_child_weight)
        _require_number("l2", self.l2)
        _require_text("embeddings", self.embeddings)


@dataclass(frozen=True)
class CausalLmSettings:
    """A causal language model fine-tuned on prompts that end in 0 or 1 (section 4; the defaults are the paper's).

    checkpoint: a local folder or a Hugging Face id of a causal model, for instance meta-llama/Llama-2-7b-hf.
    adaptation: `full` moves every weight; `lora` moves small matrices beside them and saves only those.
    lora_rank, lora_alpha, lora_dropout: of the small matrices; they count for lora_alpha / lora_rank.
    lora_targets: `all-linear`, or names of the layers to adapt with commas between: `q_proj,v_proj`.
    members: networks in the ensemble, each from a seed of its own, their probabilities averaged.
    epochs, batch_size, weight_decay, max_grad_norm: AdamW, linear schedule without warm-up.
    learning_rate: None means 1e-5 for `full` and 2e-4 for `lora`.
    gradient_accumulation: so many batches are added up to one step of the optimiser.
    max_length: tokens of a prompt with its answer; longer ones lose the ends of both questions fairly.
    token_budget: tokens in one forward pass when scoring. None means 1,024 on a processor and 16,384 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: str = "meta-llama/Llama-2-7b-hf"
    adaptation: Literal["full", "lora"] = "full"
    lora_rank: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.05
    lora_targets: str = "all-linear"
    members: int = 1
    epochs: int = 3
    batch_size: int = 4
    learning_rate: float | None = None
    gradient_accumulation: int = 1
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    max_length: int = 1024
    token_budget: int | None = None
    bfloat16: bool | Literal["auto"] = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        for name in ("members", "epochs", "batch_size", "gradient_accumulation", "max_length"):
            _require_whole(name, getattr(self, name), 1)
        _require_whole("lora_rank", self.lora_rank, 1)
        _require_whole("lora_alpha", self.lora_alpha, 1)
        if self.token_budget is not None:
            _require_whole("token_budget", self.token_budget, 1)
        _require_number("max_grad_norm", self.max_grad_norm, above=0.0)
        if self.learning_rate is not None:
            _require_number("learning_rate", self.learning_rate, above=0.0)
        for name in ("weight_decay", "lora_dropout"):
            _require_number(name, getattr(self, name))
        if self.lora_dropout >= 1:
            raise PredictorError(f"lora_dropout: {self.lora_dropout!r} must be below 1.")
        if self.adaptation not in ("full", "lora"):
            raise PredictorError(f"adaptation: {self.adaptation!r} is not known; use 'full' or 'lora'.")
        _require_bfloat16(self.bfloat16)
        for name in ("checkpoint", "device", "lora_targets"):
            _require_text(name, getattr(self, name))

    @property
    def rate(self) -> float:
        """The learning rate: LoRA's fresh matrices need larger steps than pretrained weights."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 2e-4 if self.adaptation == "lora" else 1e-5


@dataclass(frozen=True)
class LlmPromptSettings:
    """A chat model asked with a few examples (section 4). Its server's address and key come from the environment.

    model: a name that the server knows; None means what HUNCH_LLM_MODEL says.
    url_variable, key_variable: the environment variables that hold address and key. They must begin with HUNCH_LLM_,
        so that no study file can have another secret of the machine sent away.
    shots: examples in the prompt, of both classes.
    mode: `exact` (likelihoods of 0 and 1 as the first token), `samples`, or `auto` (exact where the server can).
    samples, temperature, max_tokens: replies drawn for a pair, how freely, and the tokens in one.
    max_characters: of one question; longer ones lose their middle.
    concurrency: requests in flight at once. timeout: seconds for one request.
    """

    model: str | None = None
    url_variable: str = "HUNCH_LLM_URL"
    key_variable: str = "HUNCH_LLM_KEY"
    shots: int = 10
    mode: Literal["auto", "exact", "samples"] = "auto"
    samples: int = 5
    temperature: float = 1.0
    max_tokens: int = 8
    max_characters: int = 4000
    concurrency: int = 4
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.model is not None:
            _require_text("model", self.model)
        for name in ("url_variable", "key_variable"):
            value = getattr(self, name)
            if not isinstance(value, str) or not re.fullmatch(r"HUNCH_LLM_[A-Z0-9_]+", value):
                # Not shown: it may be a key that was put in the wrong place.
                raise PredictorError(f"{name}: needs the name of an environment variable that begins with HUNCH_LLM_.")
        least = {"shots": 0, "samples": 1, "max_tokens": 1, "max_characters": 50, "concurrency": 1}
        for name, lowest in least.items():
            _require_whole(name, getattr(self, name), lowest)
        if self.mode not in ("auto", "exact", "samples"):
            raise PredictorError(f"mode: {self.mode!r} is not known; use 'auto', 'exact' or 'samples'.")
        _require_number("temperature", self.temperature)
        _require_number("timeout", self.timeout, above=0.0)


@dataclass(frozen=True)
class HybridSettings:
    """A frozen cross-encoder's view of pairs, distilled soft labels, people's labels on top; all tuned inside `fit`.

    checkpoint: `bundled:minilm-l6`, a local folder or a Hugging Face id.
    landmarks: training rows that pairs are compared with, at most; more rows than that are learnt from all the same.
    concentration: how closely the share of people who change follows the prediction, where the answers do not show it:
        a share is Beta(p c, (1 - p) c).
    max_length: tokens of one pair, special ones included; longer pairs lose the ends of both texts fairly.
    token_budget: tokens in one forward pass when scoring. None means 2,048 on a processor and 32,768 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    checkpoint: str = BUNDLED_CHECKPOINT
    landmarks: int = 1024
    concentration: float = 5.0
    max_length: int = 512
    token_budget: int | None = None
    bfloat16: bool | Literal["auto"] = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        _require_whole("landmarks", self.landmarks, 1)
        _require_whole("max_length", self.max_length, 16)
        if self.token_budget is not None:
            _require_whole("token_budget", self.token_budget, 1)
        _require_number("concentration", self.concentration, above=0.0)
        _require_bfloat16(self.bfloat16)
        for name in ("checkpoint", "device"):
            _require_text(name, getattr(self, name))


def _require_number(name: str, value: object, above: float | None = None) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    if not is_number or value < 0 or value == float("inf") or (above is not None and value <= above):  # type: ignore[operator]
        bound = "above 0" if above is not None else "of 0 or more"
        raise PredictorError(f"{name}: {value!r} is not a number {bound}.")


def _require_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PredictorError(f"{name}: {value!r} is not a whole number of {least} or more.")


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise PredictorError(f"{name}: {value!r} is not a text.")


def _require_bfloat16(value: object) -> None:
    if not any(value is choice for choice in (True, False)) and value != "auto":
        raise PredictorError(f"bfloat16: {value!r} is not true, false or 'auto'.")
