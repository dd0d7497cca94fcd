"""A person withdraws: the content is deleted, the design stays, and predictors that had learnt from it are named."""

from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from predictors import training as predictor_training
from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused
from survey.instruments.belief_update.models import Belief
from survey.models import (
    Assignment,
    AuditEntry,
    Booklet,
    CheckAttempt,
    Consent,
    Erasure,
    FormAnswer,
    Job,
    JobStep,
    LiveSnapshot,
    PanelIdentity,
    PredictorRun,
    Respondent,
    Response,
    Score,
    Sitting,
    SnapshotAnswer,
    StoredEstimate,
    Submission,
    UnfinishedScreen,
    Withdrawal,
)
from survey.services.answers.counting import counted_answers, frozen_answers, training_examples
from survey.services.base.erasures import ref_of
from survey.services.results.estimates.study_estimates import estimate
from survey.services.results.export.answers_file import answer_rows
from survey.services.results.export.columns import columns_of
from survey.services.sittings import debriefing, expiry, withdrawal
from survey.services.sittings.enrolment import begin_sitting, find_sitting
from survey.services.sittings.flow import current_step
from survey.services.sittings.timing import record_unfinished
from survey.services.sittings.withdrawal import plan_withdrawal, runs_that_learnt_from, withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.stages.verifying import verify_stage
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def take_back(visitor: Any, reason: str = "a letter") -> Withdrawal:
    sitting = visitor if isinstance(visitor, Sitting) else visitor.sitting
    return withdraw(respondent=sitting.respondent, now=timezone.now(), reason=reason)


def test_all_content_goes_and_the_plan_keeps_its_rows() -> None:
    stage = cast.open_stage()
    remaining, gone = cast.Visitor(stage.study).finish(), cast.Visitor(stage.study).finish()
    FormAnswer.objects.create(sitting=gone.sitting, block="form", answers={"age": 30}, at=timezone.now())
    slots = gone.slots()
    done = take_back(gone)
    assert not Response.objects.filter(assignment__sitting=gone.sitting).exists()
    assert Belief.objects.count() == Response.objects.filter(assignment__sitting=remaining.sitting).count() == 6
    assert not FormAnswer.objects.exists()
    assert not CheckAttempt.objects.filter(sitting=gone.sitting).exists()
    assert gone.slots() == slots and gone.states() == ["withdrawn"] * 3
    assert Consent.objects.filter(sitting=gone.sitting).exists()
    assert gone.reload().withdrawn_at == done.at
    assert (done.answers, done.reason) == (3, "a letter")
    assert done.removed["responses"] == 6 and done.removed["beliefs"] == 6 and done.removed["check attempts"] == 1
    assert remaining.states() == ["counted"] * 3


# What stays of a person, and the words in which they read of it before they confirm.
SAID = {
    "Respondent": "a code by which we notice",
    "PanelIdentity": "a code by which we notice",
    "WaveIdentity": "a code by which we notice",
    "Sitting": "when you ended and withdrew",
    "Consent": "when and in which language you agreed to take part",
    "Assignment": "which questions",
    "SnapshotAnswer": "which questions",
    "AssignmentCondition": "versions lay before you",
    "ConditionLevel": "versions lay before you",
    "Withdrawal": "how much was deleted",
    "Submission": "until you are paid the number under which you came",
}
# Times of our own rows, not of people: when ids were stored, and what a panel says.
OF_PANELS = ("PanelIdentity", "WaveIdentity", "Submission")


