"""What predictions take off answers: identities, a second computation by hand, right on average, and never dearer."""

import numpy as np
import pytest

from bandit import DesignError, assist, hajek, stratified_mean
from bandit.assistance import CAUTION
from tests.bandit.estimate_laws import assistance


def stage(seed=3, people=12, each=8, strata=2, predictors=1):
    """Answers that a prediction tells something of, in strata of unequal weight."""
    rng = np.random.default_rng(seed)
    n = people * each
    label = (rng.random(n) < 0.3).astype(int) if strata > 1 else np.zeros(n, dtype=int)
    predictions = rng.random((n, predictors)) + 0.3 * label[:, None]
    values = predictions @ np.linspace(1, 0.2, predictors) + rng.normal(0, 0.4, n) + label * rng.normal(0, 0.5, n)
    sizes = [300, 900][:strata]
    return {
        "values": values,
        "predictions": predictions,
        "prediction_means": [[0.5 + 0.3 * number] * predictors for number in range(strata)],
        "stratum": label,
        "weight": (np.array(sizes) / np.bincount(label))[label],
        "cluster": np.arange(n) % people,
    }, sizes


def by_hand(stage, item=None):
    """The coefficients (n, p) of every answer, each from a loop over the others."""
    values, label, person, w = (np.asarray(stage[name]) for name in ("values", "stratum", "cluster", "weight"))
    n, strata = len(values), len(stage["prediction_means"])
    item = np.arange(n) if item is None else item
    x = np.asarray(stage["predictions"]) - np.asarray(stage["prediction_means"])[label]
    unit = np.sqrt(np.mean(x**2, axis=0))
    full, x = x, x / unit
    error = values.copy()
    for number in range(strata):
        inside = label == number
        error[inside] -= np.average(values[inside], weights=w[inside])
        x[inside] -= np.average(x[inside], weights=w[inside], axis=0)
    square = np.array([w[i] * w[item == item[i]].sum() for i in range(n)]) / w.sum() ** 2

    def fit(rows, base, known):
        axes = np.linalg.eigh(sum(square[i] * np.outer(x[i], x[i]) for i in rows))[1]
        along = x @ axes
        whole = np.sum(square[rows, None] * along[rows] ** 2, axis=0)
        slope = np.sum(square[rows, None] * along[rows] * error[rows, None], axis=0) / whole
        off = error[:, None] - along * slope
        own = square[:, None] * along * off / whole
        people = np.unique(person)
        totals = np.array([own[[i for i in rows if person[i] == who]].sum(axis=0) for who in people])
        spread = np.average(off[rows] ** 2, weights=square[rows], axis=0)
        variance = np.max(
            [
                len(people) / (len(people) - 1) * np.sum(totals**2, axis=0),
                np.sum(own[rows] ** 2, axis=0),
                spread * np.sum((square[rows, None] * along[rows]) ** 2, axis=0) / whole**2,
            ],
            axis=0,
        )
        raw, shrunk = np.zeros(x.shape), np.zeros(x.shape)
        for i in range(n):
            others = [j for j in rows if person[j] != person[i] and item[j] != item[i]]
            left = np.sum(square[others, None] * along[others] ** 2, axis=0)
            a = np.sum(square[others, None] * along[others] * error[others, None], axis=0) / left - base[i] @ axes
            clear = a**2 / (variance * (1 - known) * whole / left)
            clear = np.minimum(clear, clear.mean())
            raw[i], shrunk[i] = axes @ a, axes @ (a * np.maximum(1 - CAUTION / clear, 0))
        return raw, shrunk

    everybody = np.arange(n)
    raw, coefficient = fit(everybody, np.zeros(x.shape), 0)
    if strata > 1:
        for number in range(strata):
            rows = np.flatnonzero(label == number)
            share = np.max(square[rows] @ x[rows] ** 2 / (square @ x**2))
            coefficient[rows] += fit(rows, raw, share)[1][rows]
    return coefficient / unit, full


