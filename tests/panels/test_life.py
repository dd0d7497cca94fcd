"""The whole life of a study at the panel: published, 60 people, dropouts, approvals, bonuses, zero differences."""

import logging
from collections import Counter
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from survey.exceptions import EntryRefused
from survey.models import PaymentBatch, Posting, Sitting, Submission, WebhookEvent
from survey.panels import money, postings, reconciliation, submissions, webhooks
from survey.panels.postings import Move
from survey.panels.prolific.fake import FakeProlific
from survey.panels.reconciliation import Action
from survey.services.results.export.files import answers_csv
from survey.services.sittings.answering import advance
from survey.services.sittings.entry import arrive, begin
from survey.services.sittings.expiry import expire_sittings
from tests import cast

pytestmark = pytest.mark.django_db
PEOPLE = 60
# What happens to the people, in turn. Most of them do what they should.
FATES = (
    *("finishes", "finishes", "leaves", "finishes", "fails_checks", "finishes", "no_code", "finishes", "no_consent"),
    *("finishes", "too_late", "finishes", "withdraws", "finishes", "times_out"),
)


def walk_through(study: Any, fake: FakeProlific, place: dict[str, Any], fate: str) -> str:
    """What happened to them: nobody gets in when our own places are taken."""
    try:
        _walk_through(study, fake, place, fate)
    except EntryRefused as refusal:
        if refusal.code != "full":
            raise
        fake.submit(place["id"], study.completion_code("study_full"))
        return "finds_it_full"
    return fate


def _walk_through(study: Any, fake: FakeProlific, place: dict[str, Any], fate: str) -> None:
    address = urlsplit(fake.entry_address(place["id"]))
    visitor = arrive(study, dict(parse_qsl(address.query)), host=address.netloc)
    assert visitor is not None
    if fate == "no_consent":
        fake.submit(place["id"], study.completion_code("no_consent"))
        return
    sitting = begin(study, visitor, address="127.0.0.1", language="en")
    if fate in ("leaves", "times_out"):
        cast.walk(sitting, until="item")
        (fake.give_up if fate == "leaves" else fake.time_out)(place["id"])
        return
    if fate == "fails_checks":
        step = cast.walk(sitting, until="checks")
        for _ in range(2):
            step = advance(sitting=sitting, step=step.number, data=cast.wrong_answers_for(step))
        fake.submit(place["id"], step.code)
        return
    if fate == "too_late":
        fake.time_out(place["id"])
    end = cast.walk(sitting)
    fake.submit(place["id"], None if fate == "no_code" else end.code)
    if fate == "withdraws":
        fake.give_up(place["id"])


def post(client: Client, fake: FakeProlific) -> list[int]:
    """The waiting events, as the panel would post them; a third gets lost on the way."""
    return [
        client.post(
            "/hooks/prolific",
            data=event.body,
            content_type="application/json",
            headers={name: value for name, value in event.headers.items() if name != "Content-Type"},
        ).status_code
        for number, event in enumerate(fake.webhooks())
        if number % 3
    ]


@pytest.mark.slow
def test_a_study_runs_from_its_draft_to_zero_differences(
    client: Client, fake: FakeProlific, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fake.busy_every, fake.page_size = 9, 20
    study = cast.open_study(
        panel={
            **cast.PROLIFIC,
            "reward": 100,
            "spending_cap": 6000,
            "signed_entry": True,
            "filters": [{"filter_id": "age", "selected_range": {"lower": 18, "upper": 65}}],
        },
        sitting={"items": 1},
        stages=[{"sittings": 45}],
    )
    stage = study.stages.get(index=1)
    posting = postings.draft(stage, places=40, root="http://testserver")
    postings.publish(posting)
    postings.add_places(posting, 5)

    fates: dict[str, str] = {}
    for number in range(PEOPLE):
        place = fake.take_place(posting.external_id)
        if place is None:  # All places are used. People who were asked to return do so, and make room.
            assert fake.follow_requests()
            postings.change(posting, Move.START)
            place = fake.take_place(posting.external_id)
        assert place is not None
        fates[place["id"]] = walk_through(study, fake, place, FATES[number % len(FATES)])
        if number % 15 == 14:
            assert set(post(client, fake)) <= {204}
            webhooks.work_on_events()
            expire_sittings()  # Deals what leavers left unanswered.

    assert WebhookEvent.objects.values("event_id").distinct().count() == WebhookEvent.objects.count()
    seen_by_webhook = Submission.objects.count()
    assert seen_by_webhook > 0

    # Reading and comparing, deciding, reading again: as a researcher does, twice.
    (report,) = reconciliation.read_and_reconcile(study)
    happened = Counter(fates.values())
    assert set(FATES) <= set(happened), "every fate came about"
    assert len(report.findings) == PEOPLE
    assert len(report.to(Action.APPROVE)) == happened["finishes"] + happened["no_code"]
    assert len(report.to(Action.PAY)) == happened["too_late"]
    assert len(report.to(Action.LOOK)) == happened["withdraws"]
    assert reconciliation.approve_finished(posting) == happened["finishes"] + happened["no_code"]
    reconciliation.ask_back(posting)
    assert reconciliation.ask_back(posting) == 0
    assert max(len(row["reasons"]) for row in fake.submissions.values()) == 1, "everybody is asked once, also by a code"
    assert fake.follow_requests()
    for finding in report.to(Action.LOOK):
        assert finding.submission
        reconciliation.settle_difference(finding.submission, "Asked by message: the answers may stay.")
    assert report.owed_cents == 100 * happened["too_late"]
    assert [batch.state for batch in money.pay_owed(posting)] == [PaymentBatch.State.PAID]
    assert money.pay_owed(posting) == []
    (after,) = reconciliation.read_and_reconcile(study)
    assert after.differences == []

    # At the panel: everybody who finished was paid once, and nobody else was.
    approved = {key for key, row in fake.submissions.items() if row["status"] == "APPROVED"}
    assert approved == {key for key, fate in fates.items() if fate in ("finishes", "no_code")}
    late = sorted(key for key, fate in fates.items() if fate == "too_late")
    assert sorted(who for who, _amount in fake.paid) == late
    assert {amount for _who, amount in fake.paid} == {Decimal("1.00")}
    assert money.committed(study) == 45 * 100 + 100 * happened["too_late"]
    finished = Sitting.objects.filter(state=Sitting.State.COMPLETE).count()
    assert finished == sum(happened[fate] for fate in ("finishes", "no_code", "too_late", "withdraws"))

    # And a panel's id of a person is nowhere.
    stored = caplog.text + "".join(answers_csv(study)) + repr([vars(row) for row in Posting.objects.all()])
    for row in fake.submissions.values():
        assert row["id"] not in stored and row["participant_id"] not in stored
    assert submissions.read_all() == 1
