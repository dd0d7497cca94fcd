"""Predictors by name. Imports an estimator's module only when one is created, so that listing them costs nothing."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from predictors.pairs import Pair, Progress
from predictors.settings import SETTINGS, settings_of

PREDICTORS: dict[str, str] = {
    "previous_correct": "predictors.estimators.logistic.PreviousCorrect",
    "same_task": "predictors.estimators.logistic.SameTask",
    "bert": "predictors.estimators.bert.BertPredictor",
    "embedding_xgboost": "predictors.estimators.embedding_xgboost.EmbeddingXgboost",
    "causal_lm": "predictors.estimators.causal_lm.CausalLmPredictor",
    "llm_prompt": "predictors.estimators.llm_prompt.LlmPrompt",
    "hybrid": "predictors.estimators.hybrid.HybridPredictor",
}


class Estimator(Protocol):
    """The contract of every predictor: scikit-learn's, over pairs."""

    def fit(
        self,
        pairs: list[Pair],
        labels: Any,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Estimator:
        """Learn from n pairs and n labels (0, 1 or fractions), weighted; returns itself."""

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed."""


def names() -> list[str]:
    """The names of all predictors, in alphabetical order."""
    return sorted(PREDICTORS)


def default_params(name: str) -> dict[str, Any]:
    """The settings of the predictor `name` with their defaults; imports nothing heavy."""
    return asdict(settings_of(name, {}))


def is_heavy(name: str) -> bool:
    """Whether training and scoring take long enough to belong on the machine-learning worker."""
    settings_of(name, {})
    return SETTINGS[name].heavy


def create(name: str, params: dict[str, Any] | None = None, seed: int = 0) -> Estimator:
    """An unfitted estimator of the kind `name`, with `params` over its defaults.

    Raises:
        PredictorError: unknown name or setting (the message lists the known ones), or a value out of range.
    """
    settings = settings_of(name, params or {})
    return import_dotted(PREDICTORS[name])(**asdict(settings), random_state=seed)


def import_dotted(path: str) -> Any:
    """The class or function at a dotted path."""
    module, _, attribute = path.rpartition(".")
    return getattr(import_module(module), attribute)