@pytest.mark.parametrize("predictors", [1, 3])
@pytest.mark.parametrize("strata", [1, 2])
def test_each_coefficient_is_that_of_the_other_people_shrunk(strata, predictors):
    answers, _sizes = stage(strata=strata, predictors=predictors)
    fitted = assist(**answers)
    coefficient, x = by_hand(answers)
    assert fitted.adjustment == pytest.approx(np.sum(coefficient * x, axis=1), rel=1e-9, abs=1e-12)
    label = answers["stratum"]
    for number in range(strata):
        assert fitted.coefficients[number] == pytest.approx(coefficient[label == number].mean(axis=0))
    assert fitted.coefficient == pytest.approx(np.average(coefficient, weights=answers["weight"], axis=0))
    assert fitted.withheld == "" and fitted.coefficient[0] > 0.3


def test_an_answers_own_item_is_left_out_and_counts_by_the_square_of_its_weight():
    answers, _sizes = stage(strata=1)
    rng = np.random.default_rng(5)
    item = rng.integers(0, 40, len(answers["values"]))
    answers["predictions"] = rng.random((40, 1))[item]
    answers["values"] = answers["predictions"][:, 0] + rng.normal(0, 0.3, item.size)
    coefficient, x = by_hand(answers, item)
    fitted = assist(**answers, item=item)
    assert fitted.adjustment == pytest.approx(coefficient[:, 0] * x[:, 0])
    assert fitted.adjustment != pytest.approx(assist(**answers).adjustment)


def test_of_a_ratio_what_its_lower_line_explains_is_no_error():
    answers, _sizes = stage(strata=1)
    below = 1 + answers["predictions"][:, 0]
    ratio = {**answers, "values": 2 * below + np.random.default_rng(1).normal(0, 0.1, below.size)}
    assert abs(assist(**ratio, per=below).coefficient[0]) < 0.2 < 1.5 < assist(**ratio).coefficient[0]


@pytest.mark.parametrize("constant", [0.0, 0.3, 1e6 / 3])
def test_constant_predictions_leave_the_plain_figure_to_the_digit(constant):
    answers, sizes = stage()
    # As a caller computes it: a mean that may differ from the constant by rounding.
    means = [float(np.mean(np.full(size, constant))) for size in sizes]
    predictions = np.full(len(answers["values"]), constant)
    fitted = assist(**{**answers, "predictions": predictions, "prediction_means": means})
    assert fitted.withheld == "the predictions are all alike" and not fitted.coefficients.any()
    known = {"stratum": answers["stratum"], "sizes": sizes, "cluster": answers["cluster"], "universe_size": 5000}
    plain = stratified_mean(values=answers["values"], **known)
    assert stratified_mean(values=answers["values"], **known, adjustment=fitted.adjustment) == plain


def test_a_coefficient_of_0_is_the_plain_figure_and_its_interval_of_a_share():
    changed = np.array([1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0.0])
    nothing, probability = np.zeros(12), np.full(12, 0.3)
    plain = hajek(values=changed, probability=probability, cluster=np.arange(12), share=True)
    known = {"probability": probability, "cluster": np.arange(12), "candidates": 40, "universe_size": 90}
    assert hajek(values=changed, share=True, adjustment=nothing, **known) == plain and plain.method == "wilson"


