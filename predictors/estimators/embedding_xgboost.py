"""Boosted trees over fixed sentence embeddings: a row of table 1. Imports xgboost and scikit-learn's base class."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from predictors.embeddings import embed, source_of
from predictors.errors import CheckpointError
from predictors.pairs import Pair, Progress, as_pairs, check_training_data, report
from predictors.settings import BUNDLED_CHECKPOINT, EmbeddingXgboostSettings

STATE_FILE, MODEL_FILE = "embedding_xgboost.json", "trees.ubj"
_TREES_BETWEEN_REPORTS = 10
# Columns are drawn for each tree; the outcome, one of hundreds, is to be among them nearly always.
_OUTCOME_WEIGHT = 20.0


class EmbeddingXgboost(ClassifierMixin, BaseEstimator):
    """P(change) by XGBoost from the embeddings of evidence and target, one after the other, and the outcome.

    The parameters are those of `EmbeddingXgboostSettings`. The same data, seed, machine and number of threads give
    the same trees, bit for bit. A saved predictor holds its trees, not the embedding model: it asks for the same
    model again, and refuses a local one whose files have changed.
    """

    artifact_kind = "embedding_xgboost"

    def __init__(
        self,
        embeddings: str = BUNDLED_CHECKPOINT,
        trees: int = 300,
        depth: int = 4,
        learning_rate: float = 0.03,
        subsample: float = 0.7,
        column_sample: float = 0.3,
        min_child_weight: float = 2.0,
        l2: float = 1.0,
        random_state: int = 0,
    ) -> None:
        self.embeddings = embeddings
        self.trees = trees
        self.depth = depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.column_sample = column_sample
        self.min_child_weight = min_child_weight
        self.l2 = l2
        self.random_state = random_state

    def settings(self) -> EmbeddingXgboostSettings:
        """The parameters as checked settings."""
        params = self.get_params()
        params.pop("random_state")
        return EmbeddingXgboostSettings(**params)

    def fit(self, pairs: list[Pair], labels: Any, sample_weight: Any = None, progress: Progress | None = None) -> Self:
        """Learn from n pairs with n labels (0, 1 or fractions: two weighted rows each) and n weights.

        `progress(done, total, text)` counts texts to embed, then trees.

        Raises:
            PredictorError: unusable data or settings, or a server of embeddings that fails. CheckpointError: no local
            model. Stopped: progress said so.
        """
        settings = self.settings()
        data = check_training_data(pairs, labels, sample_weight)
        source = source_of(settings.embeddings)
        design = self._design(data.pairs, progress)
        rows = np.concatenate([np.flatnonzero(data.labels > 0), np.flatnonzero(data.labels < 1)])
        ones = int((data.labels > 0).sum())
        outcomes = np.zeros(len(rows), dtype=np.float32)
        outcomes[:ones] = 1
        weights = data.weights * data.labels
        weights = np.concatenate([weights[rows[:ones]], (data.weights - weights)[rows[ones:]]])
        matrix = xgboost.DMatrix(design[rows], outcomes, weight=weights, nthread=_threads())
        columns = np.ones(design.shape[1], dtype=np.float32)
        columns[-1] = _OUTCOME_WEIGHT * len(columns)
        matrix.set_info(feature_weights=columns)
        self.booster_ = xgboost.train(
            _parameters(settings, self.random_state),
            matrix,
            num_boost_round=settings.trees,
            callbacks=[_Reports(progress, settings.trees)],
        )
        self.fingerprint_ = source.fingerprint
        self.width_ = design.shape[1]
        self.classes_ = np.array([0, 1])
        self.n_steps_ = settings.trees
        self.n_examples_ = len(data.pairs)
        margins = self.booster_.predict(matrix, output_margin=True).astype(np.float64)
        self.loss_ = float(np.average(np.logaddexp(0, margins) - outcomes * margins, weights=weights))
        return self

    def predict_proba(self, pairs: list[Pair], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. `progress` counts texts to embed, then pairs.

        Raises:
            CheckpointError: the embedding model is not the one of the training.
        """
        check_is_fitted(self)
        rows = as_pairs(pairs)
        if source_of(self.embeddings).fingerprint != self.fingerprint_:
            raise CheckpointError(
                f"embeddings: the files of {self.embeddings} have changed since training; restore them."
            )
        if not rows:
            return np.empty((0, 2))
        design = self._design(rows, progress)
        if design.shape[1] != self.width_:
            raise CheckpointError(
                f"embeddings: {self.embeddings} now gives {design.shape[1]} columns, {self.width_} in training; "
                "name the model of the training or train again."
            )
        margins = self.booster_.predict(xgboost.DMatrix(design, nthread=_threads()), output_margin=True)
        changed = 1 / (1 + np.exp(-margins.astype(np.float64)))
        report(progress, len(rows), len(rows), f"scored {len(rows)} pairs")
        return np.column_stack([1 - changed, changed])

    def predict(self, pairs: list[Pair]) -> NDArray[np.int64]:
        """The likelier class of each pair, 0 or 1."""
        return (self.predict_proba(pairs)[:, 1] > 0.5).astype(np.int64)

    def save_files(self, folder: Path) -> None:
        """Write trees and settings into `folder`; called by `artifacts.save`."""
        check_is_fitted(self)
        state = {
            "params": self.get_params(),
            "fingerprint": self.fingerprint_,
            "width": self.width_,
            "loss": self.loss_,
            "n_examples": self.n_examples_,
        }
        (folder / STATE_FILE).write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        self.booster_.save_model(folder / MODEL_FILE)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        estimator = cls(**state["params"])
        estimator.booster_ = xgboost.Booster(model_file=folder / MODEL_FILE)
        estimator.booster_.set_param({"nthread": _threads()})
        estimator.fingerprint_ = state["fingerprint"]
        estimator.width_ = state["width"]
        estimator.classes_ = np.array([0, 1])
        estimator.n_steps_ = estimator.trees
        estimator.n_examples_ = state["n_examples"]
        estimator.loss_ = state["loss"]
        return estimator

    def _design(self, pairs: Sequence[Pair], progress: Progress | None) -> NDArray[np.float32]:
        """Embedding of the evidence, embedding of the target, outcome: float32 (n, 2 d + 1)."""
        texts = list(dict.fromkeys(text for pair in pairs for text in (pair.evidence_text, pair.target_text)))
        vectors = embed(texts, model=self.embeddings, progress=progress)
        place = {text: number for number, text in enumerate(texts)}
        evidence = vectors[[place[pair.evidence_text] for pair in pairs]]
        target = vectors[[place[pair.target_text] for pair in pairs]]
        outcome = np.array([[pair.outcome] for pair in pairs], dtype=np.float32)
        return np.hstack([evidence, target, outcome])


class _Reports(xgboost.callback.TrainingCallback):
    """Tells how many trees there are; Stopped passes through xgboost to the caller."""

    def __init__(self, progress: Progress | None, trees: int) -> None:
        super().__init__()
        self.progress, self.trees = progress, trees

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        done = epoch + 1
        if done % _TREES_BETWEEN_REPORTS == 0 or done == self.trees:
            report(self.progress, done, self.trees, f"tree {done} of {self.trees}")
        return False


def _parameters(settings: EmbeddingXgboostSettings, seed: int) -> dict[str, Any]:
    """XGBoost's own names."""
    return {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": settings.depth,
        "eta": settings.learning_rate,
        "subsample": settings.subsample,
        "colsample_bytree": settings.column_sample,
        "min_child_weight": settings.min_child_weight,
        "lambda": settings.l2,
        "seed": seed,
        "nthread": _threads(),
        "verbosity": 0,
    }


def _threads() -> int:
    """As many as this process was given. XGBoost is told, as OpenMP may have read its limit before that was set."""
    try:
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    except (KeyError, ValueError):
        return os.cpu_count() or 1
