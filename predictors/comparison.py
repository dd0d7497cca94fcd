"""Predictors side by side on the same test rows: training, predicting, and every figure about it. Light at import.

What table 1, tables 3 and 4 and figure 3 (right) of the paper show, with intervals.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from predictors import registry
from predictors.datasets import PairTable, fit_on, join, predict_on, predicts_majorities
from predictors.errors import PredictorError
from predictors.evaluation import (
    auc_by_group,
    calibration,
    count_log_likelihood,
    evaluate_with_intervals,
    negative_log_likelihood,
    paired_difference,
    parts_by_outcome,
    rank_curve,
    roc_curve,
)
from predictors.evaluation.curves import Calibration, GroupAreas, RankPoint
from predictors.evaluation.intervals import Difference, PartMetricsWithIntervals
from predictors.evaluation.metrics import CountLikelihood, Metric
from predictors.hardness import IN_FILES
from predictors.pairs import Progress, report
from predictors.settings import BUNDLED_CHECKPOINT
from predictors.splits import Fold, cross_predict, question_disjoint_split, shares_group, shares_question, split
from predictors.training import columns_of, limit_threads

if TYPE_CHECKING:
    from predictors.majority import MajorityCalibrator

# The rows of table 1 that need neither a large language model nor a server, and our own.
LOCAL = ("previous_correct", "same_task", "embedding_xgboost", "bert", "hybrid")
# The settings of the paper's table 1 (section 4, appendix C), where they are not a predictor's defaults. Which of
# VoyageAI's embeddings it used is not known here.
PAPER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "bert": {
        "checkpoint": "google-bert/bert-base-uncased",
        "head": "paper",
        "members": 5,
        "epochs": 2,
        "batch_size": 32,
        "learning_rate": 5e-5,
        "calibration_share": 0.0,
    },
    "embedding_xgboost": {"embeddings": "voyage:voyage-2"},
    "causal_lm": {"adaptation": "full", "epochs": 3, "batch_size": 4, "learning_rate": 1e-5},
    "llm_prompt": {"shots": 10, "examples": "drawn", "average": "plain"},
}
GROUPINGS = ("evidence_task", "target_task", "task_pair")
SEEDS_ON_CPU, SEEDS_ON_GPU = 2, 5
_SMALL_NETWORK = 100_000_000  # bytes of weights; the bundled network has 91 million


@dataclass(frozen=True)
class Predictions:
    """One predictor's probabilities for n test rows, float64 (n,), NaN where none was made; seconds of work."""

    name: str
    probabilities: NDArray[np.float64]
    seconds: float


