"""The hybrid: a frozen cross-encoder's view of pairs, a teacher's soft labels distilled, people's labels on top.

1. A pretrained cross-encoder reads both texts together, once, and each text alone, which says how similar the two are;
   nothing of it is trained (`hybrid_states`).
2. Where training rows carry a teacher's predicted probabilities, a kernel ridge regression learns the teacher's logits
   as a function of the pair. They hold little noise, so hundreds of them teach what thousands of answers would. How
   much each part of the kernel counts is what makes the teacher's logits likeliest: people's labels are not asked.
3. A Bayesian logistic regression learns the labels of people from that logit, the outcome, whether both questions are
   of one task, their similarity, and a smooth correction whose size the data decide. It is what calibrates: a teacher's
   probabilities may be squeezed together or answer another question, such as one person's change instead of the
   majority's. Where the settings name columns, it also learns from how hard the target is for people or models
   (`predictors.hardness`).

All tuning happens inside `fit`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted
from tokenizers import Tokenizer

from predictors.errors import PredictorError
from predictors.evaluation import negative_log_likelihood
from predictors.features import TrainingData
from predictors.hardness import Given, Hardness
from predictors.majority import (
    are_averages,
    as_responses,
    fit_concentration,
    holds_majorities,
    logit_line,
    majority_probability,
)
from predictors.models.base import SettingsEstimator, both_classes, write_json
from predictors.models.hybrid_models import Landmarks, Likeness, Logistic, Named, Numbers, Ridge, View
from predictors.models.hybrid_states import StateReader, States, cosines
from predictors.networks.checkpoints import read_checkpoint
from predictors.networks.encoder import compute_dtype, device_of, rebuild_encoder
from predictors.networks.text import RowTokenizer
from predictors.pairs import Pair, Progress, report
from predictors.settings import HybridSettings
from predictors.splits import pair_groups

WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE, ARRAYS_FILE, STATE_FILE = (
    "model.safetensors",
    "config.json",
    "tokenizer.json",
    "hybrid.safetensors",
    "hybrid.json",
)

# A teacher of fewer pairs is no teacher: its rows are learnt from as they are.
_MIN_TAUGHT = 20
_MIN_LABEL = 1e-3
_PAIRS_AT_ONCE = 2048
_FOLDS = 5
# Deviations of the priors, in logits: of the base rate where nothing is known of it and where a teacher's logit is
# corrected; of outcome, same task and standardised numbers; of the teacher's standardised logit beyond its scale.
_FREE_BASE, _TAUGHT_BASE, _EFFECT, _TAUGHT_SLOPE = 3.0, 1.5, 1.0, 2.0


class _Rows(NamedTuple):
    """Distinct rows: indices of their pairs, labels, summed weights, answers that each label sums up."""

    pair: NDArray[np.int64]
    labels: Numbers
    weights: Numbers
    responses: NDArray[np.int64]


class HybridPredictor(SettingsEstimator, settings=HybridSettings):
    """See the module. Reads pairs alone; the same seed, data and machine give the same fit.

    `responses` of `fit` says how many answers each label sums up. Labels that are all 0 or 1 although they sum up
    several answers are majorities, others shares. `predict_proba` is then the chance for one person, and
    `predict_majority` that for the majority of several. Without `responses`, `predict_proba` is the chance for
    labels of the kind that were given.
    """

    uses_responses = True
    results = ("concentration", "loss", "n_iter", "n_examples")

    def fit(
        self,
        rows: Sequence[Any],
        labels: Any,
        sample_weight: Any = None,
        progress: Progress | None = None,
        responses: Any = None,
        columns: Given | None = None,
    ) -> Self:
        """Learn from n pairs with n labels (0, 1 or fractions), n weights and n counts of answers.

        A row is a teacher's where its label is neither 0 nor 1, sums up no answers by `responses`, and the
        fractions are not those of few answers (8 of 13). A share of k answers counts as k rows, a majority as one.
        `progress` counts the distinct pairs and texts to be read. columns: those that the settings name, (n,) each.

        Raises:
            PredictorError: unusable data or settings, or a column that is not given. CheckpointError: no checkpoint.
            Stopped: progress said so.
        """
        settings: HybridSettings = self.settings()
        data = self.training_data(rows, labels, sample_weight)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        counts = np.ones(len(data.rows), dtype=np.int64)
        if responses is not None:
            counts = as_responses(responses, len(rows))[weights > 0]
        self.hardness_: Hardness | None = None
        beside: Numbers | None = None
        if settings.columns:
            counting = {name: np.asarray(column)[weights > 0] for name, column in (columns or {}).items()}
            self.hardness_, beside = Hardness.learn(settings.columns, data.rows, data.weights * counts, counting)
        rng = np.random.default_rng(self.random_state)
        device = device_of(settings.device)
        reader = StateReader.from_checkpoint(
            read_checkpoint(settings.checkpoint), settings.max_length, settings.bfloat16, device
        )
        distinct = list(dict.fromkeys(data.rows))
        texts = _texts_of(distinct)
        read = reader.read_each([*distinct, *map(_alone, texts)], progress)
        self.reader_ = reader
        alone = read[len(distinct) :, -1, 1]
        self.text_centre_: States = alone.mean(axis=0)
        similarity = cosines(distinct, dict(zip(texts, alone - self.text_centre_, strict=True)))
        self.similarity_ = np.array([similarity.mean(), similarity.std() or 1.0])
        if beside is not None:
            first = {pair: row for row, pair in reversed(list(enumerate(data.rows)))}
            beside = beside[[first[pair] for pair in distinct]]
        view = _view(distinct, read[: len(distinct)], similarity, beside)
        likeness = Likeness.learn(view, rng)
        taught, answered = _by_source(data, counts, distinct)
        if answered is None and settings.columns:
            raise PredictorError("columns: every row is a teacher's; columns are learnt from answers of people.")
        self.ridge_: Ridge | None = None
        self.logistic_: Logistic | None = None
        self.spread_ = np.array([0.0, 1.0])
        if taught is not None:
            self._fit_ridge(likeness, taught, view, distinct, rng)
        self.concentration_ = float(settings.concentration)
        if answered is not None:
            self._fit_logistic(likeness, answered, view, distinct, rng)
        self.likeness_ = likeness
        self.classes_ = np.array([0, 1])
        self.n_examples_ = len(data.rows)
        self.n_iter_ = self.logistic_.iterations if self.logistic_ is not None else 1
        # What the last learner learnt from: a teacher's rows are only on the way to people's labels.
        fitted = self._changed(view)
        for last in (taught, answered):
            if last is not None:
                loss = negative_log_likelihood(last.labels, fitted[last.pair], last.weights)
                self.loss_ = float(loss or 0.0)
        report(progress, len(read), len(read), f"fitted on {len(data.rows)} rows, loss {self.loss_:.3f}")
        return self

    def predict_proba(
        self, rows: Sequence[Any], progress: Progress | None = None, columns: Given | None = None
    ) -> NDArray[np.float64]:
        """Probabilities of shape (n, 2): belief kept, belief changed. `progress` counts pairs.

        columns: `models`, (n,), where the settings name it. What people stated is never read here.
        """
        check_is_fitted(self)
        pairs: list[Pair] = self.checked_rows(rows)
        changed = np.empty(len(pairs))
        beside = None if self.hardness_ is None else self.hardness_.numbers(pairs, columns)
        alone = self._texts_alone(pairs, progress)
        for first in range(0, len(pairs), _PAIRS_AT_ONCE):
            block = pairs[first : first + _PAIRS_AT_ONCE]

            def inside(done: int, _total: int, _text: str, first: int = first) -> None:
                report(progress, first + done, len(pairs), f"scored {first + done} of {len(pairs)} pairs")

            states = self.reader_.read(block, self.token_budget, inside)
            mine = None if beside is None else beside[first : first + len(block)]
            changed[first : first + len(block)] = self._changed(_view(block, states, cosines(block, alone), mine))
        return both_classes(changed)

    def _texts_alone(self, pairs: Sequence[Pair], progress: Progress | None) -> dict[str, States]:
        """What the network makes of each text alone, about the centre."""
        texts = _texts_of(pairs)
        states_by_text: dict[str, States] = {}
        for first in range(0, len(texts), _PAIRS_AT_ONCE):
            block = texts[first : first + _PAIRS_AT_ONCE]

            def inside(done: int, _total: int, _text: str, first: int = first) -> None:
                report(progress, 0, len(pairs), f"read {first + done} of {len(texts)} texts")

            states = self.reader_.read([_alone(text) for text in block], self.token_budget, inside)
            states_by_text |= dict(zip(block, states[:, -1, 1] - self.text_centre_, strict=True))
        return states_by_text

    def predict_majority(
        self, pairs: list[Pair], responses: Any, progress: Progress | None = None, columns: Given | None = None
    ) -> NDArray[np.float64]:
        """P(more than half of `responses` people change), (n,); `responses` is one count or one a pair. `columns` as in
        `predict_proba`.

        For a predictor that was fitted on single answers, on shares, or on majorities with their counts.
        """
        probabilities = self.predict_proba(pairs, progress, columns)[:, 1]
        return majority_probability(probabilities, responses, self.concentration_)

    def save_files(self, folder: Path) -> None:
        """Write encoder, tokenizer and both learners into `folder`: all that `load_files` needs."""
        state = self.saved_state()
        reader = self.reader_
        arrays: dict[str, NDArray[np.generic]] = {
            "likeness.centre": self.likeness_.centre,
            "likeness.scale": self.likeness_.scale,
            "likeness.similarity_scale": np.array([self.likeness_.similarity_scale]),
            "spread": self.spread_,
            "similarity": self.similarity_,
            "text_centre": self.text_centre_,
        }
        if self.ridge_ is not None:
            arrays |= {f"ridge.{key}": value for key, value in self.ridge_.arrays().items()}
        if self.logistic_ is not None:
            arrays |= {f"logistic.{key}": value for key, value in self.logistic_.arrays().items()}
        state |= {"max_length": reader.tokenizer.max_length, "frozen_layers": reader.encoder.frozen_layers}
        if self.hardness_ is not None:
            state |= {"hardness": self.hardness_.state()}
        write_json(folder / CONFIG_FILE, reader.encoder.config)
        write_json(folder / STATE_FILE, state)
        reader.tokenizer.tokenizer.save(str(folder / TOKENIZER_FILE))
        save_file({name: tensor.contiguous() for name, tensor in reader.encoder.state().items()}, folder / WEIGHTS_FILE)
        save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / ARRAYS_FILE)

    @classmethod
    def load_files(cls, folder: Path) -> Self:
        """Read back what `save_files` wrote; needs neither the hub nor the checkpoint."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        arrays = load_arrays(folder / ARRAYS_FILE)
        hybrid = cls.restored(state)
        device = device_of(hybrid.device)
        dtype = compute_dtype(hybrid.bfloat16, device)
        weights = load_file(folder / WEIGHTS_FILE)
        hybrid.reader_ = StateReader(
            RowTokenizer(Tokenizer.from_file(str(folder / TOKENIZER_FILE)), state["max_length"]),
            rebuild_encoder(folder, config, weights, dtype, device, state["frozen_layers"]),
            dtype,
            device,
        )
        scale = float(arrays["likeness.similarity_scale"][0])
        likeness = Likeness(arrays["likeness.centre"], arrays["likeness.scale"], scale)
        ridge, logistic = _under(arrays, "ridge."), _under(arrays, "logistic.")
        hybrid.likeness_ = likeness
        hybrid.hardness_ = Hardness(hybrid.columns, state["hardness"]) if "hardness" in state else None
        hybrid.spread_ = arrays["spread"]
        hybrid.text_centre_ = arrays["text_centre"]
        hybrid.similarity_ = arrays["similarity"]
        hybrid.ridge_ = Ridge.from_arrays(likeness, ridge) if ridge else None
        hybrid.logistic_ = Logistic.from_arrays(likeness, logistic, state["n_iter"]) if logistic else None
        return hybrid

    def _fit_ridge(
        self,
        likeness: Likeness,
        rows: _Rows,
        view: View,
        distinct: Sequence[Pair],
        rng: np.random.Generator,
    ) -> None:
        mine = view.take(rows.pair)
        labels = np.clip(rows.labels, _MIN_LABEL, 1 - _MIN_LABEL)
        logits = np.log(labels) - np.log1p(-labels)
        marks = Landmarks.choose(likeness, mine, self.landmarks, rng)
        marks = marks.with_shares_of(mine, logits, rows.weights, rng)
        groups = pair_groups([distinct[number] for number in rows.pair])
        self.ridge_ = Ridge.fit(marks, mine, logits, rows.weights, groups)
        self.spread_ = np.array([np.average(logits, weights=rows.weights), logits.std() or 1.0])

    def _fit_logistic(
        self,
        likeness: Likeness,
        rows: _Rows,
        view: View,
        distinct: Sequence[Pair],
        rng: np.random.Generator,
    ) -> None:
        pairs = [distinct[number] for number in rows.pair]
        mine = view.take(rows.pair)
        # The correction is smoother than the teacher and never needs as many landmarks.
        marks = Landmarks.choose(likeness, mine, max(1, self.landmarks // 2), rng)
        basis = marks.basis()
        smooth = marks.kernel(mine) @ basis
        named = self._named(mine)
        majorities = holds_majorities(rows.labels, rows.responses)
        counts = np.ones_like(rows.responses) if majorities else rows.responses
        weights = rows.weights * counts
        if majorities:
            # A row's logit is that of its majority: a line over the logit of one person.
            intercept, slope = logit_line(rows.responses, self.concentration_)
            lined = Named(named.values * slope[:, None], named.spread, intercept + slope * named.offset)
            self.logistic_ = Logistic.fit(marks, basis, lined, smooth * slope[:, None], rows.labels, weights)
            return
        self.logistic_ = Logistic.fit(marks, basis, named, smooth, rows.labels, weights)
        groups = pair_groups(pairs)
        fold = rng.permutation(groups.max() + 1)[groups] % _FOLDS
        if (counts > 1).any() and groups.max() + 1 >= 2 * _FOLDS:
            # How far shares scatter about predictions is seen only on rows that were not learnt from.
            predicted = np.empty(len(pairs))
            best = (self.logistic_.likeliest_variance(),)
            for number in range(_FOLDS):
                learn, left = fold != number, fold == number
                part = Logistic.fit(
                    marks, basis, _taken(named, learn), smooth[learn], rows.labels[learn], weights[learn], best
                )
                predicted[left] = part.predict_smooth(smooth[left], _taken(named, left))
            self.concentration_ = fit_concentration(
                predicted, rows.labels, rows.responses, rows.weights, default=self.concentration_
            )

    def _named(self, view: View) -> Named:
        similarity = (view.similarity - self.similarity_[0]) / self.similarity_[1]
        columns, spread = [np.ones(len(view.sides)), view.sides, view.same_task, similarity], [_EFFECT] * 3
        if view.beside is not None:
            columns += list(view.beside.T)
            spread += [_EFFECT] * view.beside.shape[1]
        if self.ridge_ is None:
            return Named(np.column_stack(columns), np.array([_FREE_BASE, *spread]), np.zeros(len(view.sides)))
        logits = self.ridge_.predict(view)
        columns.append((logits - self.spread_[0]) / self.spread_[1])
        return Named(np.column_stack(columns), np.array([_TAUGHT_BASE, *spread, _TAUGHT_SLOPE]), logits)

    def _changed(self, view: View) -> Numbers:
        named = self._named(view)
        if self.logistic_ is None:
            return expit(named.offset)
        return self.logistic_.predict(view, named)


def _by_source(
    data: TrainingData, responses: NDArray[np.int64], distinct: Sequence[Pair]
) -> tuple[_Rows | None, _Rows | None]:
    """The teacher's rows and the people's, repeated rows of a pair summed up; None where there are none."""
    place = {pair: number for number, pair in enumerate(distinct)}
    number = np.array([place[pair] for pair in data.rows], dtype=np.int64)
    soft = (data.labels > 0) & (data.labels < 1) & (responses == 1)
    taught = set(pair_groups([data.rows[row] for row in np.flatnonzero(soft)]).tolist())
    if len(taught) < _MIN_TAUGHT or are_averages(data.labels[soft]):
        soft[:] = False

    def rows(part: NDArray[np.bool_]) -> _Rows | None:
        if not part.any():
            return None
        if (responses[part] > 1).any():
            return _Rows(number[part], data.labels[part], data.weights[part], responses[part])
        # Single answers are learnt from as the mean of their pair.
        pair, row = np.unique(number[part], return_inverse=True)
        total: Numbers = np.bincount(row, weights=data.weights[part]).astype(np.float64)
        mean: Numbers = np.bincount(row, weights=data.weights[part] * data.labels[part]) / total
        return _Rows(pair, np.clip(mean, 0.0, 1.0), total, np.ones(len(pair), dtype=np.int64))

    return rows(soft), rows(~soft)


def _view(pairs: Sequence[Pair], states: States, similarity: Numbers, beside: Numbers | None) -> View:
    sides = np.array([2.0 * pair.outcome - 1.0 for pair in pairs])
    same_task = np.array([float(pair.evidence_task == pair.target_task) for pair in pairs])
    return View(states, sides, similarity, same_task, beside)


def _texts_of(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(text for pair in pairs for text in (pair.evidence_text, pair.target_text)))


def _alone(text: str) -> Pair:
    """A pair that holds this text as target, and nothing else."""
    return Pair("", text, "", "", 1)


def _taken(named: Named, rows: NDArray[np.bool_]) -> Named:
    return Named(named.values[rows], named.spread, named.offset[rows])


def _under(arrays: dict[str, NDArray], prefix: str) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
