"""What a pilot showed, and that its times are checked against the pay before the first main stage opens."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.exceptions import PayTooLow, StateRefused
from survey.models import QuestionReport, Response, Sitting, Stage, Study
from survey.services.results.pilots.pilot_data import ScreenLine, Spread, pilot_report
from survey.services.results.pilots.pilot_report import SCREENS, _screen_row
from survey.services.sittings.answering import advance
from survey.services.sittings.expiry import expire_sitting
from survey.services.sittings.flow import current_step
from survey.services.sittings.hourly_pay import hourly_pay, hourly_pay_by_pilot
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

STAGES = [{"sittings": 6, "pilot": True}, {"sittings": 4}]
PAID = {**cast.PROLIFIC, "reward": 100, "spending_cap": 100_000}


def ids(number: int) -> Any:
    return cast.PanelIds("prolific", f"person{number}", "study", f"submission{number}")


def stage(study: Study, index: int) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=index)


def takes(sitting: Sitting, minutes: float) -> None:
    Sitting.objects.filter(pk=sitting.pk).update(ended_at=sitting.started_at + timedelta(minutes=minutes))


def piloted(study: Study, *minutes: float) -> list[Sitting]:
    """People who have been through the pilot, each in so many minutes."""
    sittings = []
    for number, taken in enumerate(minutes):
        sitting = cast.begin(study, ids(number) if study.config.panel.kind == "prolific" else None)
        cast.walk(sitting)
        takes(sitting, taken)
        sittings.append(sitting)
    return sittings


def close_pilot(study: Study) -> None:
    lifecycle.close_stage(stage(study, 1), now=True)
    jobs.run_inline(stage(study, 1))


def test_it_tells_minutes_losses_and_who_finished() -> None:
    study = cast.open_study(stages=STAGES)
    piloted(study, 2, 4, 6)
    lost = cast.begin(study)
    cast.walk(lost, until="item")
    step = current_step(lost)
    advance(sitting=lost, step=step.number, data=cast.answers_for(step))
    expire_sitting(lost.pk, now=timezone.now())
    report = pilot_report(study)
    assert (report.begun, report.finished) == (4, 3)
    assert report.minutes == Spread(3, 4, 3, 5)
    lines = {(line.kind, line.name): line for line in report.screens}
    assert lines["item", "posterior"].left == 1 and lines["item", "prior"].left == 0
    prior = lines["item", "prior"].seconds
    assert prior is not None and prior.n == Response.objects.filter(screen="prior").count() == 10
    Response.objects.filter(screen="prior").update(server_ms=2500)
    lines = {(line.kind, line.name): line for line in pilot_report(study).screens}
    assert lines["item", "prior"].seconds == Spread(10, 2.5, 2.5, 2.5)


def test_it_is_of_the_pilots_people_alone_and_times_of_those_who_were_not_away() -> None:
    study = cast.open_study(stages=[{"sittings": 3, "pilot": True}, {"sittings": 4}])
    (first, *_others) = piloted(study, 2, 4, 6)
    close_pilot(study)
    before = pilot_report(study)
    lifecycle.open_stage(stage(study, 2))
    piloted(study, 50)
    after = pilot_report(study)
    for name in ("begun", "finished", "by_state", "minutes", "screens", "checks", "outcomes", "shares", "remarks"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.begun, after.outcomes[0][2]) == (3, 9)
    # Who finished after their sitting was over had been away: their minutes say nothing.
    Sitting.objects.filter(pk=first.pk).update(expired_at=timezone.now())
    late = pilot_report(study)
    assert (late.finished, late.minutes) == (3, Spread(2, 5, 4.5, 5.5))
    assert Spread.of([7]) == Spread(1, 7, 7, 7) and Spread.of([]) is None


def test_it_tells_which_checks_failed_in_which_attempt() -> None:
    study = cast.open_study(stages=STAGES)
    piloted(study, 2)
    sitting = cast.begin(study)
    step = cast.walk(sitting, until="checks")
    for _attempt in range(2):
        answers = {**cast.answers_for(step), "first_check": cast.wrong_answers_for(step)["first_check"]}
        step = advance(sitting=sitting, step=step.number, data=answers)
    checks = {line.name: line for line in pilot_report(study).checks}
    assert (checks["first_check"].shown, checks["first_check"].failed, checks["first_check"].failed_again) == (2, 1, 1)
    assert (checks["second_check"].failed, checks["second_check"].failed_again) == (0, 0)
    assert {line.left for line in pilot_report(study).screens if line.kind == "checks"} == {1}


def test_it_tells_shares_of_round_numbers_and_of_changes() -> None:
    study = cast.open_study(stages=STAGES)
    piloted(study, 2)
    report = pilot_report(study)
    assert report.outcomes[0][1:] == (1.0, 3)
    assert {(line.what, line.value): line.share for line in report.shares} == {
        ("prior", 0): 0.0,
        ("prior", 50): 0.0,
        ("prior", 100): 0.0,
        ("posterior", 0): 0.0,
        ("posterior", 50): 0.0,
        ("posterior", 100): 0.0,
    }
    Response.objects.get(assignment__position=1, screen="prior").belief.__class__.objects.filter(kind="prior").update(
        value=50
    )
    assert next(line.share for line in pilot_report(study).shares if (line.what, line.value) == ("prior", 50)) == 1.0


def test_it_tells_what_people_wrote_and_leaves_out_who_withdrew() -> None:
    study = cast.open_study(stages=STAGES)
    for words in ("It was <b>long</b>.", "I said nothing."):
        sitting = cast.begin(study)
        step = cast.walk(sitting, until="form")
        advance(sitting=sitting, step=step.number, data=cast.answers_for(step, remark=words))
        cast.walk(sitting)
    answer = sitting.assignments.first()
    QuestionReport.objects.create(sitting=sitting, assignment=answer, screen="prior", text="odd", at=timezone.now())
    assert [remark.text for remark in pilot_report(study).remarks] == ["It was <b>long</b>.", "I said nothing.", "odd"]
    withdraw(respondent=sitting.respondent, now=timezone.now())
    report = pilot_report(study)
    assert [remark.text for remark in report.remarks] == ["It was <b>long</b>."]
    assert (report.begun, report.withdrawn) == (1, 1)


def test_the_first_main_stage_does_not_open_below_the_minimum_by_the_pilots_median() -> None:
    study = cast.open_study(stages=STAGES, panel=PAID)
    piloted(study, 10, 12, 14)
    close_pilot(study)
    pay = hourly_pay_by_pilot(study)
    assert pay is not None and pay.cents == pytest.approx(500) and pay.is_too_low
    with pytest.raises(PayTooLow, match="by the pilot's median of 3 finished sittings"):
        lifecycle.open_stage(stage(study, 2))
    assert stage(study, 2).state == "draft"
    text = cast.study_text(stages=STAGES, panel={**PAID, "reward": 160})
    amending.amend(study, text=text, source_name="new.toml", reason="the pilot took longer")
    assert lifecycle.open_stage(stage(study, 2)).state == "open"


def test_too_few_finished_or_another_sitting_says_nothing_about_the_pay() -> None:
    study = cast.open_study(stages=STAGES, panel=PAID)
    piloted(study, 30, 30)
    assert hourly_pay_by_pilot(study) is None
    cast.walk(third := cast.begin(study, ids(9)))
    takes(third, 30)
    assert hourly_pay_by_pilot(study) is not None
    close_pilot(study)
    text = cast.study_text(stages=STAGES, panel=PAID, sitting={"items": 2})
    amending.amend(study, text=text, source_name="new.toml", reason="shorter")
    assert hourly_pay_by_pilot(Study.objects.get(pk=study.pk)) is None
    assert lifecycle.open_stage(stage(study, 2)).state == "open"


@pytest.mark.thorough
def test_the_live_pay_is_by_the_main_stages_once_somebody_has_finished_one() -> None:
    study = cast.open_study(stages=[{"sittings": 12, "pilot": True}, {"sittings": 4}], panel=PAID)
    piloted(study, *[30] * 10)
    live = hourly_pay(study)
    assert live is not None and live.minutes == 30 and live.is_too_low


def test_it_refuses_a_study_without_a_pilot_or_without_people() -> None:
    with pytest.raises(StateRefused, match="has no pilot"):
        pilot_report(cast.open_study())
    with pytest.raises(StateRefused, match="nobody has begun"):
        pilot_report(cast.open_study(slug="piloted", stages=STAGES))


def test_the_command_prints_it() -> None:
    study = cast.open_study(stages=STAGES, panel=PAID)
    piloted(study, 2, 4, 6)
    out = StringIO()
    call_command("pilot_report", "cast", stdout=out)
    for part in (
        "3 people began the pilot",
        "median 4.0",
        "prior",
        "first_check",
        "posterior is exactly 100",
        "USD an hour",
    ):
        assert part in out.getvalue(), part


def test_a_screens_quartiles_stand_in_their_columns() -> None:
    row = _screen_row(ScreenLine("item", "prior", Spread(3, 4, 2, 9), 1))
    assert dict(zip((column.name for column in SCREENS), row, strict=True)) == {
        "kind": "item",
        "name": "prior",
        "times": 3,
        "left": 1,
        "median_seconds": 4,
        "lower_seconds": 2,
        "upper_seconds": 9,
    }
    assert _screen_row(ScreenLine("item", "prior", None, 1)) == ["item", "prior", 0, None, None, None, 1]
