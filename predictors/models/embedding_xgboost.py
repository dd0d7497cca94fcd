"""Boosted trees over fixed sentence embeddings: a row of table 1. Imports xgboost and scikit-learn."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from predictors.embeddings import embed, source_of
from predictors.errors import CheckpointError, PredictorError
from predictors.features import (
    PAIR_TEXTS,
    Features,
    Row,
    number_columns,
    number_names,
    text_column,
    text_names,
    two_rows,
)
from predictors.models.base import SettingsEstimator, both_classes, write_json
from predictors.pairs import Progress, report
from predictors.settings import EmbeddingXgboostSettings

STATE_FILE, MODEL_FILE = "embedding_xgboost.json", "trees.ubj"
_TREES_BETWEEN_REPORTS = 10
# Columns are drawn for each tree; a number, one column of hundreds, is to be among them nearly always.
_NUMBER_WEIGHT = 20.0
OF_PAIRS = (tuple(PAIR_TEXTS), ("previous_correct",))


class EmbeddingXgboost(SettingsEstimator, settings=EmbeddingXgboostSettings):
    """P(label 1) by XGBoost from the embeddings of the texts, one after the other, and the numbers.

    Of a pair it reads evidence, target and outcome; of features all texts and numbers. The same data, seed, machine
    and number of threads give the same trees, bit for bit. A saved predictor holds its trees, not the embedding model:
    it asks for the same model again, and refuses a local one whose files have changed.
    """

    results = ("loss", "n_examples", "fingerprint", "width")

    def fit(
        self, rows: Sequence[Any], labels: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Learn from n rows with n labels (0, 1 or fractions: two weighted rows each) and n weights.

        `progress(done, total, text)` counts texts to embed, then trees.

        Raises:
            PredictorError: unusable data or settings, or a server of embeddings that fails. CheckpointError: no local
            model. Stopped: progress said so.
        """
        settings: EmbeddingXgboostSettings = self.settings()
        data = self.training_data(rows, labels, sample_weight)
        source = source_of(settings.embeddings)
        is_pairs = not isinstance(data.rows[0], Features)
        self.texts_, self.numbers_ = OF_PAIRS if is_pairs else (text_names(data.rows), number_names(data.rows))
        if not self.texts_:
            raise PredictorError("texts: the rows have none; choose a predictor of numbers, such as logistic.")
        design = self._design(data.rows, progress)
        taken, classes, weights = two_rows(data.labels, data.weights)
        matrix = xgboost.DMatrix(design[taken], classes.astype(np.float32), weight=weights, nthread=_threads())
        columns = np.ones(design.shape[1], dtype=np.float32)
        columns[len(columns) - len(self.numbers_) :] = _NUMBER_WEIGHT * len(columns)
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
        self.n_examples_ = len(data.rows)
        margins = self.booster_.predict(matrix, output_margin=True).astype(np.float64)
        self.loss_ = float(np.average(np.logaddexp(0, margins) - classes * margins, weights=weights))
        return self

    def predict_proba(self, rows: Sequence[Any], progress: Progress | None = None) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): of label 0 and of label 1. `progress` counts texts to embed, then rows.

        Raises:
            PredictorError: a text or number of the training is not among those of the rows.
            CheckpointError: the embedding model is not the one of the training.
        """
        check_is_fitted(self)
        checked = self.checked_rows(rows)
        if source_of(self.embeddings).fingerprint != self.fingerprint_:
            raise CheckpointError(
                f"embeddings: the files of {self.embeddings} have changed since training; restore them."
            )
        if not checked:
            return np.empty((0, 2))
        design = self._design(checked, progress)
        if design.shape[1] != self.width_:
            raise CheckpointError(
                f"embeddings: {self.embeddings} now gives {design.shape[1]} columns, {self.width_} in training; "
                "name the model of the training or train again."
            )
        margins = self.booster_.predict(xgboost.DMatrix(design, nthread=_threads()), output_margin=True)
        report(progress, len(checked), len(checked), f"scored {len(checked)} rows")
        return both_classes(expit(margins.astype(np.float64)))

    def save_files(self, folder: Path) -> None:
        """Write trees and settings into `folder`; called by `artifacts.save`."""
        state = self.saved_state()
        if (self.texts_, self.numbers_) != OF_PAIRS:
            state |= {"texts": self.texts_, "numbers": self.numbers_}
        write_json(folder / STATE_FILE, state)
        self.booster_.save_model(folder / MODEL_FILE)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; called by `artifacts.load`."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        estimator = cls.restored(state)
        texts, numbers = OF_PAIRS
        estimator.texts_, estimator.numbers_ = tuple(state.get("texts", texts)), tuple(state.get("numbers", numbers))
        estimator.booster_ = xgboost.Booster(model_file=folder / MODEL_FILE)
        estimator.booster_.set_param({"nthread": _threads()})
        estimator.n_steps_ = estimator.trees
        return estimator

    def _design(self, rows: Sequence[Row], progress: Progress | None) -> NDArray[np.float32]:
        """The embeddings of the k texts, one after the other, and the m numbers: float32 (n, k d + m)."""
        columns = [text_column(rows, name) for name in self.texts_]
        numbers = number_columns(rows, self.numbers_).astype(np.float32)
        distinct = list(dict.fromkeys(text for texts in zip(*columns, strict=True) for text in texts))
        vectors = embed(distinct, model=self.embeddings, progress=progress)
        place = {text: number for number, text in enumerate(distinct)}
        return np.hstack([*(vectors[[place[text] for text in column]] for column in columns), numbers])


class _Reports(xgboost.callback.TrainingCallback):
    """Reports how many trees there are; Stopped passes through xgboost to the caller."""

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
    """As many as this process was given; named to XGBoost, as OpenMP may have read its limit before that was set."""
    try:
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    except (KeyError, ValueError):
        return os.cpu_count() or 1
