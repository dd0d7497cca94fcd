"""A panel's ids of people are removed once nobody is to be paid by them; hashes that bar a second time stay longer."""

import logging
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.exceptions import EntryRefused, HunchError, StateRefused
from survey.models import (
    AuditEntry,
    PanelIdentity,
    Payment,
    PaymentBatch,
    Posting,
    Respondent,
    Response,
    Score,
    Sitting,
    Stage,
    Study,
    Submission,
    WebhookEvent,
)
from survey.panels import money, purging, reconciliation, webhooks
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_all, read_posting
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.identities import seal, store_identity
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.tasks import look_after_data
from tests import cast

from .world import PAY, arrives, begins, ids_of, posted, stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def soon() -> Any:
    return timezone.now() + timedelta(days=1)


def finished(fake: FakeProlific, posting: Posting) -> Sitting:
    """Somebody who has finished and waits for review."""
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    return sitting


def close(posting: Posting) -> None:
    lifecycle.close_stage(Stage.objects.select_related("study__bank").get(pk=posting.stage_id), now=True)
    jobs.run_inline(Stage.objects.select_related("study__bank").get(pk=posting.stage_id))


def approved(fake: FakeProlific, posting: Posting) -> None:
    reconciliation.approve_finished(posting)
    read_posting(posting)


