"""Figure 7: which answerers match a belief, a region's accuracy, and its standard error."""

import numpy as np
import pytest

from survey.instruments.belief_update.reports.calibration.figure7 import (
    REGIONS,
    BeliefsAboutOthers,
    RealAnswers,
    calibration,
    calibration_chart,
    calibration_table,
    clustered_error,
    region_of,
)


def beliefs(*rows: tuple[float, int, int, int, int], weight: list[float] | None = None) -> BeliefsAboutOthers:
    """Rows: posterior, respondent, evidence, outcome, target."""
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    return BeliefsAboutOthers(
        posterior=columns[0],
        respondent=columns[1].astype(np.int64),
        evidence=columns[2].astype(np.int64),
        outcome=columns[3].astype(np.int64),
        target=columns[4].astype(np.int64),
        weight=np.ones(len(rows)) if weight is None else np.array(weight),
    )


def answers(*rows: tuple[int, int, int]) -> RealAnswers:
    """Rows: answerer, question, correct."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return RealAnswers(answerer=columns[0], question=columns[1], correct=columns[2])


def test_only_an_answerer_with_the_shown_outcome_and_an_answer_to_the_target_counts() -> None:
    stated = beliefs((80, 1, 10, 1, 20))
    real_answers = answers(
        *[(1, 10, 1), (1, 20, 1)],  # right on the evidence as was shown, right on the target
        *[(2, 10, 0), (2, 20, 0)],  # wrong on the evidence
        (3, 10, 1),  # never asked the target
        (4, 20, 0),  # never asked the evidence
    )
    low, middle, high = calibration("people", stated, real_answers).regions
    assert (high.accuracy, high.matches, high.answerers) == (1.0, 1, 1)
    assert low.matches == middle.matches == 0
    assert np.isnan(low.accuracy) and np.isnan(low.standard_error)


def test_a_belief_with_many_answerers_counts_once() -> None:
    stated = beliefs((80, 1, 10, 1, 20), (90, 2, 11, 1, 21))
    real_answers = answers(
        *[(answerer, 10, 1) for answerer in range(3)],
        *[(answerer, 20, 1) for answerer in range(3)],
        *[(9, 11, 1), (9, 21, 0)],
    )
    high = calibration("people", stated, real_answers).regions[2]
    assert high.accuracy == pytest.approx(0.5)  # and not 3 of 4
    assert (high.beliefs, high.matches, high.mean_belief) == (2, 4, pytest.approx(85))


def test_weights_of_the_design_count() -> None:
    stated = beliefs((80, 1, 10, 1, 20), (90, 2, 11, 1, 21), weight=[3, 1])
    real_answers = answers((1, 10, 1), (1, 20, 1), (1, 11, 1), (1, 21, 0))
    high = calibration("people", stated, real_answers).regions[2]
    assert high.accuracy == pytest.approx(0.75)
    assert high.mean_belief == pytest.approx(82.5)


@pytest.mark.parametrize(("belief", "region"), [(0, 0), (29, 0), (30, 1), (69, 1), (70, 2), (100, 2)])
def test_every_belief_lies_in_one_region(belief: float, region: int) -> None:
    stated = np.array([belief], dtype=np.float64)
    inside = [bool(region_of(stated, *ends)[0]) for ends in REGIONS]
    assert [place for place, there in enumerate(inside) if there] == [region]


def test_with_one_kind_of_cluster_the_error_is_that_of_cluster_means() -> None:
    values = np.repeat([0.0, 1.0, 1.0, 0.0], 5)
    cluster = np.repeat(np.arange(4), 5)
    error = clustered_error(values, np.ones(20), [cluster, np.zeros(20, dtype=np.int64)])
    assert error == pytest.approx(np.std([0, 1, 1, 0], ddof=1) / 2)


def test_the_error_is_unknown_with_a_single_cluster_of_every_kind() -> None:
    cluster = np.zeros(1, dtype=np.int64)
    assert np.isnan(clustered_error(np.ones(1), np.ones(1), [cluster, cluster, cluster]))


@pytest.mark.thorough
@pytest.mark.slow
def test_the_standard_error_is_as_large_as_the_spread_of_the_estimate() -> None:
    """People, questions and answerers drawn again 150 times: what the errors say is what happens."""
    rng = np.random.default_rng(4)
    estimates, errors = [], []
    for _study in range(150):
        n_respondents, n_questions, n_answerers = 30, 40, 12
        ability, ease = rng.normal(0, 1, n_answerers), rng.normal(0, 1, n_questions)
        chance = 1 / (1 + np.exp(-(ability[:, None] + ease)))
        correct = (rng.random((n_answerers, n_questions)) < chance).astype(np.int64)
        real_answers = answers(*[(a, q, int(correct[a, q])) for a in range(n_answerers) for q in range(n_questions)])
        rows = []
        for respondent in range(n_respondents):
            pairs = rng.permutation(n_questions)[:20].reshape(10, 2)
            rows += [(80, respondent, int(e), int(rng.integers(2)), int(t)) for e, t in pairs]
        high = calibration("people", beliefs(*rows), real_answers).regions[2]
        estimates.append(high.accuracy)
        errors.append(high.standard_error)
    ratio = np.mean(errors) / np.std(estimates)
    assert 0.85 < ratio < 1.2


def test_dependence_between_answers_of_the_same_answerer_widens_the_error() -> None:
    rng = np.random.default_rng(1)
    answerer = np.repeat(np.arange(6), 50)
    values = (rng.random(300) < np.repeat([0.1, 0.2, 0.4, 0.6, 0.8, 0.9], 50)).astype(np.float64)
    respondent, question = rng.integers(40, size=300), rng.integers(50, size=300)
    two_way = clustered_error(values, np.ones(300), [respondent, question])
    assert clustered_error(values, np.ones(300), [respondent, question, answerer]) > 2 * two_way


def test_it_refuses_when_nobody_answered_both_questions() -> None:
    with pytest.raises(ValueError, match="people: nobody answered both questions of a pair"):
        calibration("people", beliefs((80, 1, 10, 1, 20)), answers((1, 10, 1), (2, 20, 1)))


def test_it_refuses_bad_values_by_name() -> None:
    with pytest.raises(ValueError, match="posterior: must lie between 0 and 100"):
        beliefs((180, 1, 10, 1, 20))
    with pytest.raises(ValueError, match="outcome: use 1"):
        beliefs((80, 1, 10, 3, 20))
    with pytest.raises(ValueError, match="weight: must be above 0"):
        beliefs((80, 1, 10, 1, 20), weight=[0])
    with pytest.raises(ValueError, match="somebody answered one twice"):
        answers((1, 10, 1), (1, 10, 0))


def test_the_figure_has_a_point_where_there_is_an_accuracy_and_none_elsewhere() -> None:
    stated = beliefs((80, 1, 10, 1, 20), (75, 4, 10, 1, 21), (10, 2, 11, 0, 21), (20, 5, 10, 1, 21))
    given = answers((1, 10, 1), (1, 20, 1), (1, 11, 0), (1, 21, 0))
    chart = calibration_chart([calibration(name, stated, given) for name in ("people", "language models")])
    assert [line.name for line in chart.lines] == ["people", "language models"]
    below, between, above = (accuracy for _place, accuracy in chart.lines[0].points)
    assert below == 0 and np.isnan(between) and above == 0.5, "nobody believes anything between 30 and 70 %"
    words = chart.svg("figure7")
    assert all(word in words for word in ("0 to 30 %", "30 to 70 %", "70 to 100 %", "accuracy (bars: standard error)"))


def test_rows_are_empty_where_a_figure_is_not_defined() -> None:
    lines = [calibration("people", beliefs((80, 1, 10, 1, 20)), answers((1, 10, 1), (1, 20, 1)))]
    below, _middle, above = calibration_table(lines, {"people": 2}).records()
    assert below["unreadable"] == above["unreadable"] == 2
    assert (below["beliefs"], below["accuracy"], below["standard_error"]) == (0, None, None)
    assert (above["lower"], above["upper"], above["accuracy"], above["standard_error"]) == (70, 100, 1.0, None)


def test_an_answerer_in_fractions_counts_by_its_chance_of_what_was_shown() -> None:
    stated = beliefs((80, 1, 10, 1, 20))
    real_answers = RealAnswers(
        answerer=np.array([1, 1, 2, 2]), question=np.array([10, 20, 10, 20]), correct=np.array([0.25, 0.0, 0.75, 0.6])
    )
    high = calibration("language models", stated, real_answers).regions[2]
    assert (high.beliefs, high.matches) == (1, 2)
    assert high.accuracy == pytest.approx(0.75 * 0.6)
