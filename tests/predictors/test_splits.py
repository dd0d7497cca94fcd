"""Splits: nothing that must not be shared is on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.datasets import PairTable
from predictors.errors import PredictorError, Stopped
from predictors.pairs import Pair
from predictors.splits import (
    cross_predict,
    pair_groups,
    question_disjoint_split,
    shares_group,
    shares_question,
    split,
)


def pair(evidence: int, target: int, outcome: int = 1) -> Pair:
    return Pair(f"question {evidence}", f"question {target}", "a", "b", outcome)


def questions(rows: list[Pair]) -> set[str]:
    return {text for row in rows for text in row[:2]}


pairs_of = st.lists(st.builds(pair, st.integers(0, 9), st.integers(0, 9), st.integers(0, 1)), min_size=12, max_size=50)


def table_of(pairs: list[Pair], labels: list[float]) -> PairTable:
    n = len(pairs)
    return PairTable(
        pairs=pairs,
        labels=np.array(labels, dtype=float),
        weights=np.ones(n),
        responses=np.ones(n, dtype=np.int64),
        majority=np.zeros(n, dtype=bool),
        counted=np.zeros(n, dtype=bool),
        respondents=None,
        pair_ids=np.arange(n),
        questions=[(row.evidence_text, row.target_text) for row in pairs],
        source="made here",
    )


def test_a_pair_its_reverse_and_its_other_outcome_are_one_group():
    assert pair_groups([pair(1, 2), pair(2, 1), pair(1, 2, 0), pair(1, 3), pair(2, 3)]).tolist() == [0, 0, 0, 1, 2]


def test_shared_groups_and_questions_are_found_in_either_place():
    train = [pair(1, 2), pair(3, 4), pair(5, 6)]
    test = [pair(2, 1, 0), pair(4, 7)]
    assert shares_group(train, test).tolist() == [True, False, False]
    assert shares_question(train, test).tolist() == [True, True, False]


@pytest.mark.thorough
@given(pairs_of, st.integers(0, 5))
def test_without_respondents_every_row_is_tested_once_and_no_group_is_parted(pairs, seed):
    groups = pair_groups(pairs)
    if groups.max() < 2:
        return
    made = split(pairs, None, folds=3, rng=np.random.default_rng(seed))
    assert sorted(np.concatenate([fold.test for fold in made]).tolist()) == list(range(len(pairs)))
    for fold in made:
        assert fold.dropped == 0
        assert not set(groups[fold.train]) & set(groups[fold.test])


@pytest.mark.thorough
@given(pairs_of, st.integers(0, 5))
def test_with_respondents_neither_a_person_nor_a_group_is_on_both_sides_and_the_rest_is_counted(pairs, seed):
    groups = pair_groups(pairs)
    people = np.arange(len(pairs)) % 4
    if groups.max() < 2:
        return
    for fold in split(pairs, people.tolist(), folds=3, rng=np.random.default_rng(seed)):
        assert not set(groups[fold.train]) & set(groups[fold.test])
        assert not set(people[fold.train]) & set(people[fold.test])
        assert len(fold.train) + len(fold.test) + fold.dropped == len(pairs)


@pytest.mark.thorough
@given(pairs_of, st.integers(0, 5), st.booleans())
def test_no_question_of_a_test_row_is_in_training(pairs, seed, with_people):
    if pair_groups(pairs).max() < 11:
        return
    people = (np.arange(len(pairs)) % 4).tolist() if with_people else None
    made = question_disjoint_split(pairs, people, folds=2, rng=np.random.default_rng(seed))
    for fold in made:
        train, test = ([pairs[index] for index in rows] for rows in (fold.train, fold.test))
        assert not questions(train) & questions(test)
        assert len(fold.train) + len(fold.test) + fold.dropped == len(pairs)
        if people is not None:
            assert not {people[index] for index in fold.train} & {people[index] for index in fold.test}
    if people is None:
        assert sum(len(fold.test) for fold in made) == len(pairs)


def test_rows_that_hang_together_by_questions_stay_together_so_that_none_is_dropped():
    chains = [pair(10 * chain + link, 10 * chain + link + 1) for chain in range(12) for link in range(4)]
    made = question_disjoint_split(chains, folds=4, rng=np.random.default_rng(0))
    assert [fold.dropped for fold in made] == [0, 0, 0, 0]
    assert [len(fold.test) for fold in made] == [12, 12, 12, 12]


def test_folds_are_of_about_equal_size_and_drawn_from_the_generator():
    pairs = [pair(index, 1000 + index) for index in range(100)]
    first, same, other = (split(pairs, None, folds=5, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert {len(fold.test) for fold in first} == {20}
    assert all((a.test == b.test).all() for a, b in zip(first, same, strict=True))
    assert any((a.test != b.test).any() for a, b in zip(first, other, strict=True))


@pytest.mark.thorough
@given(pairs_of, st.integers(0, 5))
def test_with_labels_no_group_is_parted_either(pairs, seed):
    groups = pair_groups(pairs)
    if groups.max() < 2:
        return
    labels = np.random.default_rng(seed).random(len(pairs))
    made = split(pairs, None, folds=3, rng=np.random.default_rng(seed), labels=labels)
    assert sorted(np.concatenate([fold.test for fold in made]).tolist()) == list(range(len(pairs)))
    assert not any(set(groups[fold.train]) & set(groups[fold.test]) for fold in made)


def test_with_labels_every_fold_gets_its_share_of_each_class():
    pairs = [pair(index, 1000 + index) for index in range(100)]
    labels = np.where(np.arange(100) < 10, 0.9, 0.2)
    first, same, other = (
        split(pairs, None, folds=5, rng=np.random.default_rng(seed), labels=labels) for seed in (1, 1, 2)
    )
    assert [(len(fold.test), (labels[fold.test] > 0.5).sum()) for fold in first] == [(20, 2)] * 5
    assert all((a.test == b.test).all() for a, b in zip(first, same, strict=True))
    assert any((a.test != b.test).any() for a, b in zip(first, other, strict=True))


@pytest.mark.filterwarnings("error")
def test_a_class_with_fewer_rows_than_folds_is_dealt_as_it_comes():
    pairs = [pair(index, 1000 + index) for index in range(20)]
    made = split(pairs, None, folds=5, rng=np.random.default_rng(0), labels=np.eye(20)[0])
    assert {len(fold.test) for fold in made} == {4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"respondents": None, "folds": 1}, "folds: 1 is not 2"),
        ({"respondents": None, "folds": 4}, "folds: 4 for 3 pairs"),
        ({"respondents": ["a", "a", "b"], "folds": 3}, "folds: 3 for 2 people"),
        ({"respondents": ["a"], "folds": 2}, "respondents: 1 for 3 pairs"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(arguments, message):
    for cut in (split, question_disjoint_split):
        with pytest.raises(PredictorError, match=message):
            cut([pair(1, 2), pair(3, 4), pair(5, 6)], **arguments, rng=np.random.default_rng(0))


class Memory:
    """Predicts 1 for a row it was fitted on, 0 for any other; a label leaks into it as soon as a split does."""

    def fit(self, pairs, labels, sample_weight=None, progress=None):
        self.seen = {frozenset(row[:2]) for row in pairs}
        progress and progress(1, 1, "fitted")
        return self

    def predict_proba(self, pairs, progress=None):
        known = np.array([frozenset(row[:2]) in self.seen for row in pairs], dtype=float)
        return np.column_stack([1 - known, known])


def test_every_row_is_predicted_by_an_estimator_that_has_not_seen_it():
    pairs = [pair(index % 10, 20 + index % 10, index // 10) for index in range(20)]
    table = table_of(pairs, [0, 1] * 10)
    folds = split(pairs, None, folds=4, rng=np.random.default_rng(0))
    assert cross_predict(Memory, table, folds).tolist() == [0.0] * 20


def test_rows_that_no_fold_tests_are_not_predicted_and_progress_reaches_the_end():
    pairs = [pair(index, 50 + index) for index in range(12)]
    folds = split(pairs, [index % 3 for index in range(12)], folds=3, rng=np.random.default_rng(0))
    reports = []
    probabilities = cross_predict(
        Memory, table_of(pairs, [0, 1] * 6), folds, progress=lambda done, total, text: reports.append((done, total))
    )
    tested = np.concatenate([fold.test for fold in folds])
    assert np.isfinite(probabilities).sum() == len(tested) < 12
    assert reports == sorted(reports) and reports[-1] == (3000, 3000)


def test_a_fold_of_one_class_is_named_and_a_stop_is_obeyed():
    from predictors.registry import create

    pairs = [pair(index, 50 + index) for index in range(4)]
    folds = split(pairs, None, folds=4, rng=np.random.default_rng(0))
    with pytest.raises(PredictorError, match=r"fold \d of 4: labels: all 3 are 0"):
        cross_predict(lambda: create("previous_correct"), table_of(pairs, [1, 0, 0, 0]), folds)
    with pytest.raises(Stopped):
        cross_predict(Memory, table_of(pairs, [1, 0, 1, 0]), folds, progress=lambda *_: False)