@dataclass(frozen=True)
class Contender:
    """A row of a comparison: a predictor under a name of its own, with the settings that differ from its defaults."""

    name: str
    predictor: str
    params: Mapping[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads in addition to the texts: such rows are a table of their own."""
        return columns_of(self.predictor, self.params)

    def with_params(self, **params: Any) -> Contender:
        """The same with further settings; those that are there already stay."""
        return replace(self, params={**params, **self.params})


def with_columns(rows: Sequence[Contender], columns: Sequence[str]) -> list[Contender]:
    """The rows, then each row that can read columns once more with each of them, and with all of them together.

    `same_task` is a regression on two numbers, and so is its row with columns. Rows that name columns themselves stay
    as they are.

    Raises:
        PredictorError: no row can read columns.
    """
    wanted = [(column,) for column in columns] + ([tuple(columns)] if len(columns) > 1 else [])
    more: list[Contender] = []
    for row in rows:
        able = row
        if row.predictor == "same_task":
            able = Contender(row.name, "logistic", {"numbers": ("previous_correct", "same_task")})
        if "columns" in registry.default_params(able.predictor) and not row.columns:
            more += [replace(able.with_params(columns=each), name="_".join([row.name, *each])) for each in wanted]
    if not more:
        able_names = [name for name in registry.names() if "columns" in registry.default_params(name)]
        raise PredictorError(
            f"columns: none of the predictors reads columns; add one of {', '.join(able_names)} or same_task."
        )
    taken = {row.name for row in rows}
    return [*rows, *(row for row in more if row.name not in taken)]


def require_columns(rows: Sequence[Contender], table: PairTable) -> None:
    """Refuse columns that no row of the table has.

    Raises:
        PredictorError: says which column a file needs.
    """
    for name in dict.fromkeys(name for row in rows for name in row.columns):
        values = table.columns([name]).get(name)
        if values is None or not np.isfinite(values).any():
            raise PredictorError(
                f"{table.source}: no row says {IN_FILES[name]}, which the column {name} is read from; add it, or leave "
                f"{name} out."
            )


# The rows of the paper's table 1, in its order.
PAPER_ROWS = (
    Contender("previous_correct", "previous_correct", {}),
    Contender("same_task", "same_task", {}),
    Contender("embedding_xgboost", "embedding_xgboost", {}),
    Contender("bert", "bert", {}),
    Contender("llama2_7b", "causal_lm", {"checkpoint": "meta-llama/Llama-2-7b-hf"}),
    Contender("llama2_13b", "causal_lm", {"checkpoint": "meta-llama/Llama-2-13b-hf"}),
    Contender("gpt35_turbo", "llm_prompt", {"model": "gpt-3.5-turbo", "mode": "exact"}),
    Contender("gpt4", "llm_prompt", {"model": "gpt-4", "mode": "samples", "samples": 5, "temperature": 1.0}),
)


class Curves(TypedDict):
    """What the figures of one predictor are drawn from."""

    roc: list[tuple[float, float]]
    calibration: Calibration
    rank: list[RankPoint]


class PredictorComparison(TypedDict):
    """Everything about predictors on `n` rows; each mapping is by predictor.

    `differences` are against `reference`, which has none itself. `question_disjoint` is about the rows that have no
    question in common with any training row, None where there is no such row. `counts` is there where labels are shares
    of known numbers of answers.
    """

    n: int
    reference: str
    metrics: dict[str, PartMetricsWithIntervals]
    differences: dict[str, dict[Metric, dict[str, Difference]]]
    question_disjoint: dict[str, PartMetricsWithIntervals] | None
    groups: dict[str, dict[str, GroupAreas]]
    curves: dict[str, Curves]
    counts: NotRequired[dict[str, CountLikelihood]]


def local_predictors() -> list[str]:
    """The predictors that are compared where none are named."""
    return [name for name in LOCAL if name in registry.DECLARATIONS]


def default_seeds() -> int:
    """How many networks `bert` averages: as many as the paper where a GPU trains them, 2 otherwise. Imports torch."""
    import torch

    return SEEDS_ON_GPU if torch.cuda.is_available() else SEEDS_ON_CPU


def without_test_pairs(train: PairTable, test: PairTable) -> PairTable:
    """The training rows whose pair is no test pair, its reverse or its other outcome."""
    return train.take(~shares_group(train.pairs, test.pairs))


def train_and_predict(
    name: str,
    params: Mapping[str, Any],
    *,
    seed: int,
    train: PairTable,
    test: PairTable,
    progress: Progress | None = None,
) -> Predictions:
    """Fit the predictor `name` on the training rows and predict the test rows.

    Where the training rows say how many answers a label sums up, test rows that are majorities of n answers get the
    probability of that majority. A predictor that cannot predict it is calibrated for it by cross-validation within the
    training rows (5 folds, 2 for a heavy one).

    Raises:
        PredictorError: unknown name or setting, unusable rows, no checkpoint. Stopped: `progress` returned False.
    """
    started = perf_counter()
    estimator = fit_on(registry.create(name, dict(params), seed), train, progress)
    probabilities = predict_on(estimator, test, progress, majorities=train.says_responses)
    if test.majority.any() and train.says_responses and not predicts_majorities(estimator):
        calibrator = _majority_calibrator(name, params, seed=seed, train=train, progress=progress)
        probabilities = np.where(test.majority, calibrator.predict(probabilities, test.responses), probabilities)
    return _checked(Predictions(name, probabilities, perf_counter() - started))


def folds_of(
    table: PairTable, extra: PairTable | None, *, folds: int, rng: np.random.Generator, question_disjoint: bool = False
) -> tuple[PairTable, list[Fold]]:
    """`table` and `extra` as one, and folds of it that test rows of `table` alone."""
    whole = table if extra is None else join([table, extra])
    if question_disjoint:
        made = question_disjoint_split(whole.pairs, whole.respondents, folds=folds, rng=rng)
    else:
        made = split(whole.pairs, whole.respondents, folds=folds, rng=rng, labels=whole.labels)
    return whole, [replace(fold, test=fold.test[fold.test < len(table)]) for fold in made]


def cross_validate(
    name: str,
    params: Mapping[str, Any],
    *,
    seed: int,
    table: PairTable,
    folds: Sequence[Fold],
    progress: Progress | None = None,
    workers: int = 1,
) -> Predictions:
    """Predict each row that a fold tests, by the predictor `name` fitted on the fold's training rows.

    workers: so many folds at once, each in a process with one thread, for networks that are small and train on a
        processor: the many short steps of one fold do not keep two threads busy.

    Raises:
        PredictorError: as `train_and_predict`; the message names the fold.
    """
    started = perf_counter()
    if workers > 1 and _is_small_network(name, params):
        probabilities = _folds_apart(
            name, params, seed=seed, table=table, folds=folds, progress=progress, workers=workers
        )
    else:
        probabilities = cross_predict(
            lambda: registry.create(name, dict(params), seed), table, folds, progress=progress
        )
    tested = np.isin(np.arange(len(table)), np.concatenate([fold.test for fold in folds]))
    _checked(Predictions(name, probabilities[tested], 0.0))
    return Predictions(name, probabilities, perf_counter() - started)


def _is_small_network(name: str, params: Mapping[str, Any]) -> bool:
    """Whether it trains networks of the bundled one's size at most, and on the processor."""
    settings: Any = registry.settings_of(name, dict(params))
    checkpoint, device = getattr(settings, "checkpoint", ""), getattr(settings, "device", "cpu")
    if not hasattr(settings, "members") or device not in ("auto", "cpu"):
        return False
    if checkpoint != BUNDLED_CHECKPOINT:
        sizes = [path.stat().st_size for path in Path(checkpoint).glob("*.safetensors")]
        if not sizes or sum(sizes) > _SMALL_NETWORK:
            return False
    if device == "cpu":
        return True
    import torch

    return not torch.cuda.is_available()


def _folds_apart(
    name: str,
    params: Mapping[str, Any],
    *,
    seed: int,
    table: PairTable,
    folds: Sequence[Fold],
    progress: Progress | None,
    workers: int,
) -> NDArray[np.float64]:
    """As `cross_predict`, each fold in a process of its own. `progress` counts folds."""
    probabilities = np.full(len(table), np.nan)
    tested = [number for number, fold in enumerate(folds) if len(fold.test)]
    with ProcessPoolExecutor(
        max(1, min(workers, len(tested))),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=limit_threads,
        initargs=(1,),
    ) as pool:
        waiting = {
            pool.submit(
                _predict_fold,
                *(name, dict(params), seed),
                *(table.take(folds[number].train), table.take(folds[number].test), table.says_responses),
            ): number
            for number in tested
        }
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                which = f"fold {waiting[future] + 1} of {len(folds)}"
                try:
                    probabilities[folds[waiting[future]].test] = future.result()
                except PredictorError as exc:
                    raise PredictorError(f"{which}: {exc}") from exc
                report(progress, done, len(waiting), which)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return probabilities


def _predict_fold(
    name: str, params: dict[str, Any], seed: int, train: PairTable, test: PairTable, majorities: bool
) -> NDArray[np.float64]:
    return predict_on(fit_on(registry.create(name, params, seed), train), test, majorities=majorities)


def nested_cross_validate(
    rows: Sequence[tuple[Contender, NDArray[np.bool_]]],
    *,
    seed: int,
    table: PairTable,
    folds: Sequence[Fold],
    inner: int,
    validated: NDArray[np.bool_],
) -> tuple[Predictions, list[str]]:
    """Predict each row that a fold tests by the contender that does best inside the fold's training rows.

    In each fold the contenders are cross-validated in `inner` folds of the fold's training rows, those of them that
    `validated` marks; the one with the lowest negative log-likelihood (the first of equals) is fitted on the training
    rows and predicts the test rows. So the choice has seen no test row, and the figures are those of choosing and
    fitting together (Varma and Simon 2006).

    Args:
        rows: contenders, each with the rows of the table that it may learn from, bool (n,).
        validated: bool (n,), the rows that contenders are chosen by, of all that a fold may learn from.

    Returns:
        Predictions, NaN where no fold tests a row, and the name of the contender chosen in each fold that tests some.

    Raises:
        ValueError: there are no contenders. PredictorError: as `cross_validate`.
    """
    if not rows:
        raise ValueError("rows: there are none to choose from.")
    started = perf_counter()
    probabilities = np.full(len(table), np.nan)
    names = []
    for number, fold in enumerate(folds):
        if not len(fold.test):
            continue
        judged = fold.train[validated[fold.train]]
        rng = np.random.default_rng([seed, number])
        parts = split(
            [table.pairs[row] for row in judged.tolist()],
            None if table.respondents is None else [table.respondents[row] for row in judged.tolist()],
            folds=inner,
            rng=rng,
        )
        losses = []
        for contender, usable in rows:
            within = [_within(fold.train[usable[fold.train]], judged, part, table) for part in parts]
            guessed = cross_validate(
                contender.predictor, contender.params, seed=seed, table=table, folds=within
            ).probabilities[judged]
            has_chance = np.isfinite(guessed)
            losses.append(
                negative_log_likelihood(
                    table.labels[judged][has_chance], guessed[has_chance], table.weights[judged][has_chance]
                )
            )
        best, usable = rows[int(np.argmin([np.inf if loss is None else loss for loss in losses]))]
        chosen = Fold(train=fold.train[usable[fold.train]], test=fold.test, dropped=fold.dropped)
        made = cross_validate(best.predictor, best.params, seed=seed, table=table, folds=[chosen])
        probabilities[fold.test] = made.probabilities[fold.test]
        names.append(best.name)
    return Predictions("nested", probabilities, perf_counter() - started), names


def compare(
    test: PairTable,
    predictions: Iterable[Predictions],
    *,
    train: PairTable | None,
    seed: int,
    samples: int = 1000,
    apart: Collection[str] = (),
) -> PredictorComparison:
    """Measure predictors on the same rows and the same resamples.

    Respondents and pairs are resampled together where respondents are known, else pairs. The reference is `bert` where
    it is there, else the predictor with the highest area under the curve.

    Args:
        train: the training rows, for `question_disjoint`; None leaves that out.
        seed: of the resamples.
        apart: predictors that are no reference unless there are no others: those with columns next to the texts.

    Raises:
        ValueError: there are no predictions.
    """
    columns = {prediction.name: prediction.probabilities for prediction in predictions}
    if not columns:
        raise ValueError("predictions: there are none to compare.")

    def measured(table: PairTable, rows: NDArray[np.bool_]) -> dict[str, PartMetricsWithIntervals]:
        return {
            name: evaluate_with_intervals(
                table.labels,
                column[rows],
                parts_by_outcome(table.outcomes),
                sample_weight=table.weights,
                cluster=_cluster(table),
                rng=np.random.default_rng(seed),
                samples=samples,
            )
            for name, column in columns.items()
        }

    everything = np.ones(len(test), dtype=bool)
    metrics = measured(test, everything)
    eligible = [name for name in columns if name not in apart] or list(columns)
    reference = "bert" if "bert" in eligible else max(eligible, key=lambda name: metrics[name]["auc"]["overall"] or 0.0)
    fresh = everything & False if train is None else ~shares_question(test.pairs, train.pairs)
    predictor_comparison = PredictorComparison(
        n=len(test),
        reference=reference,
        metrics=metrics,
        differences={
            name: paired_difference(
                test.labels,
                column,
                columns[reference],
                parts_by_outcome(test.outcomes),
                sample_weight=test.weights,
                cluster=_cluster(test),
                rng=np.random.default_rng(seed),
                samples=samples,
            )
            for name, column in columns.items()
            if name != reference
        },
        question_disjoint=measured(test.take(fresh), fresh) if fresh.any() else None,
        groups={name: _by_groups(test, column) for name, column in columns.items()},
        curves={name: _curves(test, column) for name, column in columns.items()},
    )
    if test.counted.any():
        counted = test.take(test.counted)
        changed = np.rint(counted.labels * counted.responses)
        predictor_comparison["counts"] = {
            name: count_log_likelihood(changed, counted.responses, column[test.counted])
            for name, column in columns.items()
        }
    return predictor_comparison


def _within(usable: NDArray[np.int64], judged: NDArray[np.int64], part: Fold, table: PairTable) -> Fold:
    """A fold of the rows `judged` as a fold of the table: it learns from the usable rows that share no pair or person
    with what it tests."""
    test = judged[part.test]
    barred = np.isin(usable, judged[np.setdiff1d(np.arange(len(judged)), part.train)])
    if table.respondents is not None:
        barred |= np.isin(np.array(table.respondents)[usable], np.array(table.respondents)[test])
    barred |= shares_group([table.pairs[row] for row in usable.tolist()], [table.pairs[row] for row in test.tolist()])
    return Fold(train=usable[~barred], test=test, dropped=part.dropped)


def _majority_calibrator(
    name: str, params: Mapping[str, Any], *, seed: int, train: PairTable, progress: Progress | None
) -> MajorityCalibrator:
    """From the predictor's probabilities to majorities, learnt on training rows that it had not seen."""
    from predictors.majority import MajorityCalibrator

    folds = split(
        train.pairs,
        train.respondents,
        folds=2 if registry.is_heavy(name) else 5,
        rng=np.random.default_rng(seed),
        labels=train.labels,
    )
    unseen = cross_predict(lambda: registry.create(name, dict(params), seed), train, folds, progress=progress)
    rows = np.isfinite(unseen)
    return MajorityCalibrator().fit(unseen[rows], train.labels[rows], train.responses[rows], train.weights[rows])


def _checked(predictions: Predictions) -> Predictions:
    """Refuse what cannot be measured here, where one predictor fails, and not later, where all would."""
    wrong = ~((predictions.probabilities >= 0) & (predictions.probabilities <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PredictorError(
            f"{predictions.name}: predicted {predictions.probabilities[row]} for row {row}, which is no probability; "
            "its training did not converge, try a lower learning rate."
        )
    return predictions


def _cluster(table: PairTable) -> Any:
    return table.pair_ids if table.respondents is None else (np.array(table.respondents), table.pair_ids)


def _by_groups(test: PairTable, column: NDArray[np.float64]) -> dict[str, GroupAreas]:
    groups: dict[str, list[Any]] = {
        "evidence_task": [pair.evidence_task for pair in test.pairs],
        "target_task": [pair.target_task for pair in test.pairs],
        "task_pair": [(pair.evidence_task, pair.target_task) for pair in test.pairs],
    }
    return {
        grouping: auc_by_group(test.labels, column, groups[grouping], sample_weight=test.weights)
        for grouping in GROUPINGS
    }


def _curves(test: PairTable, column: NDArray[np.float64]) -> Curves:
    roc = roc_curve(test.labels, column, sample_weight=test.weights)
    return Curves(
        roc=list(zip(roc.false_positive_rate.tolist(), roc.true_positive_rate.tolist(), strict=True)),
        calibration=calibration(test.labels, column, sample_weight=test.weights),
        rank=rank_curve(test.labels, column, sample_weight=test.weights),
    )
