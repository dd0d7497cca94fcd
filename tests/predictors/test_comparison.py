"""Predictors side by side on the same rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from predictors import comparison, registry
from predictors.comparison import Predictions, compare
from predictors.datasets import PairTable, join
from predictors.errors import PredictorError
from predictors.evaluation import evaluate, parts_by_outcome
from predictors.pairs import Pair
from predictors.splits import Fold


def table_of(pairs: list[Pair], labels, **changes) -> PairTable:
    n = len(pairs)
    fields = {
        "weights": np.ones(n),
        "responses": np.ones(n, dtype=np.int64),
        "majority": np.zeros(n, dtype=bool),
        "counted": np.zeros(n, dtype=bool),
        "respondents": None,
        "pair_ids": np.arange(n),
        "questions": [(pair.evidence_text, pair.target_text) for pair in pairs],
        "source": "made here",
    }
    return PairTable(pairs=pairs, labels=np.asarray(labels, dtype=float), **{**fields, **changes})


def some_table(n: int, *, start: int = 0, seed: int = 0, **changes) -> PairTable:
    rng = np.random.default_rng(seed)
    pairs = [
        Pair(
            f"evidence {start + index}",
            f"target {start + index}",
            f"t{rng.integers(3)}",
            f"t{rng.integers(3)}",
            index % 2,
        )
        for index in range(n)
    ]
    same = np.array([pair.evidence_task == pair.target_task for pair in pairs])
    return table_of(pairs, rng.uniform(size=n) < np.where(same, 0.8, 0.3), **changes)


@pytest.fixture
def test_rows() -> PairTable:
    return some_table(60, start=100, seed=1)


def predictions(table: PairTable, *names: str) -> list[Predictions]:
    rng = np.random.default_rng(5)
    return [Predictions(name, rng.uniform(0.1, 0.9, len(table)), 1.0) for name in names]


def test_every_predictor_has_its_metrics_and_all_but_the_reference_a_difference(test_rows):
    made = predictions(test_rows, "same_task", "bert", "hybrid")
    compared = compare(test_rows, made, train=None, seed=0, samples=50)
    assert compared["reference"] == "bert"
    assert list(compared["metrics"]) == ["same_task", "bert", "hybrid"]
    assert list(compared["differences"]) == ["same_task", "hybrid"]
    for prediction in made:
        plain = evaluate(test_rows.labels, prediction.probabilities, parts_by_outcome(test_rows.outcomes))
        assert compared["metrics"][prediction.name]["auc"] == plain["auc"]
    gap = compared["differences"]["hybrid"]["auc"]["overall"]["difference"]
    areas = {name: metrics["auc"]["overall"] for name, metrics in compared["metrics"].items()}
    assert gap == pytest.approx(areas["hybrid"] - areas["bert"])


def test_without_bert_the_best_is_the_reference(test_rows):
    good = Predictions("good", np.where(test_rows.labels == 1, 0.8, 0.2), 1.0)
    compared = compare(test_rows, [*predictions(test_rows, "a", "b"), good], train=None, seed=0, samples=10)
    assert compared["reference"] == "good"


def test_only_rows_without_a_known_question_are_question_disjoint(test_rows):
    known = [pair._replace(target_text="seen only here") for pair in test_rows.pairs[:20]]
    train = table_of(known, np.ones(20))
    made = predictions(test_rows, "a")
    compared = compare(test_rows, made, train=train, seed=0, samples=10)
    fresh = compared["question_disjoint"]["a"]
    assert fresh["n"] == 40
    plain = evaluate(test_rows.labels[20:], made[0].probabilities[20:], parts_by_outcome(test_rows.outcomes[20:]))
    assert fresh["nll"] == plain["nll"]
    all_known = table_of(list(test_rows.pairs), np.ones(60))
    assert compare(test_rows, made, train=all_known, seed=0, samples=10)["question_disjoint"] is None


def test_respondents_are_resampled_where_they_are_known(test_rows):
    people = [f"p{index // 20}" for index in range(60)]
    made = predictions(test_rows, "a")
    by_person = compare(some_table(60, start=100, seed=1, respondents=people), made, train=None, seed=0, samples=50)
    by_pair = compare(test_rows, made, train=None, seed=0, samples=50)
    assert by_person["metrics"]["a"]["auc"] == by_pair["metrics"]["a"]["auc"]
    assert by_person["metrics"]["a"]["intervals"] != by_pair["metrics"]["a"]["intervals"]


def test_groups_are_by_evidence_task_target_task_and_pair_of_tasks(test_rows):
    groups = compare(test_rows, predictions(test_rows, "a"), train=None, seed=0, samples=2)["groups"]["a"]
    assert set(groups["evidence_task"]["groups"]) == {"t0", "t1", "t2"}
    count = sum(pair.evidence_task == "t0" for pair in test_rows.pairs)
    assert groups["evidence_task"]["groups"]["t0"]["n"] == count
    assert all(len(group) == 2 for group in groups["task_pair"]["groups"])


def test_counts_are_measured_where_labels_are_shares_of_known_answers():
    table = some_table(20, counted=np.arange(20) < 10, responses=np.full(20, 4))
    made = predictions(table, "a")
    compared = compare(table, made, train=None, seed=0, samples=2)
    assert compared["counts"]["a"]["answers"] == 40
    plain = evaluate(table.labels[:10], made[0].probabilities[:10], parts_by_outcome(table.outcomes[:10]))
    assert compared["counts"]["a"]["nll_per_answer"] == pytest.approx(plain["nll"]["overall"])
    assert "counts" not in compare(some_table(20), made, train=None, seed=0, samples=2)


def test_training_and_predicting_by_name(test_rows):
    train = some_table(200)
    prediction = comparison.train_and_predict("same_task", {}, seed=0, train=train, test=test_rows)
    direct = registry.create("same_task").fit(train.pairs, train.labels).predict_proba(test_rows.pairs)[:, 1]
    assert prediction.name == "same_task"
    assert prediction.probabilities == pytest.approx(direct)


def test_training_rows_that_are_test_pairs_in_any_direction_are_left_out(test_rows):
    first, second = test_rows.pairs[0], test_rows.pairs[1]
    reverse = Pair(first.target_text, first.evidence_text, "t0", "t1", 1)
    train = table_of([reverse, second._replace(outcome=1 - second.outcome), Pair("x", "y", "t", "t", 1)], [1, 0, 1])
    assert comparison.without_test_pairs(train, test_rows).pairs == [Pair("x", "y", "t", "t", 1)]


def people_and_majorities(*, known: bool) -> tuple[PairTable, PairTable]:
    """Single answers to 400 pairs, and majorities of 9 answers to 400 others; pairs differ in how many they change."""
    rng = np.random.default_rng(3)
    pairs = [Pair(f"e{index}", f"t{index}", f"{rng.integers(2)}", f"{rng.integers(2)}", 1) for index in range(800)]
    mean = np.array([0.7 if pair.evidence_task == pair.target_task else 0.2 for pair in pairs])
    shares = rng.beta(20 * mean, 20 * (1 - mean))
    answers = np.repeat(np.arange(400), 3)
    train = table_of(
        [pairs[index] for index in answers],
        rng.uniform(size=1200) < shares[answers],
        counted=np.full(1200, known),
    )
    changed = rng.binomial(9, shares[400:])
    test = table_of(pairs[400:], changed > 4, majority=np.ones(400, bool), responses=np.full(400, 9))
    return train, test


def test_majorities_of_several_answers_are_predicted_as_such_where_training_says_what_its_labels_are():
    evaluations = {}
    for known in (False, True):
        train, test = people_and_majorities(known=known)
        prediction = comparison.train_and_predict("same_task", {}, seed=0, train=train, test=test)
        evaluations[known] = evaluate(test.labels, prediction.probabilities, parts_by_outcome(test.outcomes))
    assert evaluations[True]["nll"]["overall"] < evaluations[False]["nll"]["overall"] - 0.05
    assert evaluations[True]["auc"] == evaluations[False]["auc"]


class TellsMajorities:
    """One person changes with 0.6. The majority differs and is known by a separate number."""

    uses_responses = True

    def fit(self, pairs, labels, sample_weight=None, progress=None, responses=None):
        return self

    def predict_proba(self, pairs, progress=None):
        return np.tile([0.4, 0.6], (len(pairs), 1))

    def predict_majority(self, pairs, responses):
        return responses / 100


def test_an_estimator_that_predicts_majorities_is_asked_for_those_rows_alone(monkeypatch):
    monkeypatch.setattr(registry, "create", lambda *args: TellsMajorities())
    train, test = people_and_majorities(known=True)
    test.majority[:10] = False
    probabilities = comparison.train_and_predict("hybrid", {}, seed=0, train=train, test=test).probabilities
    assert set(probabilities[:10]) == {0.6} and set(probabilities[10:]) == {0.09}
    unknown, _ = people_and_majorities(known=False)
    probabilities = comparison.train_and_predict("hybrid", {}, seed=0, train=unknown, test=test).probabilities
    assert set(probabilities) == {0.6}


@pytest.mark.parametrize("question_disjoint", [False, True])
def test_extra_rows_help_to_train_and_are_never_tested(question_disjoint):
    own, extra = some_table(40), some_table(30, start=500, seed=2)
    whole, folds = comparison.folds_of(
        own, extra, folds=4, rng=np.random.default_rng(0), question_disjoint=question_disjoint
    )
    assert len(whole) == 70
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(40))
    assert all((fold.train >= 40).sum() > 15 for fold in folds)
    prediction = comparison.cross_validate("same_task", {}, seed=0, table=whole, folds=folds)
    assert np.isfinite(prediction.probabilities[:40]).all()
    assert np.isnan(prediction.probabilities[40:]).all()


@pytest.mark.thorough
@pytest.mark.torch
def test_folds_of_small_networks_may_train_in_processes_of_their_own(tiny_params):
    rows = some_table(60)
    whole, folds = comparison.folds_of(rows, None, folds=2, rng=np.random.default_rng(1))
    reports: list[tuple[int, int, str]] = []

    def told(done: int, total: int, text: str) -> None:
        reports.append((done, total, text))

    params = {**tiny_params, "members": 1, "calibration_share": 0.0}
    first, other = (
        comparison.cross_validate("bert", params, seed=0, table=whole, folds=folds, workers=workers, progress=progress)
        for workers, progress in ((1, None), (2, told))
    )
    assert first.probabilities == pytest.approx(other.probabilities, abs=1e-4)
    assert [done for done, _total, _text in reports] == [1, 2]
    only = replace(folds[0], train=folds[0].train[whole.labels[folds[0].train] == 1])
    with pytest.raises(PredictorError, match="fold 2 of 2: "):
        comparison.cross_validate("bert", params, seed=0, table=whole, folds=[folds[1], only], workers=2)


def test_folds_apart_predict_majorities_as_folds_in_turn_do(monkeypatch):
    monkeypatch.setattr(registry, "create", lambda *args: TellsMajorities())
    monkeypatch.setattr(comparison, "ProcessPoolExecutor", lambda workers, **_named: ThreadPoolExecutor(workers))
    monkeypatch.setattr(comparison, "_is_small_network", lambda *args: True)
    train, test = people_and_majorities(known=True)
    whole = join([train, test])
    folds = [Fold(np.arange(len(train)), np.arange(len(train), len(whole)), dropped=0)]
    probabilities = comparison.cross_validate("bert", {}, seed=0, table=whole, folds=folds, workers=2).probabilities
    assert set(probabilities[len(train) :]) == {0.09}


def test_a_predictor_whose_predictions_are_no_probabilities_fails_by_itself(monkeypatch, test_rows):
    class Diverged:
        def fit(self, *args):
            return self

        def predict_proba(self, pairs, progress=None):
            return np.full((len(pairs), 2), np.nan)

    monkeypatch.setattr(registry, "create", lambda *args: Diverged())
    with pytest.raises(PredictorError, match=r"bert: predicted nan for row 0"):
        comparison.train_and_predict("bert", {}, seed=0, train=test_rows, test=test_rows)


def test_the_papers_rows_and_settings_are_ones_that_there_are():
    assert [row.name for row in comparison.PAPER_ROWS] == [
        *("previous_correct", "same_task", "embedding_xgboost", "bert"),
        *("llama2_7b", "llama2_13b", "gpt35_turbo", "gpt4"),
    ]
    for row in comparison.PAPER_ROWS:
        own = row.with_params(**comparison.PAPER_SETTINGS.get(row.predictor, {}))
        assert registry.settings_of(own.predictor, own.params)
    bert = comparison.PAPER_SETTINGS["bert"]
    assert (bert["checkpoint"], bert["epochs"], bert["batch_size"]) == ("google-bert/bert-base-uncased", 2, 32)
    assert (bert["learning_rate"], bert["members"], bert["head"]) == (5e-5, 5, "paper")


def test_settings_that_are_given_stay_beside_the_papers():
    row = comparison.Contender("small", "bert", {"members": 2})
    assert row.with_params(members=5, epochs=2).params == {"members": 2, "epochs": 2}


def test_there_must_be_something_to_compare(test_rows):
    with pytest.raises(ValueError, match="there are none"):
        compare(test_rows, [], train=None, seed=0)


def nested(table: PairTable, rows, *, inner: int = 3, validated=None):
    everything = np.ones(len(table), dtype=bool)
    contenders = [
        (comparison.Contender(name, name, {}), everything if usable is None else usable) for name, usable in rows
    ]
    folds = comparison.split(table.pairs, table.respondents, folds=4, rng=np.random.default_rng(3))
    made, names = comparison.nested_cross_validate(
        contenders,
        seed=1,
        table=table,
        folds=folds,
        inner=inner,
        validated=everything if validated is None else validated,
    )
    return folds, made.probabilities, names


def test_nested_cross_validation_chooses_inside_each_fold_and_predicts_as_the_chosen_one_does():
    table = some_table(120, seed=2)  # Its labels follow whether both questions are of one task.
    folds, prediction, names = nested(table, [("previous_correct", None), ("same_task", None)])
    assert names == ["same_task"] * 4
    plain = comparison.cross_validate("same_task", {}, seed=1, table=table, folds=folds)
    assert prediction == pytest.approx(plain.probabilities)


def test_a_nested_choice_does_not_see_the_labels_that_it_is_measured_by():
    table = some_table(80, seed=4)
    folds, prediction, names = nested(table, [("previous_correct", None), ("same_task", None)])
    tested = folds[2].test
    turned = table.labels.copy()
    turned[tested] = 1 - turned[tested]
    _, other, others = nested(table_of(table.pairs, turned), [("previous_correct", None), ("same_task", None)])
    assert others[2] == names[2]
    assert (other[tested] == prediction[tested]).all()
    elsewhere = np.concatenate([fold.test for number, fold in enumerate(folds) if number != 2])
    assert (other[elsewhere] != prediction[elsewhere]).any()


def test_a_nested_choice_is_made_by_validated_rows_and_learns_from_usable_ones():
    """Half of the rows teach the opposite of the others: who may not learn from them is chosen."""
    table = some_table(480, seed=5)
    own = np.arange(480) < 240
    same = np.array([pair.evidence_task == pair.target_task for pair in table.pairs])
    # Every fourth of each kind says the opposite, so that no few rows are told apart without a doubt.
    number = np.where(same, np.cumsum(same), np.cumsum(~same))
    table = table_of(table.pairs, same ^ ~own ^ (number % 4 == 0))
    contenders = [("same_task", np.ones(480, dtype=bool)), ("same_task", own)]
    folds = comparison.split(table.pairs[:240], None, folds=4, rng=np.random.default_rng(0))
    helped = [comparison.Fold(np.append(fold.train, np.arange(240, 480)), fold.test, 0) for fold in folds]
    made, names = comparison.nested_cross_validate(
        [
            (comparison.Contender(name, predictor, {}), rows)
            for name, (predictor, rows) in zip(("all", "own"), contenders, strict=True)
        ],
        seed=0,
        table=table,
        folds=helped,
        inner=3,
        validated=own,
    )
    assert names == ["own"] * 4
    assert np.isnan(made.probabilities[240:]).all()
    # What is chosen learns from its own rows alone.
    plain = comparison.cross_validate("same_task", {}, seed=0, table=table, folds=folds)
    assert made.probabilities[:240] == pytest.approx(plain.probabilities[:240])


def test_nested_parts_share_neither_pairs_nor_people():
    pairs = [pair for pair in some_table(24, seed=6).pairs for _ in range(2)]
    people = [f"p{number % 12}" for number in range(48)]
    table = table_of(pairs, np.arange(48) % 3 == 0, respondents=people)
    judged = np.arange(40)
    parts = comparison.split(pairs[:40], people[:40], folds=2, rng=np.random.default_rng(0))
    for part in parts:
        inside = comparison._within(np.arange(48), judged, part, table)
        assert len(inside.train)
        assert not comparison.shares_group(
            [pairs[row] for row in inside.train], [pairs[row] for row in inside.test]
        ).any()
        assert not {people[row] for row in inside.train} & {people[row] for row in inside.test}
        assert set(inside.train) - set(judged)
    # Where only every second row is judged, the others are about the same pairs, and of other people.
    every_second = np.arange(0, 48, 2)
    for part in comparison.split(pairs[::2], people[::2], folds=2, rng=np.random.default_rng(0)):
        inside = comparison._within(np.arange(48), every_second, part, table)
        learnt, tested = ({frozenset(pairs[row][:2]) for row in rows.tolist()} for rows in (inside.train, inside.test))
        assert learnt and tested and not learnt & tested


def test_nested_cross_validation_needs_contenders():
    with pytest.raises(ValueError, match="rows"):
        nested(some_table(20), [])


def test_rows_without_weight_are_in_no_figure(test_rows):
    """All of them, and the differences, groups and curves, are those of the other rows alone."""
    made = predictions(test_rows, "a", "b")
    weighing = np.arange(60) < 40
    rows = replace(test_rows, weights=np.where(weighing, 2.0, 0.0))
    cut = [replace(prediction, probabilities=prediction.probabilities[:40]) for prediction in made]
    actual, expected = (
        compare(table, own, train=None, seed=0, samples=10)
        for table, own in ((rows, made), (test_rows.take(weighing), cut))
    )
    for name in ("a", "b"):
        assert {key: actual["metrics"][name][key] for key in ("n", "nll", "auc")} == {
            key: expected["metrics"][name][key] for key in ("n", "nll", "auc")
        }
        assert actual["groups"][name] == expected["groups"][name]
        for curve in ("calibration", "rank"):
            assert str(actual["curves"][name][curve]) == str(expected["curves"][name][curve]), curve
        assert set(actual["curves"][name]["roc"]) >= set(expected["curves"][name]["roc"])
    (other,) = actual["differences"]
    assert actual["differences"][other]["auc"]["overall"]["difference"] == pytest.approx(
        expected["differences"][other]["auc"]["overall"]["difference"]
    )


def test_what_reads_columns_is_no_reference_unless_there_is_nothing_else(test_rows):
    good = Predictions("good", np.where(test_rows.labels == 1, 0.8, 0.2), 1.0)
    made = [*predictions(test_rows, "a", "bert"), good]
    references = [
        compare(test_rows, made, train=None, seed=0, samples=2, apart=apart)["reference"]
        for apart in ((), ("bert",), ("bert", "good"), ("a", "bert", "good"))
    ]
    assert references == ["bert", "good", "a", "bert"]


def test_a_nested_choice_counts_rows_by_their_weights():
    """Heavy rows follow the outcome, and as many light ones whether both questions are of one task."""
    table = some_table(160, seed=7)
    heavy = np.arange(160) % 4 < 2
    same = np.array([pair.evidence_task == pair.target_task for pair in table.pairs])
    labels = np.where(heavy, table.outcomes == 1, same).astype(float)
    labels[::11] = 1 - labels[::11]
    everything = np.ones(160, dtype=bool)
    rows = [
        (comparison.Contender("outcome", "previous_correct", {}), everything),
        (comparison.Contender("task", "logistic", {"numbers": ("same_task",)}), everything),
    ]
    folds = comparison.split(table.pairs, None, folds=3, rng=np.random.default_rng(3))
    for weights, chosen in ((np.where(heavy, 50.0, 1.0), "outcome"), (np.where(heavy, 1.0, 50.0), "task")):
        own = table_of(table.pairs, labels, weights=weights)
        _made, names = comparison.nested_cross_validate(
            rows, seed=1, table=own, folds=folds, inner=2, validated=everything
        )
        assert names == [chosen] * 3


def test_in_cross_validation_too_what_is_no_probability_is_refused_for_tested_rows(monkeypatch):
    class Diverged:
        def fit(self, *args):
            return self

        def predict_proba(self, pairs, progress=None):
            return np.full((len(pairs), 2), np.nan)

    monkeypatch.setattr(registry, "create", lambda *args: Diverged())
    whole, folds = comparison.folds_of(some_table(12), None, folds=2, rng=np.random.default_rng(0))
    with pytest.raises(PredictorError, match="predicted nan"):
        comparison.cross_validate("hybrid", {}, seed=0, table=whole, folds=folds)


@pytest.mark.thorough
def test_only_majorities_are_calibrated_and_by_the_weights_of_training_rows():
    train, test = people_and_majorities(known=True)
    test.majority[:10] = False
    plain = comparison.train_and_predict(
        "same_task", {}, seed=0, train=train, test=replace(test, majority=test.majority & False)
    )
    prediction = comparison.train_and_predict("same_task", {}, seed=0, train=train, test=test)
    assert (prediction.probabilities[:10] == plain.probabilities[:10]).all()
    assert (prediction.probabilities[10:] != plain.probabilities[10:]).all()
    # Heavy rows that changed: the calibration follows them. Without weights it would not.
    heavy = replace(train, weights=np.where(train.labels == 1, 3.0, 1.0))
    moved = comparison.train_and_predict("same_task", {}, seed=0, train=heavy, test=test)
    unweighted = replace(heavy, weights=np.ones(len(heavy)))
    calibrators = [
        comparison._majority_calibrator(
            "same_task", {}, seed=0, train=training_rows, progress=None
        ).calibrator_.coefficients_
        for training_rows in (heavy, unweighted)
    ]
    assert (moved.probabilities[10:] > prediction.probabilities[10:]).all()
    assert np.abs(calibrators[0]).sum() != pytest.approx(np.abs(calibrators[1]).sum(), abs=1e-3)