def rows_of_person(respondent: Any) -> dict[str, list[Any]]:
    """Every row that leads to the person, by foreign keys, whatever its table."""
    keys_by_model: dict[Any, set[Any]] = {type(respondent): {respondent.pk}}
    waiting = [type(respondent)]
    while waiting:
        model = waiting.pop()
        for relation in model._meta.get_fields(include_hidden=True):
            if not relation.auto_created or relation.concrete or relation.many_to_many:
                continue
            child = relation.related_model
            keys = {
                *child._base_manager.filter(**{f"{relation.field.name}__in": keys_by_model[model]}).values_list(
                    "pk", flat=True
                )
            }
            if keys - keys_by_model.get(child, set()):
                keys_by_model[child] = keys_by_model.get(child, set()) | keys
                waiting.append(child)
    return {
        model.__name__: [*model._base_manager.filter(pk__in=keys)]
        for model, keys in keys_by_model.items()
        if not model._meta.auto_created
    }


@pytest.mark.parametrize("panel", [{"kind": "open"}, cast.PROLIFIC], ids=lambda panel: panel["kind"])
def test_what_remains_is_what_the_page_says(panel: dict[str, Any]) -> None:
    study = cast.open_study(panel=panel, conditions=[{"factor": "framing", "levels": ["plain", "warm"]}])
    ids = None if panel["kind"] == "open" else PanelIds("prolific", "person", "study", "submission")
    sitting = cast.begin(study, ids)
    for _place in range(4):
        cast.walk(sitting, until="item")
        sitting.refresh_from_db()
    cast.walk(sitting)
    respondent = sitting.respondent
    before = rows_of_person(respondent)
    assert {"FormAnswer", "Response", "ScreenTiming", "CheckAttempt", "Belief"} <= {
        name for name in before if before[name]
    }
    sitting.refresh_from_db()
    agreed_at, ended_at = sitting.consent.given_at, sitting.ended_at
    done = withdraw(respondent=respondent, now=timezone.now() + timedelta(hours=3))
    left = {name: rows for name, rows in rows_of_person(respondent).items() if rows}
    paid = panel["kind"] != "open"
    sentence = debriefing.second_question(paid=paid).hint
    assert {name for name in left if SAID[name] not in sentence} == set()
    assert ("We also keep what you are owed" in sentence) is paid
    assert ("Your pay is the same" in debriefing.question(paid=paid).hint) is paid
    assert {model.__name__ for model in withdrawal.STAYS} == set(SAID)
    times = {
        (name, field.name): getattr(row, field.name)
        for name, rows in left.items()
        if name not in OF_PANELS
        for row in rows
        for field in row._meta.concrete_fields
        if field.get_internal_type() == "DateTimeField"
    }
    assert {place: at for place, at in times.items() if at not in (None, agreed_at, ended_at, done.at)} == {}
    assert {str(booklet.claimed_at) for booklet in Booklet.objects.filter(sitting=sitting)} == {str(agreed_at)}
    (identity,) = left["PanelIdentity"]
    assert bool(identity.ids_encrypted) == paid and identity.person_hash


def test_somebody_who_was_silent_and_withdraws_leaves_no_time_of_that() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    silent_at = timezone.now() + timedelta(hours=2)
    assert expiry.expire_sitting(visitor.sitting.pk, now=silent_at)
    withdraw(respondent=visitor.sitting.respondent, now=silent_at + timedelta(hours=1))
    sitting = visitor.reload()
    assert sitting.state == "expired" and sitting.expired_at == sitting.ended_at == sitting.withdrawn_at
    assert sitting.started_at == sitting.last_seen_at == sitting.consent.given_at


