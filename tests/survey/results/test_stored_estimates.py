"""Stored estimates: the same figures as computed ones, never shown as current when something has changed."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from bandit import Retest
from survey import tasks
from survey.exceptions import HunchError, StateRefused
from survey.instruments.belief_update.models import Belief
from survey.models import Question, Respondent, Sitting, StoredEstimate, Study
from survey.services.results.estimates import stored_estimates, study_estimates
from survey.services.results.estimates.stored_estimates import BeingComputed, ShownEstimates, shown_estimates
from survey.services.results.estimates.study_estimates import Noise, StudyEstimates
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast
from tests.kept import kept
from tests.survey import filled

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

FLAGS: dict[str, Any] = {
    "flags": {"same_answers": {"share": 1.0, "items": 3}},
    "exclusions": {"flags": ["same_answers"]},
}


@pytest.fixture
def study() -> Study:
    return frozen_and_open_stage()


@kept
def frozen_and_open_stage() -> Study:
    """A frozen stage, and an open one with answers of some of its people."""
    made = cast.small_study(
        on=cast.small_bank(200, name="wide"),
        stages=[{"sittings": 4}, {"sittings": 3}],
        sitting={"items": 6},
        predictor={"name": "same_task"},
        **FLAGS,
    )
    filled.answer(lifecycle.open_stage(cast.stage_of(made, 1)), lose=1, late=1)
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(made, 1)))
    filled.answer(lifecycle.open_stage(cast.stage_of(made, 2)), seed=2, lose=6)
    return Study.objects.get(pk=made.pk)


@pytest.fixture
def by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every study had too many answers for a request."""
    monkeypatch.setattr(stored_estimates, "MAX_ANSWERS_IN_REQUEST", -1)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for each time that estimates are computed."""
    calls: list[str] = []
    estimate = study_estimates.estimate
    monkeypatch.setattr(study_estimates, "estimate", lambda *a, **k: calls.append("once") or estimate(*a, **k))
    return calls


def fresh(study: Study) -> Study:
    return Study.objects.select_related("bank").get(pk=study.pk)


def work(study: Study) -> ShownEstimates:
    """What the page shows once the workers have done what is due."""
    for row in stored_estimates.due_estimates():
        assert stored_estimates.compute(row.pk)
    return shown_estimates(fresh(study))


def stored(study: Study) -> StoredEstimate:
    return StoredEstimate.objects.get(study=study)


def text_of(report: StudyEstimates) -> str:
    """With every digit, and NaN, which is equal to nothing else."""
    return json.dumps(asdict(report), default=lambda value: value.item())


def first_view(study: Study) -> ShownEstimates:
    with pytest.raises(BeingComputed):
        shown_estimates(study)
    return work(study)


def test_few_answers_are_estimated_at_once_and_then_shown_as_stored(study: Study, computed: list[str]) -> None:
    views = [shown_estimates(fresh(study)) for _view in range(3)]
    assert computed == ["once"] and all(view.is_current for view in views)
    assert len({view.computed_at for view in views}) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("by", [[], ["outcome", "target_task"]])
def test_what_is_stored_is_what_is_computed_to_the_last_digit(study: Study, by: list[str]) -> None:
    report = study_estimates.estimate(study, by=by)
    shown_estimates(study, by=by)
    assert text_of(shown_estimates(study, by=by).report) == text_of(report)
    assert shown_estimates(study, by=by).report.as_json() == report.as_json()


def test_a_figure_that_is_not_known_stays_unknown(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Retest(n=1, n_clusters=1, correlation=math.nan, interval=(math.nan, math.inf), same=1.0)
    report = replace(study_estimates.estimate(study), noise=Noise({}, {"prior": unknown}, None))
    monkeypatch.setattr(study_estimates, "estimate", lambda *_a, **_k: report)
    shown_estimates(study)
    retest = shown_estimates(study).report.noise.retests["prior"]
    assert math.isnan(retest.correlation) and math.isnan(retest.interval[0]) and retest.interval[1] == math.inf


def test_who_comes_too_early_is_asked_back_in_half_a_minute() -> None:
    assert stored_estimates._being_computed(Study(slug="s")).retry_after == 30


@pytest.mark.thorough
def test_many_answers_are_left_to_a_worker(study: Study, by_workers: None, computed: list[str]) -> None:
    with pytest.raises(BeingComputed) as refused:
        shown_estimates(study)
    assert (refused.value.code, refused.value.status, refused.value.retry_after) == ("being_computed", 409, 30)
    assert computed == []
    view = work(study)
    assert computed == ["once"] and view.is_current
    assert view.report.as_json() == study_estimates.estimate(study).as_json()


def test_a_task_is_sent_for_what_is_queued(study: Study, by_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(tasks.compute_estimates, "apply_async", lambda arguments, **_k: sent.append(arguments))
    tasks.run_due_steps()
    with pytest.raises(BeingComputed):
        shown_estimates(study)
    for _beat in range(2):
        tasks.run_due_steps()
    assert sent == [(stored(study).pk,)]
    assert tasks.compute_estimates(stored(study).pk) and not tasks.compute_estimates(stored(study).pk)
    assert shown_estimates(study).is_current


def an_answer(study: Study) -> None:
    free = cast.stage_of(study, 2).slots.filter(assignments__isnull=True)[0]
    sitting = Sitting.objects.filter(booklet=free.booklet_id).get()
    assignment = cast.assignment(sitting, free, position=free.position, state="counted", completed_at=timezone.now())
    for number, kind in enumerate(("prior", "posterior"), start=1):
        Belief.objects.create(response=cast.response(assignment, number), kind=kind, value=40 + number)


def a_place_taken(study: Study) -> None:
    free = cast.stage_of(study, 2).slots.filter(assignments__isnull=True)[0]
    cast.assignment(Sitting.objects.filter(booklet=free.booklet_id).get(), free, position=free.position)


def a_withdrawal_after_the_freeze(study: Study) -> None:
    withdraw(respondent=Respondent.objects.filter(sittings__stage__index=1)[0], now=timezone.now())


def an_amendment(study: Study) -> None:
    text = study.source_text.replace("items = 3", "items = 2", 1)
    amending.amend(study, text=text, source_name="new.toml", reason="stricter")


def a_page_that_may_flag(study: Study) -> None:
    Sitting.objects.filter(stage=cast.stage_of(study, 2)).update(last_seen_at=timezone.now() + timedelta(seconds=1))


def a_freeze(study: Study) -> None:
    jobs.run_inline(lifecycle.close_stage(cast.stage_of(study, 2)))


def a_flagged_question(study: Study) -> None:
    Question.objects.filter(bank=study.bank, position=0).update(flag=Question.Flag.EXCLUDED, flag_reason="too easy")


def an_exclusion_taken_back(study: Study) -> None:
    stage = cast.stage_of(study, 1)
    stage.exclusions.create(sitting=stage.sittings.all()[0], flags=["same_answers"], decided_at=timezone.now())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        an_answer,
        a_place_taken,
        a_withdrawal_after_the_freeze,
        an_amendment,
        a_page_that_may_flag,
        a_freeze,
        a_flagged_question,
        an_exclusion_taken_back,
    ],
)
def test_no_change_leaves_old_figures_as_current(
    study: Study, by_workers: None, change: Callable[[Study], None]
) -> None:
    before = first_view(study)
    assert shown_estimates(fresh(study)).is_current
    change(fresh(study))
    try:
        view = shown_estimates(fresh(study))
    except BeingComputed:  # After a withdrawal nothing is left to show.
        pass
    else:
        assert not view.is_current and view.computed_at == before.computed_at
        assert view.report.as_json() == before.report.as_json()
    with time_machine.travel(timezone.now() + timedelta(hours=1), tick=True):
        with pytest.raises(BeingComputed) if change is a_withdrawal_after_the_freeze else nullcontext():
            shown_estimates(fresh(study))
        again = work(study)
    assert again.is_current and again.report.as_json() == study_estimates.estimate(fresh(study)).as_json()


@pytest.mark.thorough
def test_new_code_makes_figures_out_of_date(study: Study, by_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    first_view(study)
    monkeypatch.setattr(stored_estimates, "code_digest", lambda: "f" * 64)
    assert not shown_estimates(study).is_current


@pytest.mark.thorough
def test_a_page_that_is_watched_keeps_no_worker_busy(study: Study, by_workers: None) -> None:
    first_view(study)
    StoredEstimate.objects.update(seconds=3.0)
    an_answer(study)
    now = timezone.now()
    for later, due in ((timedelta(seconds=50), 0), (timedelta(seconds=70), 1)):
        with time_machine.travel(now + later, tick=False):
            assert not shown_estimates(study).is_current
            assert len(stored_estimates.due_estimates()) == due


@pytest.mark.thorough
def test_a_withdrawal_leaves_nothing_of_the_person(study: Study) -> None:
    """A mean of one answer is that answer: old figures go with the person."""
    shown_estimates(study, by=["task_pair"])
    assert stored(study).report
    a_withdrawal_after_the_freeze(study)
    row = stored(study)
    assert (row.report, row.basis_sha256, row.computed_at, row.state) == ("", "", None, "queued")


@pytest.mark.parametrize("by_a_worker", [True, False])
def test_figures_with_somebody_who_withdrew_meanwhile_are_not_stored(
    study: Study, monkeypatch: pytest.MonkeyPatch, by_a_worker: bool
) -> None:
    if by_a_worker:
        monkeypatch.setattr(stored_estimates, "MAX_ANSWERS_IN_REQUEST", -1)
        with pytest.raises(BeingComputed):
            shown_estimates(study)
    estimate = study_estimates.estimate

    def and_somebody_withdraws(*arguments: Any, **named: Any) -> Any:
        report = estimate(*arguments, **named)
        a_withdrawal_after_the_freeze(study)
        return report

    monkeypatch.setattr(study_estimates, "estimate", and_somebody_withdraws)
    if by_a_worker:
        assert not stored_estimates.compute(stored(study).pk)
    else:
        with pytest.raises(BeingComputed):
            shown_estimates(study)
    assert (stored(study).report, stored(study).state) == ("", "queued")
    monkeypatch.setattr(study_estimates, "estimate", estimate)
    assert work(study).report.as_json() == estimate(study).as_json()


@pytest.mark.thorough
def test_a_freeze_has_what_was_looked_at_computed_anew(study: Study, by_workers: None) -> None:
    first_view(study)
    assert stored_estimates.due_estimates() == []
    a_freeze(study)
    assert [row.study_id for row in stored_estimates.due_estimates()] == [study.pk]


def test_a_row_whose_worker_died_waits_until_somebody_looks(study: Study, by_workers: None) -> None:
    first_view(study)
    an_answer(study)
    StoredEstimate.objects.update(state="running", lease_until=timezone.now() - timedelta(seconds=1), seconds=0)
    assert stored_estimates.due_estimates() == []
    shown_estimates(study)
    assert len(stored_estimates.due_estimates()) == 1


def test_a_worker_that_cannot_compute_says_so(
    study: Study, by_workers: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BeingComputed):
        shown_estimates(study)
    monkeypatch.setattr(study_estimates, "estimate", lambda *_a, **_k: 1 / 0)
    assert not stored_estimates.compute(stored(study).pk)
    assert "ZeroDivisionError" in caplog.text
    with pytest.raises(StateRefused, match="cannot be computed"):
        shown_estimates(study)


def test_what_cannot_be_estimated_is_stored_too(computed: list[str]) -> None:
    empty = cast.open_stage().study
    for _view in range(2):
        with pytest.raises(StateRefused, match="no answer counts yet"):
            shown_estimates(empty)
    assert computed == ["once"]


def test_an_unknown_division_is_refused_and_stores_nothing(study: Study) -> None:
    with pytest.raises(HunchError, match="weather is not one of"):
        shown_estimates(study, by=["weather"])
    assert not StoredEstimate.objects.exists()


@pytest.mark.thorough
def test_a_study_has_a_limited_number_of_them(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_estimates, "MAX_ROWS", 2)
    for by in (["outcome"], ["same_task"], ["target_task"]):
        shown_estimates(study, by=by)
    assert [row.asked["by"] for row in StoredEstimate.objects.order_by("pk")] == [["same_task"], ["target_task"]]