def test_perfect_predictions_leave_the_error_of_the_pool_alone():
    answers, sizes = stage()
    predictions = answers["predictions"][:, 0]
    fitted = assist(**{**answers, "values": predictions})
    assert fitted.coefficients[:, 0] == pytest.approx([1, 1])
    known = {"values": predictions, "stratum": answers["stratum"], "sizes": sizes, "cluster": answers["cluster"]}
    everything = stratified_mean(**known, adjustment=fitted.adjustment)
    assert everything.value == pytest.approx(0.25 * 0.5 + 0.75 * 0.8) and everything.standard_error < 1e-9
    # Of a pool, the variance of the predictions in it: between the strata, and inside them as it is in the answers.
    pool = stratified_mean(**known, adjustment=fitted.adjustment, universe_size=4800)
    inside = [np.mean((predictions - mean)[answers["stratum"] == number] ** 2) for number, mean in ((0, 0.5), (1, 0.8))]
    spread = np.dot([0.25, 0.75], np.array([0.5 - 0.725, 0.8 - 0.725]) ** 2 + inside)
    assert pool.standard_error**2 == pytest.approx((1 - 1 / 4) / 1200 * spread)
    weight = answers["weight"]
    unequal = hajek(
        values=predictions,
        probability=1 / weight,
        cluster=answers["cluster"],
        adjustment=fitted.adjustment,
        candidates=1200,
        universe_size=4800,
    )
    apart = np.average(fitted.adjustment**2, weights=weight)
    plain = hajek(values=predictions - fitted.adjustment, probability=1 / weight, cluster=answers["cluster"])
    assert unequal.standard_error**2 == pytest.approx(plain.standard_error**2 + (1 - 1 / 4) / 1200 * apart)


def test_what_a_prediction_is_measured_in_does_not_matter():
    answers, _sizes = stage(strata=1, predictors=2)
    means = np.array(answers["prediction_means"])
    # Outside of 0 to 1, turned round, and one of the two in other units.
    other = {**answers, "predictions": answers["predictions"] * [-50, 3] + 9, "prediction_means": means * [-50, 3] + 9}
    assert assist(**other).adjustment == pytest.approx(assist(**answers).adjustment)
    assert assist(**other).coefficient == pytest.approx(assist(**answers).coefficient / [-50, 3])
    # The same predictor twice is that predictor.
    twice = {**answers, "predictions": answers["predictions"][:, [0, 0]]}
    once = {**answers, "predictions": answers["predictions"][:, 0], "prediction_means": means[:, 0]}
    assert assist(**twice).adjustment == pytest.approx(assist(**once).adjustment)


def test_answers_without_a_prediction_are_left_as_they_are():
    answers, _sizes = stage()
    missing = np.arange(len(answers["values"])) % 3 == 0
    answers["predictions"][missing] = np.nan
    adjustment = assist(**answers).adjustment
    assert not adjustment[missing].any() and adjustment[~missing].all()
    answers["prediction_means"] = [[0.5], [np.nan]]
    assert not assist(**answers).adjustment[answers["stratum"] == 1].any()
    answers["predictions"][:] = np.nan
    assert assist(**answers).withheld == "the predictions are all alike"