def test_what_was_made_of_the_answers_goes_too_and_nothing_of_another_study() -> None:
    """Pictures of the running study, figures and result files; what is being made of them now may not be written."""
    visitor, other = (cast.Visitor(cast.open_stage(slug).study).finish() for slug in ("small", "other"))
    now, running = timezone.now(), {"state": "running", "lease_until": timezone.now() + timedelta(minutes=1)}
    gone_study, other_study = (person.sitting.stage.study for person in (visitor, other))
    for study in (gone_study, other_study):
        LiveSnapshot.objects.create(study=study, quick={"n": 1}, quick_at=now, slow={"n": 1}, slow_at=now)
        StoredEstimate.objects.create(
            study=study, asked={}, asked_sha256="a", state="done", report="{}", basis_sha256="b"
        )
        made = {"state": "done", "files": [{"name": "answers.csv"}], "expires_at": now + timedelta(days=1)}
        Job.objects.create(study=study, kind="export", asked_sha256="a", finished_at=now, **made)
        Job.objects.create(study=study, kind="export", asked_sha256="b", attempt=1, **running)
    take_back(visitor)
    for study, is_gone in ((gone_study, True), (other_study, False)):
        picture = LiveSnapshot.objects.get(study=study)
        assert (picture.quick, picture.slow) == (({}, {}) if is_gone else ({"n": 1}, {"n": 1}))
        estimate = StoredEstimate.objects.get(study=study)
        assert (estimate.state, estimate.report) == (("queued", "") if is_gone else ("done", "{}"))
        jobs_now = [(job.state, bool(job.files), job.attempt) for job in Job.objects.filter(study=study).order_by("pk")]
        assert jobs_now == (
            [("expired", False, 0), ("queued", False, 2)] if is_gone else [("done", True, 0), ("running", False, 1)]
        )
    (erasure,) = Erasure.objects.all()
    assert erasure.refs == [ref_of(visitor.sitting.respondent)] and erasure.what == "answers"


def test_people_and_submissions_of_the_same_name_are_two_on_the_list_of_erasures() -> None:
    refs = {ref_of(row) for row in (Respondent(pseudonym="x"), Submission(submission_hash="x"))}
    assert len(refs) == 2 and not any("x" in ref for ref in refs)


def test_it_is_written_down_without_content() -> None:
    visitor = cast.Visitor(cast.open_stage().study).finish()
    take_back(visitor)
    entry = AuditEntry.objects.get(action="withdraw")
    assert entry.subject == visitor.sitting.respondent.pseudonym
    assert entry.detail["answers"] == 3


def test_a_second_time_changes_nothing() -> None:
    visitor = cast.Visitor(cast.open_stage().study).finish()
    first = take_back(visitor)
    again = withdraw(respondent=visitor.sitting.respondent, now=timezone.now() + timedelta(days=1), reason="again")
    assert (again.pk, again.at, again.reason) == (first.pk, first.at, "a letter")
    assert AuditEntry.objects.filter(action="withdraw").count() == 1


def test_who_was_past_the_items_is_complete_and_who_was_not_is_over_without_a_completion_code() -> None:
    stage = cast.open_stage()
    through, inside = cast.Visitor(stage.study).to_items(), cast.Visitor(stage.study).to_items()
    form = next(index for index, block in enumerate(stage.study.config.blocks) if block.kind == "items") + 1
    Sitting.objects.filter(pk=through.sitting.pk).update(block=form)
    take_back(through)
    take_back(inside)
    assert (through.reload().state, through.step.outcome) == ("complete", "completed")
    assert inside.reload().is_over and inside.step.kind == "end"
    assert inside.step.outcome == "no_consent"
    assert inside.post(value=50).kind == "end" and not Response.objects.exists()


def test_the_person_does_not_begin_again() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study).finish()
    take_back(visitor)
    again = begin_sitting(study=stage.study, ids=visitor.ids)
    assert again.pk == visitor.sitting.pk and current_step(again).kind == "end"
    assert PanelIdentity.objects.count() == 1


@pytest.mark.thorough
def test_slots_of_an_open_stage_are_dealt_again_and_answered_by_somebody_else() -> None:
    stage = cast.open_stage()
    gone = cast.fill(stage)[0]
    with pytest.raises(EntryRefused):
        cast.Visitor(stage.study)
    take_back(gone)
    expiry.deal_make_up_booklets(stage)
    assert Booklet.objects.filter(kind="make_up", claimed_at__isnull=True).count() == 1
    other = cast.Visitor(stage.study).finish()
    assert sorted(other.slots()) == sorted(gone.slots())
    assert stage.slots.filter(assignments__state="counted").distinct().count() == stage.slots.count() == 12


