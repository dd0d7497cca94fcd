"""People and models on the same items, against plain computations and against a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from survey.contracts.expectations import ComparedEvent, Expectations, Forecast, ItemReader, Items
from survey.services.results.people_and_models.agreeing import agreement
from survey.services.results.people_and_models.calibrating import ALL, OTHERS, calibrations
from survey.services.results.people_and_models.common import in_words
from survey.services.results.people_and_models.gaps import gaps

CHOICE = ComparedEvent("choice", "a person chooses A", "the choice", "the chance of A")
BELIEF = ComparedEvent("right", "the model is right", "the belief", "what it did", people_forecast=True)


def given(item, person, value, chance, *, event=CHOICE, weight=None, **more):
    """n answers about k items of one reader."""
    k = len(chance)
    return Expectations(
        event=event,
        items=Items([f"item {place}" for place in range(k)], groups={"part": np.array(["x", "y"] * k)[:k]}),
        item=np.array(item),
        person=np.array(person),
        weight=np.ones(len(item)) if weight is None else np.array(weight, dtype=float),
        value=np.array(value, dtype=float),
        readers=(ItemReader("model", "model", np.array(chance, dtype=float)),),
        **more,
    )


def crossed(*, seed=1, items=60, several=5, noise=True):
    """60 items of 5 people each, of whom everybody answers 10 items; the truth is in `mean`."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.1, 0.9, items)
    item = np.tile(np.arange(items), several)
    person = np.repeat(np.arange(items * several // 10), 10)
    value = (rng.random(len(item)) < mean[item]).astype(float) if noise else mean[item]
    return given(item, person, value, np.clip(mean + rng.normal(0, 0.1, items), 0, 1)), mean


def test_agreement_is_the_weighted_correlation_of_means():
    answers, _mean = crossed()
    weight = np.where(np.arange(60) < 30, 3.0, 1.0)
    answers = replace(answers, weight=weight[answers.item])
    means = np.array([answers.value[answers.item == place].mean() for place in range(60)])
    expected = np.cov(means, answers.readers[0].chance, aweights=weight)
    line = agreement(answers, answers.readers[0])
    assert line.correlation.value == pytest.approx(expected[0, 1] / math.sqrt(expected[0, 0] * expected[1, 1]))
    assert line.correlation.low < line.correlation.value < line.correlation.high
    assert (line.items, line.several, line.answers, line.people) == (60, 60, 300, 30)


def test_the_ceiling_is_what_peoples_noise_leaves():
    answers, mean = crossed(items=4000)
    line = agreement(answers, replace(answers.readers[0], chance=mean))
    # A reader that knows all people's mean exactly reaches the ceiling, and agrees with all people fully.
    assert line.correlation.value == pytest.approx(line.ceiling.value, abs=0.03)
    assert line.corrected.value == pytest.approx(1.0, abs=0.05)
    noise = (mean * (1 - mean) / 5).mean()
    assert line.ceiling.value == pytest.approx(math.sqrt(mean.var() / (mean.var() + noise)), abs=0.02)


def test_two_people_and_the_reader_are_compared_on_the_same_choice():
    answers = given([0, 0, 0, 1, 1, 1], [1, 2, 3, 1, 2, 3], [1, 1, 0, 0, 0, 0.5], [0.8, 0.5])
    line = agreement(answers, answers.readers[0])
    assert line.same.value == pytest.approx((1 + 1 + 0 + 0.5 * 3 - 0 + 0.0) / 6, abs=0.1)
    # Of the first item one in three pairs agrees; of the second one in three too.
    assert line.two_people.value == pytest.approx(1 / 3)
    # By the design's weights; an item with one answer has no two people.
    answers = given(
        [0, 0, 0, 1, 1, 2], [1, 2, 3, 1, 2, 3], [1, 1, 0, 0, 1, 1], [0.8, 0.3, 0.5], weight=[1, 2, 4, 1, 3, 5]
    )
    line = agreement(answers, answers.readers[0])
    assert line.two_people.value == pytest.approx((0.5 * 1 + 0.5 * 2) / (1 + 2 + 4 + 1 + 3))
    assert line.same.value == pytest.approx((1 + 2 + 0 + 1 + 0 + 0.5 * 5) / 16)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"person": np.zeros(300, dtype=int)}, "one person answered"),
        ({"value": np.ones(300)}, "the same mean"),
        ({"readers": (ItemReader("model", "model", np.full(60, 0.5)),)}, "says the same of all items"),
        ({"readers": (ItemReader("model", "model", np.r_[0.1, 0.9, np.full(58, np.nan)]),)}, "2 items have answers"),
    ],
)
def test_a_sentence_stands_where_there_is_no_figure(changed, why):
    answers = replace(crossed()[0], **changed)
    line = agreement(answers, answers.readers[0])
    assert why in line.why
    assert not line.corrected.is_defined


