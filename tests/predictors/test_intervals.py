"""Bootstrap intervals and paired differences: laws on known truths."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from predictors.errors import PredictorError
from predictors.evaluation import METRICS, evaluate, evaluate_with_intervals, paired_difference, parts_by_outcome
from predictors.evaluation import intervals as implementation


def drawn(rng, n, shift=1.0):
    """Labels, probabilities and parts with a known area under the curve: two normals, `shift` apart."""
    labels = rng.integers(0, 2, n)
    outcomes = rng.integers(0, 2, n)
    return labels, 1 / (1 + np.exp(-(rng.normal(size=n) + shift * labels))), parts_by_outcome(outcomes)


def rng_of(seed):
    return np.random.default_rng(seed)


def test_the_point_estimates_are_those_of_evaluate():
    labels, probabilities, parts = drawn(rng_of(0), 200)
    metrics = evaluate_with_intervals(labels, probabilities, parts, rng=rng_of(1), samples=50)
    plain = evaluate(labels, probabilities, parts)
    assert {key: metrics[key] for key in ("n", "nll", "auc")} == plain
    for metric in METRICS:
        for part in parts:
            low, high = metrics["intervals"][metric][part]
            assert low < plain[metric][part] < high


@pytest.mark.slow
def test_each_resample_is_measured_as_scikit_learn_would():
    from sklearn.metrics import log_loss, roc_auc_score

    rng = rng_of(0)
    labels, probabilities, parts = drawn(rng, 60)
    probabilities = np.round(probabilities, 1)  # ties
    weights = rng.uniform(0.5, 2, 60)
    resampled = implementation._resampled(labels, [probabilities], parts, weights, None, rng_of(3), 20, 0.95)
    counts = np.concatenate(list(implementation._counts([], 60, rng_of(3), 20)))
    for index, count in enumerate(counts):
        for part, rows in parts.items():
            weight = (count * weights)[rows]
            auc = roc_auc_score(labels[rows], probabilities[rows], sample_weight=weight)
            nll = log_loss(labels[rows], probabilities[rows], sample_weight=weight)
            assert resampled["auc"][part][0, index] == pytest.approx(auc, abs=1e-12)
            assert resampled["nll"][part][0, index] == pytest.approx(nll, abs=1e-12)


@pytest.mark.thorough
def test_intervals_cover_the_truth_as_often_as_they_say():
    truth = NormalDist().cdf(1 / np.sqrt(2))
    rng = rng_of(0)
    covered = 0
    for _ in range(200):
        labels, probabilities, parts = drawn(rng, 200)
        metrics = evaluate_with_intervals(labels, probabilities, parts, rng=rng, samples=199, level=0.9)
        low, high = metrics["intervals"]["auc"]["overall"]
        covered += low <= truth <= high
    assert 0.84 <= covered / 200 <= 0.96


@pytest.mark.parametrize("two_way", [False, True])
def test_copies_of_a_row_are_no_further_evidence_when_clusters_are_named(two_way):
    labels, probabilities, _parts = drawn(rng_of(0), 100)
    nine = [np.repeat(column, 9) for column in (labels, probabilities)]
    unit = np.repeat(np.arange(100), 9)

    def width(columns, cluster):
        metrics = evaluate_with_intervals(*columns, rng=rng_of(1), samples=400, cluster=cluster)
        low, high = metrics["intervals"]["auc"]["overall"]
        return high - low

    single = width((labels, probabilities), None)
    cluster = (unit, np.arange(900)) if two_way else unit
    assert width(nine, None) == pytest.approx(single / 3, rel=0.25)
    if two_way:  # The second kind of cluster adds the rows' own chance, so it can only widen.
        assert single < width(nine, cluster) < 1.3 * single
    else:
        assert width(nine, cluster) == pytest.approx(single, rel=0.2)


def test_clusters_may_be_named_by_any_labels():
    labels, probabilities, parts = drawn(rng_of(0), 60)
    numbers = np.arange(60) % 20
    texts = np.array([f"person {number:02d}" for number in numbers])
    first, other = (
        evaluate_with_intervals(labels, probabilities, parts, cluster=cluster, rng=rng_of(1), samples=50)
        for cluster in (numbers, texts)
    )
    assert first == other


def test_blocks_of_resamples_do_not_change_the_kind_of_result(monkeypatch):
    labels, probabilities, parts = drawn(rng_of(0), 50)
    monkeypatch.setattr(implementation, "_NUMBERS_AT_ONCE", 150)
    blocks = list(implementation._counts([], 50, rng_of(0), 10))
    assert [len(block) for block in blocks] == [3, 3, 3, 1]
    assert all((block.sum(axis=1) == 50).all() for block in blocks)
    metrics = evaluate_with_intervals(labels, probabilities, parts, rng=rng_of(0), samples=200)
    low, high = metrics["intervals"]["auc"]["overall"]
    assert 0.1 < high - low < 0.6


def test_what_the_parts_are_does_not_change_the_resamples():
    labels, probabilities, parts = drawn(rng_of(0), 80)
    longer = {"first half": np.arange(80) < 40}
    few = evaluate_with_intervals(labels, probabilities, longer, rng=rng_of(1), samples=30)
    more = evaluate_with_intervals(labels, probabilities, {**parts, **longer}, rng=rng_of(1), samples=30)
    assert list(few["auc"]) == ["overall", "first half"]
    for metric in METRICS:
        for part in ("overall", "first half"):
            assert few["intervals"][metric][part] == more["intervals"][metric][part]
    compared = paired_difference(labels, probabilities, probabilities[::-1], longer, rng=rng_of(1), samples=30)
    assert list(compared["nll"]) == ["overall", "first half"]


def test_what_is_not_defined_has_no_interval():
    metrics = evaluate_with_intervals(
        [1, 1, 1], [0.4, 0.5, 0.6], parts_by_outcome([1, 1, 1]), rng=rng_of(0), samples=20
    )
    assert metrics["intervals"]["auc"] == {"overall": None, "previous_correct": None, "previous_incorrect": None}
    assert metrics["intervals"]["nll"]["previous_incorrect"] is None
    assert metrics["intervals"]["nll"]["overall"] is not None


def test_rows_without_weight_take_no_part_in_the_draw():
    labels, probabilities, parts = drawn(rng_of(0), 80)
    weight = np.repeat([1.0, 0.0], 40)
    whole = evaluate_with_intervals(
        labels, probabilities, parts, sample_weight=weight, rng=rng_of(2), samples=30, cluster=np.arange(80)
    )
    first = {name: mask[:40] for name, mask in parts.items()}
    half = evaluate_with_intervals(labels[:40], probabilities[:40], first, rng=rng_of(2), samples=30)
    assert whole["n"] == 40
    assert whole["intervals"]["nll"] == half["intervals"]["nll"]


def test_a_clearly_better_predictor_differs_and_an_equal_one_does_not():
    rng = rng_of(0)
    labels, probabilities, parts = drawn(rng, 400, shift=2.0)
    noise = rng.uniform(size=400)
    differences = paired_difference(labels, probabilities, noise, parts, rng=rng_of(1), samples=300)
    auc, nll = differences["auc"]["overall"], differences["nll"]["overall"]
    assert auc["interval"][0] > 0.2 and nll["interval"][1] < 0
    assert auc["p"] == pytest.approx(2 / 301)
    same = paired_difference(labels, probabilities, probabilities, parts, rng=rng_of(1), samples=300)
    for metric in METRICS:
        assert same[metric]["overall"] == {"difference": 0.0, "interval": [0.0, 0.0], "p": 1.0}


def test_a_paired_difference_is_sharper_than_two_intervals():
    rng = rng_of(0)
    labels, probabilities, parts = drawn(rng, 300)
    near = np.clip(probabilities + rng.normal(scale=0.02, size=300), 0.01, 0.99)
    difference = paired_difference(labels, probabilities, near, parts, rng=rng_of(1), samples=200)
    alone = evaluate_with_intervals(labels, probabilities, parts, rng=rng_of(1), samples=200)
    low, high = difference["auc"]["overall"]["interval"]
    lowest, highest = alone["intervals"]["auc"]["overall"]
    assert high - low < (highest - lowest) / 3


@pytest.mark.thorough
def test_p_is_about_uniform_where_there_is_no_difference():
    rng = rng_of(0)
    small = 0
    for _ in range(150):
        labels, probabilities, parts = drawn(rng, 100, shift=0.0)
        other = rng.uniform(size=100)
        differences = paired_difference(labels, rng.permutation(probabilities), other, parts, rng=rng, samples=99)
        small += differences["auc"]["overall"]["p"] <= 0.1
    assert 0.03 <= small / 150 <= 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples: 0"),
        ({"level": 1.0}, "level: 1.0"),
        ({"cluster": [1]}, "cluster: shape"),
        ({"cluster": ([1, 2], [1])}, "cluster: shape"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused_by_name(arguments, message):
    with pytest.raises(PredictorError, match=message):
        evaluate_with_intervals([1, 0], [0.5, 0.4], rng=rng_of(0), **arguments)


def test_the_ends_are_the_percentiles_of_the_level_that_was_asked_for():
    labels, probabilities, _parts = drawn(rng_of(0), 60)
    people = np.arange(60) % 7
    resampled = implementation._resampled(labels, [probabilities], None, None, people, rng_of(1), 99, 0.5)
    metrics = evaluate_with_intervals(labels, probabilities, cluster=people, rng=rng_of(1), samples=99, level=0.5)
    for metric in METRICS:
        expected = np.quantile(resampled[metric]["overall"][0], [0.25, 0.75])
        assert metrics["intervals"][metric]["overall"] == pytest.approx(expected.tolist())


def test_a_row_counts_as_often_as_both_of_its_clusters_are_drawn():
    people, pairs = np.arange(12) % 3, np.arange(12) % 4
    both = np.concatenate(list(implementation._counts([people, pairs], 12, rng_of(4), 30)))
    rng = rng_of(4)
    by_people, other = implementation._drawn(3, 30, rng), implementation._drawn(4, 30, rng)
    assert (both == by_people[:, people] * other[:, pairs]).all()