def test_a_frozen_stage_keeps_the_hash_and_verifies_but_for_what_was_withdrawn() -> None:
    stage = cast.closed_stage()
    lifecycle.freeze(stage)
    stage.refresh_from_db()
    gone = stage.sittings.first()
    digests = list(SnapshotAnswer.objects.values_list("digest", flat=True))
    take_back(gone)
    stage.refresh_from_db()
    assert list(SnapshotAnswer.objects.values_list("digest", flat=True)) == digests
    assert SnapshotAnswer.objects.filter(withdrawn_at__isnull=False).count() == 3
    verification = verify_stage(stage)
    assert (verification.differences, verification.answers, verification.withdrawn) == ([], 12, 3)
    out = StringIO()
    call_command("verify_stage", stage.study.slug, "1", stdout=out)
    assert "3 withdrawn" in out.getvalue()
    assert len(frozen_answers(stage)) == len(counted_answers(stage)) == len(training_examples(stage)) == 9
    assert expiry.deal_make_up_booklets(stage) == 0 and not Booklet.objects.filter(kind="make_up").exists()


TRAINS: dict[str, Any] = {"stages": [{"sittings": 4}, {"sittings": 4}], "predictor": {"name": "same_task"}}


def test_predictors_that_had_learnt_from_the_answers_are_named() -> None:
    stage = cast.frozen_stage(**TRAINS)
    gone = stage.sittings.first()
    runs = list(PredictorRun.objects.exclude(ready_at=None))
    assert runs and runs_that_learnt_from(gone.respondent) == runs
    done = take_back(gone)
    assert list(done.predictor_runs.order_by("pk")) == runs
    assert done.stages == [{"stage": 1, "answers": 3, "frozen": True}]
    assert str(runs[0]) in AuditEntry.objects.get(action="withdraw").detail["predictor_runs"]


def test_a_predictor_with_one_trained_member_has_learnt() -> None:
    stage = cast.frozen_stage(**TRAINS)
    PredictorRun.objects.update(ready_at=None)  # As between the members of an ensemble.
    assert runs_that_learnt_from(stage.sittings.first().respondent) == list(PredictorRun.objects.order_by("pk"))


def test_points_of_an_item_that_was_begun_stay_owed() -> None:
    """Of a screen that has scored, though the item was never complete; and nobody else's."""
    study = cast.open_stage().study
    other = cast.Visitor(study).finish()
    visitor = cast.Visitor(study).to_items()
    visitor.post(value=50)
    for number, response in enumerate(Response.objects.order_by("pk"), start=1):
        is_theirs = response.assignment.sitting_id == visitor.sitting.pk
        Score.objects.create(response=response, value=1.5 if is_theirs else 100 + number, rule="r", version="1")
    assert plan_withdrawal(visitor.sitting.respondent).answers == 0
    assert take_back(visitor).points == Decimal("1.5")
    assert Score.objects.count() == Response.objects.filter(assignment__sitting=other.sitting).count() > 0


def test_a_predictor_whose_first_member_is_in_training_is_named() -> None:
    stage = cast.frozen_stage(**TRAINS)
    respondent = stage.sittings.first().respondent
    (run,) = PredictorRun.objects.filter(role="main")
    PredictorRun.objects.update(members={}, ready_at=None)
    assert runs_that_learnt_from(respondent) == []
    step = JobStep.objects.filter(predictor_run=run).first()
    JobStep.objects.filter(pk=step.pk).update(
        state=JobStep.State.RUNNING, lease_until=timezone.now() + timedelta(minutes=1)
    )
    assert runs_that_learnt_from(respondent) == plan_withdrawal(respondent).runs == [run]


