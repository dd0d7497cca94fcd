"""The settings of every predictor, with their defaults in one place. Imports nothing heavy: web code may read them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from predictors.errors import PredictorError

BUNDLED_CHECKPOINT = "bundled:minilm-l6"


@dataclass(frozen=True)
class LogisticSettings:
    """The logistic regressions have nothing to set: they are unregularised, as in the paper (section 4)."""

    heavy: ClassVar[bool] = False


@dataclass(frozen=True)
class BertSettings:
    """The fine-tuned cross-encoder. The defaults are the paper's training recipe (appendix C).

    checkpoint: `bundled:minilm-l6`, a local folder or a Hugging Face id, for instance google-bert/bert-base-uncased.
    members: networks in the ensemble, their probabilities averaged.
    epochs, batch_size, learning_rate, weight_decay, max_grad_norm: AdamW, linear schedule without warm-up.
    min_steps: at least this many optimiser steps; epochs repeat until it is reached.
    head: `paper` (pooled [CLS] -> linear) or `segments` (means of both texts, their interactions and the outcome).
    head_learning_rate: of the head alone; None means 1e-3 for `segments`, else the learning rate.
    dropout: None keeps the checkpoint's own.
    max_length: tokens of one pair, special ones included; longer pairs lose the ends of both texts fairly.
    frozen_layers: so many of the lowest layers, with the embeddings, stay as the checkpoint has them. What they compute
        is computed once a training row, and once for all members when scoring: a quick ensemble on a small machine.
    token_budget: tokens in one forward pass; a batch above it is worked off in parts, with the same result. None means
        2,048 on a processor, where more is slower and takes more memory, and 32,768 on a GPU.
    bfloat16: True, False or "auto" (where the processor or GPU computes in it).
    device: "auto", "cpu", "cuda", "cuda:1", ...
    """

    heavy: ClassVar[bool] = True

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
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise PredictorError(f"{name}: {value!r} is not a whole number of {least} or more.")
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
        if not any(self.bfloat16 is choice for choice in (True, False)) and self.bfloat16 != "auto":
            raise PredictorError(f"bfloat16: {self.bfloat16!r} is not true, false or 'auto'.")
        for name in ("checkpoint", "device"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise PredictorError(f"{name}: {getattr(self, name)!r} is not a text.")

    @property
    def rate_of_head(self) -> float:
        """Learning rate of the head: a fresh head of many inputs needs larger steps than a pretrained network."""
        if self.head_learning_rate is not None:
            return self.head_learning_rate
        return 1e-3 if self.head == "segments" else self.learning_rate


Settings = LogisticSettings | BertSettings

SETTINGS: dict[str, type[Settings]] = {
    "previous_correct": LogisticSettings,
    "same_task": LogisticSettings,
    "bert": BertSettings,
}


def settings_of(name: str, params: dict[str, Any]) -> Settings:
    """The checked settings of the predictor called `name`, `params` over the defaults.

    Raises:
        PredictorError: no such predictor, no such setting, or a value out of range.
    """
    if name not in SETTINGS:
        raise PredictorError(f"predictor: {name!r} is not known; choose one of {', '.join(sorted(SETTINGS))}.")
    known = [field.name for field in fields(SETTINGS[name])]
    unknown = sorted(set(params) - set(known))
    if unknown:
        choice = f"it has {', '.join(known)}" if known else "it has no settings"
        raise PredictorError(f"params: {name} does not know {', '.join(map(repr, unknown))}; {choice}.")
    return SETTINGS[name](**params)


def _require_number(name: str, value: object, above: float | None = None) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    if not is_number or value < 0 or value == float("inf") or (above is not None and value <= above):  # type: ignore[operator]
        bound = "above 0" if above is not None else "of 0 or more"
        raise PredictorError(f"{name}: {value!r} is not a number {bound}.")
