"""The figures of a study while it runs: counts that can be checked by hand, and laws of what is estimated."""

import numpy as np
import pytest

from survey.contracts.reports import ReportArguments
from survey.exceptions import HunchError
from survey.figures import Figure, rendering
from survey.instruments.belief_update.reports.live import tables as live_figures
from survey.instruments.belief_update.reports.live.report import LiveReport, live_answers
from survey.instruments.belief_update.reports.live.tables import AreaOfStage, LiveAnswers
from survey.models import Stage, Study
from survey.services.answers.counting import counted_answers
from survey.services.results import reports
from survey.services.stages import jobs, lifecycle
from tests import cast
from tests.kept import kept


def answers(n: int = 400, seed: int = 0) -> LiveAnswers:
    """Of 40 people in two stages: the higher the score, the likelier a change; half are drawn with half the chance."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(size=n)
    prior = rng.integers(0, 90, n).astype(float)
    return LiveAnswers(
        stage=np.repeat([1, 2], n // 2),
        stratum=np.where(score > 0.5, "top", "rest"),
        drawn=np.ones(n, dtype=bool),
        respondent=np.arange(n) % 40,
        outcome=rng.integers(0, 2, n),
        prior=prior,
        posterior=prior + 10 * (rng.uniform(size=n) < score),
        weight=np.where(score > 0.5, 1.0, 2.0),
        score=score,
        threshold=0,
    )


def test_every_answer_falls_into_one_bin() -> None:
    live_answers = answers()
    rows = live_figures.histograms(live_answers).table.rows
    for figure in ("prior", "posterior", "change"):
        assert sum(row[4] for row in rows if row[0] == figure) == len(live_answers)
        for words in {row[1] for row in rows}:
            assert sum(row[5] for row in rows if row[:2] == [figure, words]) == pytest.approx(1)


def test_people_see_the_bins_that_have_an_answer_with_the_outcomes_beside_each_other() -> None:
    live_answers = answers()
    before, after, change = rendering.sheets_of(live_figures.histograms(live_answers).table)
    n = int((live_answers.outcome == 1).sum())
    assert before.header == [
        "from",
        "to",
        f"after a correct answer (n = {n})",
        f"after an incorrect answer (n = {400 - n})",
    ]
    assert [row[:2] for row in before.texts()] == [[str(low), str(low + 10)] for low in range(0, 90, 10)]
    assert len(after.rows) == 10 and [row[0] for row in change.texts()] == ["-5", "5"]


def test_a_belief_on_an_edge_belongs_above_it_and_100_to_the_last_bin() -> None:
    live_answers = answers(2)
    edges = LiveAnswers(**{**vars(live_answers), "prior": np.array([10.0, 100.0]), "posterior": np.array([10.0, 0.0])})
    rows = [row for row in live_figures.histograms(edges).table.rows if row[0] == "prior" and row[4]]
    assert {(row[2], row[3]) for row in rows} == {(10.0, 20.0), (90.0, 100.0)}


def test_the_share_that_changed_is_that_of_the_answers_with_an_interval_around_it() -> None:
    given = answers()
    rows = list(live_figures.changed_by_stage(given).table.file_rows())
    strata = ("all", "top", "rest")
    assert {(row[0], row[1]) for row in rows} == {(stage, name) for stage in (1, 2) for name in strata}
    for stage, stratum, n, people, share, low, high in rows:
        inside = (given.stage == stage) & ((given.stratum == stratum) | (stratum == "all"))
        assert (n, share) == (inside.sum(), pytest.approx(given.changed[inside].mean()))
        assert low < share < high and people <= 40


def test_a_uniform_draw_has_a_lift_of_one_and_a_good_one_more() -> None:
    live_answers = answers()
    even = live_figures.lift(live_answers.changed, np.ones(len(live_answers)), live_answers.respondent, seed=1)
    assert even is not None and [even[2].low, even[2].value, even[2].high] == pytest.approx([1.0, 1.0, 1.0])
    lift = live_figures.lift(live_answers.changed, live_answers.weight, live_answers.respondent, seed=1)
    assert lift is not None
    drawn, uniform, ratio = lift
    assert (
        uniform == pytest.approx(np.average(live_answers.changed, weights=live_answers.weight))
        and ratio.value == drawn / uniform
    )
    assert ratio.interval is not None and 1 < ratio.interval[0] < drawn / uniform < ratio.interval[1]


def test_without_a_change_there_is_no_lift_and_with_one_person_no_interval() -> None:
    nothing = np.zeros(3)
    assert live_figures.lift(nothing, np.ones(3), np.arange(3), seed=1) is None
    assert live_figures.lift(np.ones(3), np.ones(3), np.zeros(3, dtype=int), seed=1) == (1.0, 1.0, Figure(1.0))


def test_good_predictions_rise_with_what_is_observed() -> None:
    reliability, ranks = live_figures.judged(answers(4000))
    rows = [*reliability.table.file_rows(), *ranks.table.file_rows()]
    observed = [row[3] for row in rows[:10]]
    assert len(observed) == 10 and observed[0] < 0.2 < 0.8 < observed[-1]
    assert all(row[4] <= row[3] <= row[5] for row in rows)
    assert "Expected calibration error" in reliability.table.note


def test_scores_that_are_no_chances_are_not_judged() -> None:
    live_answers = answers()
    assert list(live_figures.judged(LiveAnswers(**{**vars(live_answers), "score": 3 * live_answers.score}))) == []
    assert (
        list(live_figures.judged(LiveAnswers(**{**vars(live_answers), "score": np.full(len(live_answers), np.nan)})))
        == []
    )


def test_every_picture_says_its_numbers_in_words() -> None:
    live_answers = answers()
    figures = [
        live_figures.histograms(live_answers),
        live_figures.changed_by_stage(live_answers),
        live_figures.areas_by_stage([AreaOfStage(2, 100, "overall", Figure(0.7, 0.6, 0.8))]),
        live_figures.lift_by_stage(live_answers, 1),
        *live_figures.judged(live_answers),
    ]
    pictures = [picture for figure in figures for picture in figure.pictures]
    assert [picture.name for picture in pictures] == [
        *("prior", "posterior", "change", "changed", "auc", "lift", "reliability", "rank_curve")
    ]
    assert all(any(letter.isdigit() for letter in picture.text) for picture in pictures)


# Of a study


@kept
def two_stages() -> Study:
    """Both stages are frozen, and the second was drawn by a predictor of the first."""
    first = cast.closed_stage(
        "live",
        predictor={"name": "same_task"},
        conditions=[{"factor": "framing", "levels": ["plain", "warm"]}],
        stages=[{"sittings": 6}, {"sittings": 6, "design": {"kind": "epsilon_greedy"}}],
    )
    jobs.run_inline(first)
    second = lifecycle.open_stage(cast.stage_of(first.study, 2))
    jobs.run_inline(lifecycle.close_stage(cast.full_of_answers(second)))
    return first.study


@pytest.mark.django_db
def test_it_reads_what_the_answers_say() -> None:
    study = two_stages()
    live = live_answers(study)
    rows = [answer for stage in study.main_stages() for answer in counted_answers(with_study(stage, study))]
    assert len(live) == len(rows)
    assert live.weight.tolist() == pytest.approx([row.slot.design_weight for row in rows])
    assert live.respondent.tolist() == [row.sitting.respondent_id for row in rows]
    assert set(live.changed.tolist()) == {0.0, 1.0} and np.isfinite(live.score[live.stage == 2]).all()


def with_study(stage: Stage, study: Study) -> Stage:
    stage.study = study
    return stage


@pytest.mark.django_db
def test_the_report_has_every_figure() -> None:
    findings = reports.make(two_stages(), "live")
    assert [table.name for table in findings.tables] == [
        *("histograms", "changed_by_stage", "auc_by_stage", "lift_by_stage", "reliability", "rank_curve")
    ]
    assert "count so far" in findings.lines[0] and findings.notes == []


@pytest.mark.slow
@pytest.mark.django_db
def test_under_a_condition_there_are_only_its_answers() -> None:
    study = two_stages()
    with pytest.raises(HunchError, match="no answer under this condition"):
        LiveReport().make(study, ReportArguments(condition=("framing=warm",)))  # The rows were written without levels.
    with pytest.raises(HunchError, match="there are: framing=plain, framing=warm"):
        LiveReport().make(study, ReportArguments(condition=("framing=cold",)))


@pytest.mark.django_db
def test_before_there_are_answers_it_says_so() -> None:
    with pytest.raises(HunchError, match="no answer counts yet"):
        reports.make(cast.small_study("empty"), "live")