def test_three_items_are_enough_to_correlate():
    answers = given([0, 0, 1, 1, 2, 2], [1, 2] * 3, [0, 0.2, 0.4, 0.6, 0.7, 1], [0.2, 0.3, 0.9])
    line = agreement(answers, answers.readers[0])
    assert line.correlation.value == pytest.approx(np.corrcoef([0.1, 0.5, 0.85], [0.2, 0.3, 0.9])[0, 1])


def test_where_nobody_shares_an_item_there_is_no_ceiling():
    rng = np.random.default_rng(1)
    answers = given(np.arange(30), np.arange(30) // 3, rng.random(30), rng.random(30))
    line = agreement(answers, answers.readers[0])
    assert "no item was answered by two people" in line.why
    assert line.correlation.is_defined
    assert not line.ceiling.is_defined


def test_people_who_all_say_the_same_have_no_noise():
    answers, _mean = crossed(noise=False)
    line = agreement(answers, answers.readers[0])
    assert line.ceiling.value == 1
    assert line.corrected.value == pytest.approx(line.correlation.value)


def test_bits_are_the_mean_cost_of_what_happened():
    answers = given([0, 0, 1, 1], [1, 2, 1, 2], [1, 1, 0, 1], [0.5, 0.25], weight=[1, 1, 2, 2])
    lines = {calibration.forecaster: calibration for calibration in calibrations(answers, floor=0.01)}
    model = lines["model"]
    assert model.bits.value == pytest.approx((1 + 1 + 2 * math.log2(4 / 3) + 2 * 2) / 6)
    assert model.perplexity.value == pytest.approx(2**model.bits.value)
    assert model.happened.value == pytest.approx(4 / 6)
    assert model.bias.value == pytest.approx((0.5 * 2 + 0.25 * 4) / 6 - 4 / 6)
    entropy = -(4 / 6 * math.log2(4 / 6) + 2 / 6 * math.log2(2 / 6))
    assert model.saved.value == pytest.approx(entropy - model.bits.value)
    # The others of an item: one answer and one more at the mean of all.
    others = lines[OTHERS]
    chance = np.array([(1 + 4 / 6) / 2, (1 + 4 / 6) / 2, (1 + 4 / 6) / 2, (0 + 4 / 6) / 2])
    cost = -np.log2(np.where([1, 1, 0, 1], chance, 1 - chance))
    assert others.bits.value == pytest.approx(np.average(cost, weights=[1, 1, 2, 2]))


def test_what_got_chance_0_costs_infinitely_much_and_is_counted():
    answers = given([0, 0, 1, 1], [1, 2, 1, 2], [1, 0, 0, 0], [0.0, 0.0])
    model = {calibration.forecaster: calibration for calibration in calibrations(answers, floor=0.01)}["model"]
    assert math.isinf(model.stated)
    assert model.infinite == pytest.approx(0.25)
    assert model.bits.value == pytest.approx((math.log2(100) - 3 * math.log2(0.99)) / 4)


def test_only_an_event_that_people_forecast_is_said_to_be_forecast():
    assert ["forecast" in sentence for sentence in in_words([CHOICE, BELIEF])] == [False, True]


def test_beliefs_are_scored_by_what_each_model_did_and_share_their_weight():
    answers = given(
        [0, 0, 1, 1], [1, 2, 1, 2], [0.9, 0.8, 0.3, 0.5], [1.0, 0.0], event=BELIEF,
        forecasts=(Forecast("before", np.full(4, 0.5)),),
    )  # fmt: skip
    other = ItemReader("other", "model", np.array([1.0, np.nan]), counts=np.array([1.0, 0.0, 1.0, 1.0]))
    answers = replace(answers, readers=(*answers.readers, other))
    lines = {
        (calibration.forecaster, calibration.about): calibration for calibration in calibrations(answers, floor=0.01)
    }
    assert lines["people", "model"].bits.value == pytest.approx(
        -np.mean([math.log2(0.9), math.log2(0.8), math.log2(0.7), math.log2(0.5)])
    )
    assert lines["people", "other"].answers == 1
    assert lines["before", "model"].bits.value == pytest.approx(1.0)
    # The first belief is about both models, and counts half for each of them.
    assert lines["people", ALL].bits.value == pytest.approx(lines["people", "model"].bits.value)
    assert lines["people", ALL].answers == 5


def test_where_answers_have_many_values_the_given_chance_is_scored():
    answers = given([0, 0, 1, 1], [1, 2, 1, 2], [1, 0, 1, 1], [0.5, 0.6], others=np.array([0.5, np.nan, 0.25, 0.5]))
    answers = replace(answers, readers=(replace(answers.readers[0], given=np.array([0.5, 0.0, 0.5, 0.5])),))
    lines = {calibration.forecaster: calibration for calibration in calibrations(answers, floor=0.01)}
    assert lines[OTHERS].bits.value == pytest.approx((1 + 2 + 1) / 3)
    assert lines["model, all answers"].bits.value == pytest.approx((3 + math.log2(100)) / 4)
    assert math.isinf(lines["model, all answers"].stated)
    assert lines["model"].bins


def test_one_person_has_scores_without_intervals():
    answers = given([0, 1, 2], [1, 1, 1], [1, 0, 1], [0.7, 0.4, 0.5])
    lines = {calibration.forecaster: calibration for calibration in calibrations(answers, floor=0.01)}
    assert lines["model"].bits.low is None
    assert "one person" in lines["model"].why
    assert "nobody else answered" in lines[OTHERS].why


def test_where_it_always_happens_a_constant_knows_it_all():
    answers = given([0, 0, 1], [1, 2, 1], [1, 1, 1], [0.7, 0.9])
    line = {calibration.forecaster: calibration for calibration in calibrations(answers, floor=0.01)}["model"]
    assert "always happened" in line.why
    assert not line.saved.is_defined
    assert line.bits.is_defined


def test_gaps_are_people_less_the_reader_by_part_and_item():
    answers, _mean = crossed()
    reader = answers.readers[0]
    means = np.array([answers.value[answers.item == place].mean() for place in range(60)])
    parted = gaps(answers, reader)
    every, x, _y = parted.parts
    assert every.gap.value == pytest.approx((means - reader.chance).mean())
    assert (x.division, x.part, x.items, x.answers) == ("part", "x", 30, 150)
    assert x.gap.value == pytest.approx((means - reader.chance)[::2].mean())
    assert x.gap.low < x.gap.value < x.gap.high
    item_gap = next(item for item in parted.items if item.item == 7)
    assert item_gap.gap == pytest.approx(means[7] - reader.chance[7])
    assert abs(parted.items[0].shrunk.value) >= abs(parted.items[-1].shrunk.value)
    assert np.std([item.shrunk.value + item.reader for item in parted.items]) < means.std()
    assert 0 < parted.typical.value < math.sqrt(((means - reader.chance) ** 2).mean())


def test_a_gap_is_drawn_towards_what_is_expected_and_has_its_interval():
    """By the formulas, where everybody counts alike: 8 items with two answers each, of which the last is far off."""
    first = np.array([0.0, 0.2, 0.4, 0.4, 0.5, 0.6, 0.9, 1.0])
    second = np.array([0.2, 0.2, 0.2, 0.5, 0.7, 0.7, 1.0, 0.8])
    chance = np.array([0.05, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.3])
    answers = given(np.tile(np.arange(8), 2), np.repeat([1, 2], 8), np.r_[first, second], chance)
    mean = (first + second) / 2
    noise = np.var([first, second], axis=0, ddof=1).mean() / 2
    slope, start = np.polyfit(chance, mean, 1)
    expected = start + slope * chance
    spread = ((mean - expected) ** 2).sum() / (8 - 2) - noise
    assert spread > noise / 2, "what items spread by is not the least that 8 of them can show"
    share = spread / (spread + noise)
    people = expected + share * (mean - expected)
    lost = (1 - share) ** 2 * (spread + noise + (mean - expected) ** 2) * 2 / 8
    half = 1.959964 * np.sqrt(share * noise + lost)
    items = {item.item: item.shrunk for item in gaps(answers, answers.readers[0]).items}
    for place in range(8):
        low, high = np.clip([people[place] - half[place], people[place] + half[place]], 0, 1)
        shrunk = items[place]
        assert (shrunk.value, shrunk.low, shrunk.high) == pytest.approx(
            (people[place] - chance[place], low - chance[place], high - chance[place])
        )
    assert items[0].low == pytest.approx(-0.05), "people answer from 0 to 1"


def test_people_who_all_say_the_same_have_gaps_as_measured_without_an_interval():
    answers = given([0, 0, 1, 1, 2, 2], [1, 2] * 3, [1, 1, 0.5, 0.5, 0, 0], [0.5, 0.75, 0.25])
    parted = gaps(answers, answers.readers[0])
    assert [item.item for item in parted.items] == [0, 1, 2]
    assert [item.shrunk.value for item in parted.items] == pytest.approx([0.5, -0.25, -0.25])
    assert {(item.shrunk.low, item.shrunk.high) for item in parted.items} == {(None, None)}


def test_without_two_answers_to_an_item_gaps_are_as_measured():
    answers = given(np.arange(30), np.arange(30) // 3, np.tile([0.0, 1.0], 15), np.full(30, 0.4))
    parted = gaps(answers, answers.readers[0])
    assert "no item was answered by two people" in parted.why
    assert not parted.typical.is_defined
    assert abs(parted.items[0].gap) == pytest.approx(0.6)
    assert not parted.items[0].shrunk.is_defined


def test_a_reader_of_other_items_has_no_gaps():
    answers = replace(crossed()[0], readers=(ItemReader("model", "model", np.full(60, np.nan)),))
    assert "no answer is about an item" in gaps(answers, answers.readers[0]).why


def test_intervals_cover_a_known_truth():
    # The law itself is in benchmarks/expectation_laws.py; this is a fixed sample of it.
    inside = 0
    for seed in range(60):
        answers, mean = crossed(seed=seed)
        truth = (mean - answers.readers[0].chance).mean()
        gap = gaps(answers, answers.readers[0]).parts[0].gap
        inside += gap.low <= truth <= gap.high
    assert 54 <= inside <= 60