def test_nothing_goes_while_people_may_still_be_paid(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    sitting = finished(fake, posting)
    assert "stage 1 is open" in purging.payments_open(posting.study)
    close(posting)
    assert "wait for review" in purging.payments_open(posting.study)
    with pytest.raises(HunchError, match="nothing was removed"):
        purging.purge(posting.study, before=soon(), with_hashes=False)
    assert bytes(PanelIdentity.objects.get(respondent=sitting.respondent).ids_encrypted)
    approved(fake, posting)
    assert purging.payments_open(posting.study) == ""
    for left in (1, 0):
        planned = purging.plan_purge(posting.study, before=soon(), with_hashes=False)
        assert (planned.identities, planned.submissions) == (left, left)
        purging.purge(posting.study, before=soon(), with_hashes=False)


def test_a_bonus_that_is_owed_keeps_the_ids(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    close(posting)
    assert "owes 1 bonuses" in purging.payments_open(posting.study)
    money.pay_owed(posting)
    assert purging.payments_open(posting.study) == ""


def test_the_ids_go_and_the_hashes_still_bar_a_second_time(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    close(posting)
    approved(fake, posting)
    done = purging.purge(posting.study, before=soon(), with_hashes=False)
    assert (done.identities, done.submissions, done.hashes) == (1, 1, 0)
    assert bytes(PanelIdentity.objects.get().ids_encrypted) == b""
    assert bytes(Submission.objects.get().ids_encrypted) == b""
    again = begin_sitting(study=posting.study, ids=ids_of(place))
    assert again.pk == sitting.pk and again.is_over
    with pytest.raises(EntryRefused):
        begin_sitting(study=posting.study, ids=PanelIds("prolific", place["participant_id"], "x", "another"))
    read_posting(posting)
    assert bytes(Submission.objects.get().ids_encrypted) == b""
    assert AuditEntry.objects.filter(action="purge_identities").count() == 1


def test_only_those_who_came_before_that_time(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    finished(fake, posting)
    close(posting)
    approved(fake, posting)
    planned = purging.plan_purge(posting.study, before=timezone.now() - timedelta(days=90), with_hashes=False)
    assert (planned.identities, planned.submissions) == (0, 0)


def test_the_hashes_go_with_them_once_the_study_is_over(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    finished(fake, posting)
    other = cast.study(slug="later", bank="cast", panel={**cast.PROLIFIC, "exclude_people_of": ["cast"]})
    close(posting)
    approved(fake, posting)
    assert "later leaves this study's people out" in purging.hashes_needed(posting.study)
    purged = purging.purge(posting.study, before=soon(), with_hashes=True)
    assert purged.hashes == 0 and PanelIdentity.objects.count() == 1
    other.stages.all().delete()
    other.codes.all().delete()
    other.delete()
    gone = purging.purge(posting.study, before=soon(), with_hashes=True)
    assert gone.hashes == 1 and not PanelIdentity.objects.exists()
    assert Submission.objects.get().submission_hash.startswith("purged-")
    with pytest.raises(StateRefused, match="would bring them back"):
        read_posting(posting)


def test_the_panel_is_read_on_though_the_people_of_one_study_were_forgotten(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    finished(fake, posting)
    close(posting)
    approved(fake, posting)
    assert purging.purge(posting.study, before=soon(), with_hashes=True).hashes == 1
    before = Submission.objects.count()
    Posting.objects.update(state="PAUSED")
    assert read_all() == 0
    (external_id,) = list(fake.submissions)
    for number, (kind, resource) in enumerate(
        [("study.status.change", posting.external_id), ("submission.status.change", external_id)]
    ):
        body = seal(PanelIds("prolific", "", "", resource)).encode()
        WebhookEvent.objects.create(
            panel="prolific",
            event_id=f"e{number}",
            event_type=kind,
            body_encrypted=body,
            due_at=timezone.now(),
        )
    webhooks.work_on_events()
    assert {event.state for event in WebhookEvent.objects.all()} == {WebhookEvent.State.IGNORED}
    assert Submission.objects.count() == before


def test_the_command_shows_first_and_says_what_stays(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    finished(fake, posting)
    out = StringIO()
    call_command("purge_identities", "--older-than", "0d", stdout=out)
    assert "cast: kept, stage 1 is open" in out.getvalue()
    close(posting)
    approved(fake, posting)
    out = StringIO()
    call_command("purge_identities", "--older-than", "0d", "--study", "cast", stdout=out)
    assert "would be removed" in out.getvalue() and "nothing was removed" in out.getvalue()
    assert bytes(PanelIdentity.objects.get().ids_encrypted)
    call_command("purge_identities", "--older-than", "0d", "--study", "cast", "--yes", stdout=out)
    assert "ids of 1 people and 1 submissions removed" in out.getvalue()
    assert "keyed hashes stay" in out.getvalue()
    assert bytes(PanelIdentity.objects.get().ids_encrypted) == b""
    err = StringIO()
    with pytest.raises(SystemExit):
        call_command("purge_identities", "--older-than", "three months", stderr=err)
    assert "write for example 90d" in err.getvalue()


def test_nobody_is_paid_by_ids_that_are_gone(fake: FakeProlific) -> None:
    posting = posted(sittings=1)
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    Submission.objects.update(ids_encrypted=b"")
    with pytest.raises(StateRefused, match="ids were removed"):
        money.pay_owed(posting)


def test_beat_forgets_who_withdrew_and_is_paid_and_keeps_who_is_not(fake: FakeProlific) -> None:
    posting = posted(sittings=2)
    sitting = finished(fake, posting)
    withdraw(respondent=sitting.respondent, now=timezone.now())
    assert purging.purge_withdrawn() == 0
    approved(fake, posting)
    assert look_after_data() == 1
    assert bytes(PanelIdentity.objects.get().ids_encrypted) == b"" == bytes(Submission.objects.get().ids_encrypted)
    entry = AuditEntry.objects.get(action="purge_withdrawn")
    assert (entry.subject, entry.study, entry.via) == (str(sitting.respondent), posting.study.slug, "worker")
    assert purging.purge_withdrawn() == 0


@pytest.mark.thorough
def test_beat_looks_once_a_posting_at_what_is_owed(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    posting = posted(sittings=3)
    for _person in range(3):
        withdraw(respondent=finished(fake, posting).respondent, now=timezone.now())
    approved(fake, posting)
    looked = []
    monkeypatch.setattr(purging, "owed", lambda posting: looked.append(posting) or money.owed(posting))
    assert purging.purge_withdrawn() == 3
    assert looked == [posting]


def test_of_people_who_withdrew_each_waits_for_what_is_still_open(fake: FakeProlific) -> None:
    """One is approved, one waits for review, one is owed a bonus, one's bonus may have been paid or not, and one came
    before the panel was read."""
    posting = posted(sittings=6)
    places = [arrives(fake, posting) for _person in range(5)]
    sittings = [begins(posting.study, place) for place in places]
    code = posting.study.completion_code("completed")
    for place, fate in zip(places, ("submit", "submit", "late", "late", ""), strict=True):
        if fate == "submit":
            fake.submit(place["id"], code)
        elif fate == "late":
            fake.time_out(place["id"])
    fake.submissions[places[0]["id"]]["status"] = "APPROVED"
    unread = fake.submissions.pop(places[4]["id"])
    read_posting(posting)
    fake.submissions[unread["id"]] = unread
    rows = {row.respondent_id: row for row in posting.submissions.all()}
    batch = PaymentBatch.objects.create(posting=posting, state="unknown", sent_at=timezone.now())
    Payment.objects.create(batch=batch, submission=rows[sittings[3].respondent_id], kind="late", amount=100)
    for sitting in sittings:
        withdraw(respondent=sitting.respondent, now=timezone.now())
    assert purging.purge_withdrawn() == 1
    forgotten = PanelIdentity.objects.filter(ids_encrypted=b"").values_list("respondent", flat=True)
    assert list(forgotten) == [sittings[0].respondent_id]


def test_one_study_that_cannot_be_judged_stops_no_other(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    posting = posted(sittings=1)
    withdraw(respondent=finished(fake, posting).respondent, now=timezone.now())
    approved(fake, posting)
    broken = cast.open_study(slug="broken", panel=cast.PROLIFIC, sitting={"items": 1})
    sitting = begin_sitting(study=broken, ids=PanelIds("prolific", "p", "s", "x"))
    withdraw(respondent=sitting.respondent, now=timezone.now())
    judged = purging._still_to_pay

    def judge(study: Any, people: Any) -> Any:
        if study == broken:
            raise KeyError("a plug-in's own error")
        return judged(study, people)

    monkeypatch.setattr(purging, "_still_to_pay", judge)
    assert purging.purge_withdrawn() == 1
    assert "broken: the ids of people who withdrew could not be removed" in caplog.text


def test_who_withdrew_keeps_the_bonus_that_was_earned(fake: FakeProlific) -> None:
    posting = posted(sittings=2, bonus_per_point=10)
    sitting = finished(fake, posting)
    responses = list(Response.objects.filter(assignment__sitting=sitting).order_by("pk"))
    for response, value in zip(responses, ("1.25", "1.75"), strict=False):
        Score.objects.create(response=response, value=value, rule="r", version="1")
    approved(fake, posting)
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [("score", 30)]
    done = withdraw(respondent=sitting.respondent, now=timezone.now())
    assert done.points == 3 and not Score.objects.exists()
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [("score", 30)]
    assert purging.purge_withdrawn() == 0, "the ids are needed to pay it"
    money.pay_owed(posting)
    assert purging.purge_withdrawn() == 1


def test_beat_says_whose_data_was_to_be_gone(caplog: pytest.LogCaptureFixture) -> None:
    study = cast.open_study()
    cast.begin(study)
    with caplog.at_level(logging.WARNING, logger="survey.tasks"):
        look_after_data()
        assert "data may be kept" not in caplog.text
        study.stored_config["data"]["retention_until"] = "2020-01-01"
        study.save(update_fields=["stored_config"])
        look_after_data()
    assert "cast: data may be kept until 2020-01-01" in caplog.text


@pytest.mark.parametrize(
    ("started", "completed", "is_purged"),
    [(-2, 2, True), (2, None, False), (None, -2, True), (None, 2, False), (-2, None, True), (0, 1, False)],
)
def test_who_arrived_before_the_day_is_among_the_purged_whenever_they_finished(
    db: None, started: int | None, completed: int | None, is_purged: bool
) -> None:
    day = timezone.now() + timedelta(days=30)
    posting = stored_posting(cast.open_study(panel={**cast.PROLIFIC, **PAY}))
    at = {"started_at": started, "completed_at": completed}
    stored_submission(
        posting, None, "APPROVED",
        **{name: None if days is None else day + timedelta(days=days) for name, days in at.items()},
    )  # fmt: skip
    assert purging._submissions(posting.study, day).exists() is is_purged


def test_ids_stay_while_a_payment_or_a_submission_has_no_end(db: None) -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY})
    study.stages.update(state="frozen", plan_sha256="p", snapshot_sha256="s")
    posting = stored_posting(study)
    batch = PaymentBatch.objects.create(posting=posting, sent_at=timezone.now())
    row = stored_submission(posting, None, "APPROVED")

    def keeps(rows: Any, **values: Any) -> bool:
        rows.update(**values)
        return bool(purging.payments_open(study))

    batches = PaymentBatch.objects.filter(pk=batch.pk)
    assert [state for state in PaymentBatch.State.values if keeps(batches, state=state)] == [
        "prepared", "sent", "unknown",
    ]  # fmt: skip
    assert not keeps(batches, state="paid")
    words = ("RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "REJECTED", "RETURNED", "TIMED-OUT")
    submissions = posting.submissions.filter(pk=row.pk)
    assert [word for word in words if keeps(submissions, status=word)] == ["RESERVED", "ACTIVE", "AWAITING REVIEW"]


def test_ids_stay_until_the_first_wave_that_people_may_still_come_to_is_over(db: None) -> None:
    waves = [{"after_days": 1, "open_days": 7}] * 2
    stages = [{"sittings": 2}, {"sittings": 2, "wave": 2}, {"sittings": 2, "wave": 3}]
    study = cast.study(panel={"kind": "links", "currency": "USD", "reward": 100}, stages=stages, waves=waves)
    assert purging._wave_to_come(study) == 0, "nobody has come"
    cast.sitting(cast.stage_of(study))
    for wave, left in ((1, 2), (2, 3), (3, 0)):
        study.stages.filter(index=wave).update(state="frozen", plan_sha256="p", snapshot_sha256="s")
        assert purging._wave_to_come(study) == left


def test_what_is_past_its_term_is_listed_once_a_study_with_its_own_people(db: None) -> None:
    for slug, people, until in (("past", 3, "2020-01-01"), ("later", 2, "2999-01-01"), ("empty", 0, "2020-01-01")):
        study = cast.study(slug=slug, panel=cast.PROLIFIC)
        study.stored_config["data"]["retention_until"] = until
        study.save(update_fields=["stored_config"])
        for number in range(people):
            ids = PanelIds("prolific", f"p{number}", "s", f"x{number}")
            store_identity(respondent=Respondent.objects.create(study=study), ids=ids, browser="")
    assert [(study.slug, people) for study, people in purging.past_their_term()] == [("past", 3)]


def test_hashes_are_needed_as_long_as_another_study_leaves_these_people_out_and_is_not_over(db: None) -> None:
    study = cast.open_study(panel=cast.PROLIFIC)
    frozen = {"state": "frozen", "plan_sha256": "p", "snapshot_sha256": "s"}
    assert "stage 1 is open" in purging.hashes_needed(study)
    study.stages.update(**frozen)
    assert purging.hashes_needed(study) == ""
    bystander = cast.study(slug="bystander", panel=cast.PROLIFIC)
    other = cast.open_study(slug="other", panel={**cast.PROLIFIC, "exclude_people_of": ["cast"]})
    assert "other leaves this study's people out" in purging.hashes_needed(study)
    other.stages.update(**frozen)
    copy = cast.study(slug="copy", panel={**cast.PROLIFIC, "exclude_people_of": ["cast"]})
    assert "copy leaves this study's people out" in purging.hashes_needed(study)
    Study.objects.filter(pk=copy.pk).update(test_of=other, slug="other_test")
    assert purging.hashes_needed(study) == "" and bystander.stages.exists()
