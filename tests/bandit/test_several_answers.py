"""Several answers an item, and ratios: by plain computation, and by simulated studies whose truth is known."""

import math

import numpy as np
import pytest

from bandit import (
    DesignError,
    EpsilonGreedy,
    Softmax,
    deal,
    draw,
    hajek,
    hajek_difference,
    naive_mean,
    stratified_difference,
    stratified_effect,
    stratified_mean,
)

STUDIES = 400


def ratio_by_hand(values, per, stratum, sizes, cluster):
    """The ratio and its linearised error, term by term."""
    whole, people = sum(sizes), sorted(set(cluster))
    answered = [stratum.count(index) for index in range(len(sizes))]
    weight = [sizes[index] / answered[index] / whole for index in stratum]
    above = sum(w * value for w, value in zip(weight, values, strict=True))
    below = sum(w * value for w, value in zip(weight, per, strict=True))
    ratio = above / below
    residual = [(value - ratio * divisor) / below for value, divisor in zip(values, per, strict=True)]
    means = [
        sum(r for r, place in zip(residual, stratum, strict=True) if place == index) / answered[index]
        for index in range(len(sizes))
    ]
    totals = [
        sum(
            w * (r - means[place])
            for w, r, place, person in zip(weight, residual, stratum, cluster, strict=True)
            if person == who
        )
        for who in people
    ]
    return ratio, math.sqrt(len(people) / (len(people) - 1) * sum(total**2 for total in totals))


VALUES, PER = [1, 0, 2, 3, 1, 0, 2, 1], [2, 1, 2, 4, 3, 0, 3, 1]
STRATUM, CLUSTER = [0, 0, 0, 1, 1, 1, 1, 1], list("aabbccdd")


def test_a_ratio_is_that_of_the_weighted_sums_with_a_linearised_error():
    value, error = ratio_by_hand(VALUES, PER, STRATUM, (10, 90), CLUSTER)
    estimate = stratified_mean(values=VALUES, per=PER, stratum=STRATUM, sizes=(10, 90), cluster=CLUSTER)
    assert (estimate.value, estimate.standard_error) == pytest.approx((value, error))
    assert estimate.value != pytest.approx(sum(VALUES) / sum(PER))
    probability = np.where(np.array(STRATUM) == 0, 0.3, 0.05)
    weighted = hajek(values=VALUES, per=PER, probability=probability, cluster=CLUSTER)
    assert weighted.value == pytest.approx(np.dot(VALUES, 1 / probability) / np.dot(PER, 1 / probability))
    plain = naive_mean(values=VALUES, per=PER, cluster=CLUSTER)
    assert plain.value == pytest.approx(sum(VALUES) / sum(PER))


