"""How hard a target is for people and models: from training rows alone, and never from what a predicted row says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictors import artifacts, registry, training
from predictors.comparison import cross_validate, train_and_predict
from predictors.datasets import PairTable, fit_on, join, predict_on, read
from predictors.errors import PredictorError
from predictors.evaluation import negative_log_likelihood
from predictors.hardness import Hardness, checked_columns
from predictors.pairs import Pair
from predictors.splits import split

BOTH = ("people", "models")


def pair(number: int, target: str, *, task: str = "law", outcome: int = 1) -> Pair:
    return Pair(f"evidence {number}", target, "logic", task, outcome)


def table_of(n: int = 240, *, seed: int = 0) -> PairTable:
    """Rows whose label depends on the outcome and on how hard the target is, which its text does not show."""
    rng = np.random.default_rng(seed)
    easy = rng.uniform(0.1, 0.9, size=40)
    targets = rng.integers(40, size=n)
    outcomes = rng.integers(2, size=n)
    surprise = np.where(outcomes == 1, 1 - easy[targets], easy[targets])
    labels = (rng.uniform(size=n) < 1 / (1 + np.exp(-8 * (surprise - 0.5)))).astype(float)
    pairs = [pair(row, f"target {targets[row]}", task="law", outcome=int(outcomes[row])) for row in range(n)]
    return PairTable(
        pairs=pairs,
        labels=labels,
        weights=np.ones(n),
        responses=np.ones(n, dtype=np.int64),
        majority=np.zeros(n, dtype=bool),
        counted=np.zeros(n, dtype=bool),
        respondents=None,
        pair_ids=np.arange(n),
        questions=[(pair.evidence_text, pair.target_text) for pair in pairs],
        source="made",
        priors=np.clip(easy[targets] + rng.normal(0, 0.1, n), 0, 1),
        models_right=easy[targets],
    )


def test_a_target_is_as_hard_as_other_peoples_priors_say_and_an_unknown_one_as_its_task() -> None:
    pairs = [pair(1, "a"), pair(2, "a"), pair(3, "a"), pair(4, "b"), pair(5, "c", task="art")]
    hardness, _own = Hardness.learn(("people",), pairs, np.ones(5), {"people": [0.2, 0.2, 0.2, 0.8, 0.9]})
    low, unknown, high, other = hardness.numbers(
        [pair(6, "a"), pair(6, "new"), pair(6, "b"), pair(6, "new", task="art")], None
    )[:, 0]
    assert low < unknown < high
    assert unknown < other


def test_a_rows_own_prior_is_in_no_number_of_that_row() -> None:
    pairs = [pair(1, "a"), pair(2, "a"), pair(3, "b"), pair(4, "b")]
    priors = [0.5, 0.4, 0.6, 0.7]
    raw = []
    for own in (0.0, 1.0):
        hardness, numbers = Hardness.learn(("people",), pairs, np.ones(4), {"people": [own, *priors[1:]]})
        state = hardness.state()
        raw.append(numbers[0, 0] / state["scale"][0] + state["centre"][0])
    assert raw[0] == pytest.approx(raw[1])


def test_what_people_state_of_predicted_rows_is_never_looked_at() -> None:
    table = table_of()
    learn, test = table.take(np.arange(200)), table.take(np.arange(200, 240))
    fitted = fit_on(registry.create("logistic", {"columns": "people"}), learn)
    before = predict_on(fitted, test)
    assert np.array_equal(predict_on(fitted, replace(test, priors=np.zeros(40))), before)
    assert np.array_equal(predict_on(fitted, replace(test, priors=None)), before)


def test_in_cross_validation_the_priors_of_a_fold_change_nothing_for_its_own_rows() -> None:
    table = table_of()
    fold = split(table.pairs, None, folds=4, rng=np.random.default_rng(0))[0]
    priors = table.priors.copy()
    priors[fold.test] = 1 - priors[fold.test]
    probabilities = [
        cross_validate("logistic", {"columns": ["people"]}, seed=0, table=own_table, folds=[fold]).probabilities[
            fold.test
        ]
        for own_table in (table, replace(table, priors=priors))
    ]
    assert np.array_equal(*probabilities)


@pytest.mark.parametrize("columns", [("people",), ("models",), BOTH])
def test_columns_tell_what_the_texts_do_not(columns: tuple[str, ...]) -> None:
    train, test = table_of(400, seed=0), table_of(200, seed=0)
    losses = [
        negative_log_likelihood(
            test.labels, train_and_predict("logistic", params, seed=0, train=train, test=test).probabilities
        )
        for params in ({}, {"columns": columns})
    ]
    assert losses[1] < losses[0] - 0.05


def test_a_predictor_with_columns_is_saved_and_scores_as_before(tmp_path) -> None:
    table = table_of(120)
    columns = table.columns(BOTH)
    training.train_member(
        "logistic", {"columns": list(BOTH)}, 0, 0, table.pairs, table.labels, None, tmp_path / "one", columns=columns
    )
    fitted = fit_on(registry.create("logistic", {"columns": BOTH}), table)
    scored = training.score([tmp_path / "one"], table.pairs, block=50, columns={"models": table.models_right})
    assert scored == pytest.approx(predict_on(fitted, table), abs=1e-6)
    assert artifacts.load(tmp_path / "one").columns == BOTH


@pytest.mark.learning
@pytest.mark.torch
def test_the_hybrid_reads_columns_keeps_them_and_is_the_same_without(tiny_bert, tmp_path) -> None:
    table = table_of(160)
    params = {"checkpoint": str(tiny_bert), "landmarks": 32}
    alone = fit_on(registry.create("hybrid", params), table)
    beside = fit_on(registry.create("hybrid", {**params, "columns": "models+people"}), table)
    assert beside.columns == BOTH
    assert negative_log_likelihood(table.labels, predict_on(beside, table)) < negative_log_likelihood(
        table.labels, predict_on(alone, table)
    )
    artifacts.save(beside, tmp_path / "beside")
    again = artifacts.load(tmp_path / "beside")
    assert np.array_equal(predict_on(again, replace(table, priors=None)), predict_on(beside, table))
    with pytest.raises(PredictorError, match="columns: models is not given"):
        beside.predict_proba(table.pairs[:2])


def test_scales_are_those_of_the_rows_of_which_something_is_known() -> None:
    table = table_of(60)
    hardness, _own = Hardness.learn(("models",), table.pairs, np.ones(60), {"models": table.models_right})
    silent = replace(table, models_right=None)
    whole = join([table, silent])
    with_silent, _own = Hardness.learn(
        ("models",), whole.pairs, np.ones(120), {"models": whole.columns(("models",))["models"]}
    )
    assert with_silent.state()["scale"] == pytest.approx(hardness.state()["scale"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "columns: people is not given for these rows"),
        ({"people": [0.5]}, r"columns: people has the shape \(1,\) for 2 rows"),
        ({"people": [0.5, 1.5]}, "columns: people must lie between 0 and 1"),
        ({"people": [np.nan, np.nan]}, "columns: people: no training row says it; give the column prior in a file"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_in_words(given, message) -> None:
    with pytest.raises(PredictorError, match=message):
        Hardness.learn(("people",), [pair(1, "a"), pair(2, "b")], np.ones(2), given)


@pytest.mark.parametrize("wanted", ["texts", ["people", "people"], "people+"])
def test_a_column_that_is_not_known_is_refused(wanted) -> None:
    with pytest.raises(ValueError, match=r"is not one of people, models|names one twice"):
        checked_columns(wanted)
    with pytest.raises(PredictorError, match="columns: "):
        registry.create("logistic", {"columns": wanted})


def test_files_have_priors_in_points_and_models_as_a_share(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    head = "q1,q2,source1,source2,previous_correct,belief_change,prior,models_right\n"
    path.write_text(head + "a,b,s,t,1,1,40,0.25\na,c,s,t,0,0,,\n")
    table = read(path)
    assert table.priors.tolist()[0] == 0.4 and table.models_right.tolist()[0] == 0.25
    assert np.isnan(table.priors[1]) and np.isnan(table.models_right[1])
    path.write_text(head + "a,b,s,t,1,1,140,-1\n")
    with pytest.raises(PredictorError, match=r"prior: '140' is not a number between 0 and 100, or empty") as refusal:
        read(path)
    assert "models_right: '-1' is not a number between 0 and 1, or empty" in str(refusal.value)


def test_a_targets_number_is_shrunk_to_its_task_and_that_to_all_by_stated_counts() -> None:
    """By hand, with answers that count as several: 3 answers of its task's mean, 10 of that of all."""
    pairs = [pair(1, "a"), pair(2, "a", outcome=0), pair(3, "b"), pair(4, "c", task="art")]
    values, weights = [0.2, 0.5, 0.8, 0.9], [1.0, 3.0, 2.0, 4.0]
    hardness, _own = Hardness.learn(("people",), pairs, weights, {"people": values})
    state = hardness.state()

    def raw(pair: Pair) -> float:
        return float(hardness.numbers([pair], None)[0, 0] / state["scale"][0] + state["centre"][0])

    total = sum(value * weight for value, weight in zip(values, weights, strict=True)) / 10
    law = (0.2 + 1.5 + 1.6 + 10 * total) / (6 + 10)
    assert raw(pair(9, "a")) == pytest.approx((0.2 + 1.5 + 3 * law) / (4 + 3))
    assert raw(pair(9, "new")) == pytest.approx(law)
    art = (3.6 + 10 * total) / (4 + 10)
    assert raw(pair(9, "c", task="art")) == pytest.approx((3.6 + 3 * art) / (4 + 3))
    assert raw(pair(9, "a", task="none")) == pytest.approx((0.2 + 1.5 + 3 * total) / (4 + 3))
    plain, signed = hardness.numbers([pair(9, "a"), pair(9, "a", outcome=0)], None).T
    assert plain[0] == plain[1] and signed.tolist() == [plain[0], -plain[0]]


def test_where_nothing_is_known_of_models_they_are_as_usual() -> None:
    pairs = [pair(number, "a") for number in range(4)]
    hardness, _own = Hardness.learn(("models",), pairs, np.ones(4), {"models": [0.2, 0.6, np.nan, 0.4]})
    unknown, usual = hardness.numbers(pairs[:2], {"models": [np.nan, 0.4]})
    assert unknown == pytest.approx(usual, abs=1e-9)
