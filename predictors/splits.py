"""Splits into training and test rows that share nothing they must not share. Light at import.

A pair, its reverse and its other outcome are one group and never parted. Where respondents are known, no respondent is
on both sides either. Whatever an estimator tunes (embeddings, a stack, a calibration) it tunes inside `fit`, so
nothing is learnt from a test row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from predictors.datasets import PairTable, fit_on, numbered, predict_on
from predictors.errors import PredictorError
from predictors.pairs import Pair, Progress, report
from predictors.registry import Estimator


@dataclass(frozen=True)
class Fold:
    """Indices of the rows to learn from and to measure on; `dropped` rows cross the split and are in neither."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    dropped: int


def pair_groups(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    """A number for each of n pairs, (n,), equal for a pair, its reverse and its other outcome."""
    return numbered([frozenset((pair.evidence_text, pair.target_text)) for pair in pairs])


def shares_group(pairs: Sequence[Pair], others: Sequence[Pair]) -> NDArray[np.bool_]:
    """Which of n pairs are, in either direction and with either outcome, among the others: bool (n,)."""
    groups = pair_groups([*pairs, *others])
    return np.isin(groups[: len(pairs)], groups[len(pairs) :])


def shares_question(pairs: Sequence[Pair], others: Sequence[Pair]) -> NDArray[np.bool_]:
    """Which of n pairs have a question in common with any of the others: bool (n,)."""
    known = {text for pair in others for text in (pair.evidence_text, pair.target_text)}
    return np.array([pair.evidence_text in known or pair.target_text in known for pair in pairs], dtype=bool)


def split(
    pairs: Sequence[Pair],
    respondents: Sequence[Hashable] | None,
    *,
    folds: int,
    rng: np.random.Generator,
    labels: ArrayLike | None = None,
) -> list[Fold]:
    """`folds` folds of n rows, by pairs and by respondents at once.

    Without respondents every row is tested once. With them, groups and respondents are each dealt to the folds; a row
    is tested where both are in the fold, learnt from where neither is, and else dropped there. So a fold tests about
    n / folds^2 rows: the price of measuring on new people and new pairs together.

    Args:
        labels: (n,) in [0, 1]. With them, and without respondents, every fold gets about the same share of labels above
            one half (scikit-learn's `StratifiedGroupKFold`).

    Raises:
        PredictorError: not n respondents, fewer than 2 folds, or fewer groups or respondents than folds.
    """
    groups = pair_groups(pairs)
    fold_of_row = _dealt(groups, folds, rng, "pairs", labels if respondents is None else None)
    person_fold = fold_of_row if respondents is None else _dealt(_people(respondents, len(pairs)), folds, rng, "people")
    made = []
    for fold in range(folds):
        test = (fold_of_row == fold) & (person_fold == fold)
        train = (fold_of_row != fold) & (person_fold != fold)
        made.append(_fold(train, test))
    return made


def question_disjoint_split(
    pairs: Sequence[Pair],
    respondents: Sequence[Hashable] | None = None,
    *,
    folds: int,
    rng: np.random.Generator,
) -> list[Fold]:
    """As `split`, and no question of a test row is in a training row: training rows that share one are dropped.

    Rows that hang together by their questions are dealt to one fold as long as they are no more than a fold's share,
    which keeps the number of dropped rows small.

    Raises:
        PredictorError: as `split`.
    """
    groups = pair_groups(pairs)
    component = _components(pairs)
    small = np.bincount(component)[component] <= len(pairs) / max(folds, 1) if len(pairs) else np.empty(0, dtype=bool)
    units = [("questions", c) if whole else ("pair", g) for whole, c, g in zip(small, component, groups, strict=True)]
    fold_of_row = _dealt(numbered(units), folds, rng, "pairs")
    person_fold = fold_of_row if respondents is None else _dealt(_people(respondents, len(pairs)), folds, rng, "people")
    made = []
    for fold in range(folds):
        test = (fold_of_row == fold) & (person_fold == fold)
        train = (fold_of_row != fold) & (person_fold != fold)
        train &= ~shares_question(pairs, [pairs[index] for index in np.flatnonzero(test).tolist()])
        made.append(_fold(train, test))
    return made


def cross_predict(
    create: Callable[[], Estimator],
    table: PairTable,
    folds: Sequence[Fold],
    *,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Probability of change of every row from an estimator that has not seen it: (n,), NaN where no fold tests a row.

    `create` makes a new unfitted estimator for each fold. `progress` counts thousandths of folds.

    Raises:
        PredictorError: a fold's training rows cannot be learnt from; the message names the fold.
        Stopped: `progress` returned False.
    """
    probabilities = np.full(len(table), np.nan)
    for number, fold in enumerate(folds):
        name = f"fold {number + 1} of {len(folds)}"

        def inside(done: int, total: int, text: str, number: int = number, name: str = name) -> bool | None:
            share = number + done / max(total, 1)
            return None if progress is None else progress(int(1000 * share), 1000 * len(folds), f"{name}: {text}")

        if len(fold.test):
            try:
                estimator = fit_on(create(), table.take(fold.train), inside)
            except PredictorError as exc:
                raise PredictorError(f"{name}: {exc}") from exc
            probabilities[fold.test] = predict_on(estimator, table.take(fold.test), majorities=table.says_responses)
        report(progress, 1000 * (number + 1), 1000 * len(folds), name)
    return probabilities


def _fold(train: NDArray[np.bool_], test: NDArray[np.bool_]) -> Fold:
    dropped = len(train) - np.count_nonzero(train) - np.count_nonzero(test)
    return Fold(train=np.flatnonzero(train), test=np.flatnonzero(test), dropped=int(dropped))


def _people(respondents: Sequence[Hashable], n: int) -> NDArray[np.int64]:
    if len(respondents) != n:
        raise PredictorError(f"respondents: {len(respondents)} for {n} pairs; give one a row.")
    return numbered(respondents)


def _dealt(
    units: NDArray[np.int64], folds: int, rng: np.random.Generator, what: str, labels: ArrayLike | None = None
) -> NDArray[np.int64]:
    """The fold of each row: units in random order, each to the fold with the fewest rows so far, or by labels."""
    if folds < 2:
        raise PredictorError(f"folds: {folds} is not 2 or more.")
    sizes = np.bincount(units) if len(units) else np.empty(0, dtype=np.int64)
    if len(sizes) < folds:
        raise PredictorError(f"folds: {folds} for {len(sizes)} {what}; use fewer folds.")
    if labels is not None:
        return _stratified(units, np.asarray(labels, dtype=np.float64) > 0.5, folds, rng)
    fold_of_unit = np.empty(len(sizes), dtype=np.int64)
    rows_in = np.zeros(folds, dtype=np.int64)
    for unit in rng.permutation(len(sizes)).tolist():
        fold_of_unit[unit] = np.argmin(rows_in)
        rows_in[fold_of_unit[unit]] += sizes[unit]
    return fold_of_unit[units]


def _stratified(
    units: NDArray[np.int64], is_high: NDArray[np.bool_], folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The fold of each row (n,), units kept together and both kinds of rows spread evenly."""
    from sklearn.model_selection import StratifiedGroupKFold

    rarest = min(np.count_nonzero(is_high), np.count_nonzero(~is_high))
    # scikit-learn warns about a class with fewer rows than folds; there is nothing to spread evenly then.
    kinds = is_high if rarest >= folds else np.zeros(len(units), dtype=bool)
    cut = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=int(rng.integers(2**32)))
    fold_of_row = np.empty(len(units), dtype=np.int64)
    for number, (_train, test) in enumerate(cut.split(units, kinds, units)):
        fold_of_row[test] = number
    return fold_of_row


def _components(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    """A number for each pair, (n,), equal for pairs that hang together by questions."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    questions = numbered([text for pair in pairs for text in (pair.evidence_text, pair.target_text)])
    evidence, target = questions[::2], questions[1::2]
    count = 1 + int(questions.max(initial=-1))
    edges = coo_array((np.ones(len(pairs)), (evidence, target)), shape=(count, count))
    component: NDArray[np.int64] = connected_components(edges, directed=False)[1][target].astype(np.int64)
    return component