def test_a_domain_is_the_ratio_whose_lower_sum_counts_it():
    rng = np.random.default_rng(2)
    values, inside = rng.random(60), rng.random(60) < 0.4
    common = {"stratum": rng.integers(0, 2, 60), "sizes": (100, 300), "cluster": np.arange(60) // 5}
    values += 3 * (common["cluster"] % 3)  # People differ, so that the least variance does not matter.
    estimate = stratified_mean(values=values, domain=inside, universe_size=1000, **common)
    other = stratified_mean(values=np.where(inside, values, 0), per=inside.astype(float), universe_size=1000, **common)
    assert (estimate.value, estimate.standard_error) == pytest.approx((other.value, other.standard_error))


def test_differences_of_ratios_are_those_of_their_parts():
    rng = np.random.default_rng(3)
    per = rng.integers(0, 4, 80).astype(float)
    values = rng.binomial(per.astype(int), 0.6).astype(float)
    common = {"stratum": np.arange(80) % 2, "sizes": (100, 300), "cluster": np.arange(80) // 4}
    first = rng.random(80) < 0.5

    def of(domain):
        return stratified_mean(values=values, per=per, domain=domain, **common).value

    difference = stratified_difference(values=values, per=per, first=first, second=~first, **common)
    assert difference.value == pytest.approx(of(~first) - of(first))
    effect = stratified_effect(values=values, per=per, first=first, second=~first, **common)
    alone = [
        stratified_mean(
            values=values[level],
            per=per[level],
            stratum=common["stratum"][level],
            sizes=common["sizes"],
            cluster=common["cluster"][level],
        ).value
        for level in (first, ~first)
    ]
    assert effect.value == pytest.approx(alone[1] - alone[0])
    probability = rng.uniform(0.1, 0.9, 80)
    unequal = hajek_difference(
        values=values, per=per, probability=probability, cluster=common["cluster"], first=first, second=~first
    )
    sides = [
        hajek(values=values, per=per, probability=probability, cluster=common["cluster"], domain=side).value
        for side in (first, ~first)
    ]
    assert unequal.value == pytest.approx(sides[1] - sides[0])


@pytest.mark.parametrize(
    ("per", "problem"),
    [([0] * 8, "sums to 0"), ([-1] * 8, "at least 0"), ([1] * 7, "each of 8"), ([np.nan] * 8, "NaN")],
)
def test_what_cannot_be_divided_by_is_refused(per, problem):
    with pytest.raises(DesignError, match=f"per: .*{problem}"):
        stratified_mean(values=VALUES, per=per, stratum=STRATUM, sizes=(10, 90), cluster=CLUSTER)


def test_one_answer_an_item_is_the_variance_between_respondents():
    rng = np.random.default_rng(5)
    common = {"stratum": np.arange(60) % 2, "sizes": (100, 300), "cluster": np.arange(60) // 5}
    values = rng.random(60)
    estimate = stratified_mean(values=values, **common)
    again = stratified_mean(values=values, item=np.arange(60), **common)
    assert again.standard_error == pytest.approx(estimate.standard_error, rel=1e-12)


def test_the_variance_by_two_ways_is_the_one_and_the_other_less_both():
    """Equal weights and no correction: the textbook sum, term by term."""
    rng = np.random.default_rng(6)
    item, person, values = np.arange(60) % 20, np.arange(60) // 4, rng.random(60)
    estimate = hajek(values=values, probability=np.full(60, 0.5), cluster=person, item=item)
    share = (values - values.mean()) / 60

    def spread(cluster):
        totals = np.bincount(cluster, weights=share)
        return totals.size / (totals.size - 1) * (totals**2).sum()

    expected = spread(person) + spread(item) - spread(np.arange(60))
    assert estimate.standard_error == pytest.approx(math.sqrt(expected))
    assert estimate.degrees_of_freedom == 14


def test_a_census_of_alike_people_has_no_error_left():
    """All items are asked, and people agree on each: nothing is left to chance."""
    item = np.tile(np.arange(12), 3)
    estimate = stratified_mean(
        values=item % 5, stratum=np.zeros(36, dtype=int), sizes=(12,), cluster=np.arange(36) // 3, item=item
    )
    plain = stratified_mean(values=item % 5, stratum=np.zeros(36, dtype=int), sizes=(12,), cluster=np.arange(36) // 3)
    assert estimate.standard_error < 0.35 * plain.standard_error


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["share", "mean", "ratio", "softmax", "lost"])
def test_intervals_cover_the_truth_with_three_answers_an_item(kind):
    """Studies of 90 out of 720 items with 3 answers each, drawn and dealt as plans are; items and people both differ.

    Standard errors between respondents alone cover far too seldom, so that the test can tell.
    """
    rng = np.random.default_rng(11)
    size, items, answers = 720, 90, 3
    easy = rng.normal(0, 1.5, size)
    score = easy + rng.normal(0, 1, size)
    tries = rng.integers(1, 5, size)
    design = Softmax(temperature=2.0, floor=0.3) if kind == "softmax" else EpsilonGreedy(epsilon=0.5, top_fraction=0.2)
    nodes = rng.normal(0, 0.5, 4000)
    chance = 1 / (1 + np.exp(-(easy[:, None] + nodes[None, :])))
    truth = {"mean": easy.mean(), "ratio": (chance.mean(axis=1) * tries).sum() / tries.sum()}.get(kind, chance.mean())
    with_items, alone = [], []
    for _study in range(STUDIES):
        plan = draw(
            design=design,
            n=items * answers,
            scores=score,
            n_candidates=size,
            rng=rng,
            responses_per_item=answers,
        )
        asked = plan.selected
        booklets = deal(conflict_keys=[(candidate,) for candidate in asked], groups=[0] * asked.size, size=6, rng=rng)
        person = np.empty(asked.size, dtype=int)
        for number, slots in enumerate(booklets):
            person[slots] = number
        logit = easy[asked] + rng.normal(0, 0.5, len(booklets))[person]
        arguments = {"cluster": person}
        if kind == "softmax":
            arguments["probability"] = plan.inclusion_probability
        else:
            arguments |= {"stratum": plan.stratum, "sizes": tuple(stratum.size for stratum in plan.strata)}
        values = (rng.random(asked.size) < 1 / (1 + np.exp(-logit))).astype(float)
        if kind == "mean":
            values = logit + rng.normal(0, 1, asked.size)
        if kind == "ratio":
            arguments["per"] = tries[asked].astype(float)
            values = rng.binomial(tries[asked], 1 / (1 + np.exp(-logit))).astype(float)
        answered = rng.random(asked.size) > (0.25 if kind == "lost" else 0.0)
        arguments = {name: value if name == "sizes" else value[answered] for name, value in arguments.items()}
        estimator = hajek if kind == "softmax" else stratified_mean
        is_share = kind in ("share", "softmax", "lost")
        with_items.append(estimator(values=values[answered], item=asked[answered], share=is_share, **arguments))
        alone.append(estimator(values=values[answered], share=is_share, **arguments))
    estimates = np.array([estimate.value for estimate in with_items])
    error = estimates.std(ddof=1) / math.sqrt(STUDIES)
    # A ratio's own bias is of the order of its variance; the fixed truth of a share is itself an average of draws.
    assert abs(estimates.mean() - truth) < 3 * error

    def coverage(intervals):
        return np.mean([interval.interval[0] <= truth <= interval.interval[1] for interval in intervals])

    assert 0.92 <= coverage(with_items) <= 0.98
    assert coverage(alone) < 0.93