def test_it_says_why_nothing_is_adjusted():
    answers, _sizes = stage(people=9)
    assert assist(**answers).withheld == "9 people, and a coefficient needs 10"
    answers, _sizes = stage(strata=1)
    x = answers["predictions"][:, 0] - answers["predictions"].mean()
    noise = np.random.default_rng(4).normal(size=x.size)
    answers["values"] = noise - x * (noise @ x) / (x @ x)
    assert assist(**answers).withheld == "the predictions tell no more of the answers than chance would"
    assert assist(**{**answers, "values": np.ones(96)}).withheld.startswith("the predictions tell no more")
    # All of it from one person: without them there is nothing.
    alone = np.where(answers["cluster"] == 0, answers["predictions"][:, 0], 0.5)
    assert assist(**{**answers, "predictions": alone}).withheld.startswith("the predictions tell no more")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [[1.0]]}, "values: need one row"),
        ({"values": [1.0, np.nan, 0.0]}, "values: need one row of at least one finite"),
        ({"weight": [1, 0, 1]}, "weight: needs a number above 0 for each of 3"),
        ({"weight": [1, 1]}, "weight: needs a number above 0 for each of 3"),
        ({"per": [1, -1, 1]}, "per: needs a number of at least 0"),
        ({"per": [0, 0, 0]}, "not 0 for all"),
        ({"predictions": [1, 2]}, r"predictions: \(2,\) for 3 answers"),
        ({"predictions": [1, np.inf, 2]}, "infinite for some items"),
        ({"prediction_means": [[1, 2]]}, "prediction_means: shape"),
        ({"stratum": [0, 1, 0]}, r"stratum: needs a whole number 0\.\.0"),
        ({"stratum": [0.0, 0, 0]}, "stratum: needs a whole number"),
        ({"cluster": [1]}, "cluster: 1 for 3 answers"),
        ({"item": [1]}, "item: 1 for 3 answers"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    arguments = {
        "values": [1, 0, 1],
        "predictions": [0.2, 0.3, 0.4],
        "prediction_means": [0.3],
        "stratum": [0, 0, 0],
        "weight": [1, 1, 1],
        "cluster": [1, 2, 3],
    }
    with pytest.raises(DesignError, match=message):
        assist(**{**arguments, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [({"adjustment": [0.1]}, "adjustment: 1 for 2"), ({"candidates": 10}, r"candidates: a pool needs 1\.\.9")],
)
def test_an_adjustment_that_does_not_fit_is_refused(change, message):
    arguments = {"values": [1, 0], "probability": [0.5, 0.5], "cluster": [1, 2], "universe_size": 9, "candidates": 4}
    with pytest.raises(DesignError, match=message):
        hajek(**{**arguments, "adjustment": [0.1, -0.1], **change})
    with pytest.raises(DesignError, match="adjustment: NaN or infinite"):
        stratified_mean(values=[1, 0], stratum=[0, 0], sizes=[9], cluster=[1, 2], adjustment=[0.1, np.nan])


def test_bad_predictions_cost_next_to_nothing_and_true_ones_help():
    """150 stages of 20 people; the same answers with and without. `benchmarks/sampling_laws.py` has many more."""
    rng = np.random.default_rng(8)
    chance = rng.beta(1.0, 1.5, 4000)
    predictions = {"true": chance, "noise": rng.random(4000), "reversed": 1 - chance}
    person = np.arange(200) % 20
    errors, squares = {name: [] for name in ("plain", *predictions)}, {name: [] for name in ("plain", *predictions)}
    for _ in range(150):
        drawn = rng.choice(4000, 200, replace=False)
        changed = (rng.random(200) < chance[drawn]).astype(float)
        answers = {"values": changed, "stratum": np.zeros(200, dtype=int), "cluster": person}
        estimates = {"plain": stratified_mean(**answers, sizes=[4000])}
        for name, predicted in predictions.items():
            fitted = assist(
                **answers, predictions=predicted[drawn], prediction_means=[predicted.mean()], weight=np.ones(200)
            )
            estimates[name] = stratified_mean(**answers, sizes=[4000], adjustment=fitted.adjustment)
        for name, estimate in estimates.items():
            errors[name].append(estimate.value - chance.mean())
            squares[name].append(estimate.standard_error**2)
    ratio = {name: np.mean(own) / np.mean(squares["plain"]) for name, own in squares.items()}
    assert ratio["true"] < 0.85 and ratio["noise"] < 1.02 and ratio["reversed"] == pytest.approx(ratio["true"])
    for own in errors.values():
        assert abs(np.mean(own)) < 4 * np.std(own) / 150**0.5
    assert np.var(errors["true"]) == pytest.approx(np.mean(squares["true"]), rel=0.4)


@pytest.mark.thorough
@pytest.mark.parametrize("in_points", [False, True])
def test_no_design_needs_more_people_for_bad_predictions(in_points):
    """200 stages of 40 people, with wide limits; `benchmarks/sampling_laws.py` has 500 of more cells."""
    names = ("the true chances", "noise from 0 to 1", "three of noise", "missing for a third")
    laws = assistance(people=40, studies=200, seed=2, names=names, in_points=in_points)
    for (_design, name), (price, law) in laws.items():
        assert price.by_standard_error < (-0.02 if name == "the true chances" else 0.02)
        assert price.by_error < 0.02 + 3 * price.uncertain
        assert abs(law.bias) < 4 * law.error and 0.9 <= law.cover <= 0.99