def test_who_leaves_while_a_predictor_learns_finds_it_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the withdrawal looked before the worker's claim could be seen."""
    stage = cast.closed_stage(**TRAINS)
    gone = stage.sittings.first()
    train = predictor_training.train_member

    def train_and_lose(*args: Any) -> Any:
        if not Withdrawal.objects.exists():
            assert list(take_back(gone).predictor_runs.all()) == []
        return train(*args)

    monkeypatch.setattr(withdrawal, "runs_that_learnt_from", lambda _respondent: [])
    monkeypatch.setattr(predictor_training, "train_member", train_and_lose)
    jobs.run_inline(stage)
    assert [run.name for run in Withdrawal.objects.get().predictor_runs.all()] == ["same_task"]


def test_nothing_had_learnt_from_a_stage_that_is_open_or_from_a_held_out_pair() -> None:
    stage = cast.frozen_stage(**TRAINS)
    second = lifecycle.open_stage(cast.stage_of(stage.study, 2))
    late = cast.Visitor(second.study).finish()
    assert plan_withdrawal(late.sitting.respondent).runs == []
    gone = stage.sittings.first()
    stage.slots.filter(assignments__sitting=gone).update(role="holdout")
    assert plan_withdrawal(gone.respondent).runs == []


def test_an_export_names_the_row_and_leaves_its_content_out() -> None:
    stage = cast.open_stage()
    gone = cast.Visitor(stage.study).finish()
    take_back(gone)
    names = [column.name for column in columns_of(stage.study)]
    rows = [dict(zip(names, row, strict=True)) for row in answer_rows(stage.study)]
    theirs = [row for row in rows if row["respondent"] == gone.sitting.respondent.pseudonym]
    assert [row["status"] for row in theirs] == ["withdrawn"] * 3
    assert {row["prior"] for row in theirs} == {row["responses"] for row in theirs} == {None}


@pytest.mark.thorough
def test_estimates_leave_the_answers_out_and_count_them() -> None:
    stage = cast.closed_stage()
    lifecycle.freeze(stage)
    gone = stage.sittings.first()
    assert estimate(stage.study).answers == 12
    take_back(gone)
    report = estimate(stage.study)
    (stratum,) = report.parts[0].strata
    assert (report.answers, stratum.answered, stratum.withdrawn, stratum.lost) == (9, 9, 3, 0)
    assert sum(line.withdrawn for line in report.slots["position"]) == 3


def test_nothing_that_the_browser_tells_afterwards_is_kept() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    before = Sitting.objects.select_related("stage__study__bank", "respondent").get(pk=visitor.sitting.pk)
    times = {"client_shown_ms": "1", "client_submitted_ms": "9"}
    assert record_unfinished(sitting=before, step=str(before.step), data=times)
    take_back(visitor)
    assert not UnfinishedScreen.objects.exists()
    assert not record_unfinished(sitting=before, step=str(before.step), data=times)
    assert not UnfinishedScreen.objects.exists()


def test_the_command_shows_the_plan_first_and_does_it_with_yes() -> None:
    visitor = cast.Visitor(cast.open_stage().study).finish()
    name = visitor.sitting.respondent.pseudonym
    out = StringIO()
    call_command("withdraw", name, stdout=out)
    assert "6 responses" in out.getvalue() and "nothing was deleted" in out.getvalue()
    assert Response.objects.count() == 6 and not Withdrawal.objects.exists()
    call_command("withdraw", name, "--reason", "a letter of 3 May", "--yes", stdout=out)
    assert not Response.objects.exists() and Withdrawal.objects.get().reason == "a letter of 3 May"
    call_command("withdraw", name, "--yes", stdout=out)
    assert "there is nothing left" in out.getvalue()


def test_the_command_refuses_an_unknown_pseudonym() -> None:
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("withdraw", "r-nobody", stderr=err)
    assert "no respondent is called 'r-nobody'" in err.getvalue()


def test_who_has_only_consented_can_withdraw() -> None:
    stage = cast.open_stage()
    visitor = cast.Visitor(stage.study)
    take_back(visitor)
    sitting = find_sitting(stage.study, visitor.ids)
    assert sitting is not None and sitting.is_over
    assert Assignment.objects.count() == 0
