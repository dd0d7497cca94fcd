"""Bonuses: under a cap, written before they are sent, and never sent twice."""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Exists
from django.utils import timezone

from survey.contracts.panels import PanelError, PanelIds, PanelRefused, PanelUnreachable
from survey.exceptions import StateRefused
from survey.fees import FeeRates
from survey.models import AuditEntry, Payment, PaymentBatch, Posting, Response, Score, Sitting, Study
from survey.panels import money, reconciliation
from survey.panels.groups import _may_find_no_place
from survey.panels.owed_list import owed_list
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.client import ProlificClient
from survey.panels.prolific.fake import Breakage, FakeProlific
from survey.panels.prolific.panel import Prolific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_posting
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.expiry import expire_sitting
from survey.services.studies import amending
from tests import cast

from .world import PAY, arrives, begins, ids_of, posted, row_of, sits, stored_posting, stored_submission

pytestmark = pytest.mark.django_db
State = PaymentBatch.State


def finishes_late(fake: FakeProlific, posting: Posting) -> dict[str, Any]:
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    return place


def scored(sitting: Sitting, *points: str) -> None:
    """Points for the first answers of a sitting."""
    responses = Response.objects.filter(assignment__sitting=sitting).order_by("pk")
    for response, value in zip(responses, points, strict=False):
        Score.objects.create(response=response, value=value, rule="r", version="1")
    assert Score.objects.filter(response__assignment__sitting=sitting).count() == len(points)


def no_call_is_on_its_way() -> None:
    over = timezone.now() - ProlificAccount.longest_call
    PaymentBatch.objects.update(created_at=over)
    PaymentBatch.objects.exclude(sent_at=None).update(sent_at=over)


@pytest.fixture
def late(fake: FakeProlific) -> Posting:
    """A posting that owes one person the reward."""
    posting = posted()
    finishes_late(fake, posting)
    return posting


def paid(fake: FakeProlific) -> list[str]:
    return [str(amount) for _who, amount in fake.paid]


def test_who_finished_after_the_panels_time_is_owed_the_reward_once(late: Posting, fake: FakeProlific) -> None:
    (payment,) = money.owed(late)
    assert (payment.kind, payment.amount) == (Payment.Kind.LATE, 100)
    (batch,) = money.pay_owed(late)
    assert (batch.state, paid(fake)) == (State.PAID, ["1.00"])
    assert money.owed(late) == [] and money.pay_owed(late) == []
    assert paid(fake) == ["1.00"]


def test_the_late_are_owed_the_reward_of_their_posting(late: Posting) -> None:
    """A posting may pay more than the study file says."""
    Posting.objects.filter(pk=late.pk).update(reward=130)
    late.refresh_from_db()
    assert [payment.amount for payment in money.owed(late)] == [130]


@pytest.mark.slow
def test_who_was_turned_away_after_consent_is_paid_where_the_file_says_so(fake: FakeProlific) -> None:
    posting = posted(sittings=1, places=2, turned_away_pay=30)
    first, second = arrives(fake, posting), arrives(fake, posting)
    slow = begins(posting.study, second, until="checks")
    expire_sitting(slow.pk, now=timezone.now())
    begins(posting.study, first)
    cast.walk(slow)
    slow.refresh_from_db()
    assert slow.state == "turned_away"
    fake.submit(second["id"], posting.study.completion_code("study_full"))
    row_of(posting, slow)
    assert money.owed(posting) == []
    fake.give_up(second["id"])
    row_of(posting, slow)
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [(Payment.Kind.TURNED_AWAY, 30)]


@pytest.mark.slow
def test_who_finds_no_place_again_is_paid_for_the_first_visit(fake: FakeProlific) -> None:
    posting = posted(turned_away_pay=30)
    place = arrives(fake, posting)
    visits = [place, {**place, "id": "again"}, {**place, "id": "and-again"}]
    for visit in visits:
        fake.submissions[visit["id"]] = {**visit, "status": "RETURNED"}
        sitting = begin_sitting(study=posting.study, ids=ids_of(visit))
        Sitting.objects.filter(pk=sitting.pk).update(state="turned_away", ended_at=timezone.now())
    read_posting(posting)
    (payment,) = money.owed(posting)
    assert (payment.kind, payment.amount, money.ids_of(payment.submission).submission) == (
        Payment.Kind.TURNED_AWAY,
        30,
        place["id"],
    )
    by_id = {money.ids_of(row.submission).submission: row for row in reconciliation.reconcile(posting).findings}
    assert [by_id[visit["id"]].flags for visit in visits] == [(), ("came_before",), ("came_before",)]
    assert [by_id[visit["id"]].judgement.action for visit in visits] == [Action.PAY, Action.NOTHING, Action.NOTHING]


# 2.5 points: half a cent is paid as a whole one, above an even number and above an odd one.
@pytest.mark.slow
@pytest.mark.parametrize(("cents_a_point", "cents"), [(7, 18), (5, 13)])
def test_points_are_paid_to_those_who_were_approved(fake: FakeProlific, cents_a_point: int, cents: int) -> None:
    posting = posted(bonus_per_point=cents_a_point)
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    scored(sitting, "1.25", "1.25")
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    assert money.owed(posting) == []
    fake.submissions[place["id"]]["status"] = "APPROVED"
    read_posting(posting)
    (payment,) = money.owed(posting)
    assert (payment.kind, payment.amount) == (Payment.Kind.SCORE, cents)
    fake.submissions[place["id"]]["status"] = "PARTIALLY APPROVED"
    read_posting(posting)
    assert [claim.amount for claim in money.owed(posting)] == [cents]


@pytest.mark.slow
@pytest.mark.parametrize("status", ["REJECTED", "RETURNED", "AWAITING REVIEW"])
def test_points_are_owed_to_nobody_who_is_not_paid(fake: FakeProlific, status: str) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    scored(begins(posting.study, place), "3")
    fake.submissions[place["id"]]["status"] = status
    read_posting(posting)
    assert money.owed(posting) == []


@pytest.mark.slow
def test_who_finished_late_with_points_is_owed_both_and_paid_in_one_row(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    scored(begins(posting.study, place), "3")
    fake.time_out(place["id"])
    read_posting(posting)
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [
        (Payment.Kind.LATE, 100),
        (Payment.Kind.SCORE, 21),
    ]
    money.pay_owed(posting)
    assert [(who, str(amount)) for who, amount in fake.paid] == [(place["id"], "1.21")]
    assert money.committed(posting.study) == 721


def test_points_are_paid_at_least_as_the_file_said_that_the_person_began_with(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    scored(sitting, "3")
    fake.submit(place["id"], posting.study.completion_code("completed"))
    fake.submissions[place["id"]]["status"] = "APPROVED"
    read_posting(posting)
    text = cast.study_text(
        panel={**cast.PROLIFIC, **PAY, "bonus_per_point": 2}, sitting={"items": 1}, stages=[{"sittings": 6}]
    )
    amending.amend(posting.study, text=text, source_name="new.toml", reason="less money")
    posting = Posting.objects.get(pk=posting.pk)
    assert posting.study.config.panel.bonus_per_point == 2
    assert [payment.amount for payment in money.owed(posting)] == [21]


@pytest.mark.slow
def test_a_payment_whose_answer_got_lost_is_never_sent_again(late: Posting, fake: FakeProlific) -> None:
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelUnreachable):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert (batch.state, batch.needs_a_person, paid(fake)) == (State.UNKNOWN, True, ["1.00"])
    assert money.owed(late) == []
    (difference,) = reconciliation.reconcile(late).differences
    assert difference.judgement.action == Action.SAY and f"payment {batch.pk}" in difference.judgement.sentence
    finishes_late(fake, late)
    with pytest.raises(StateRefused, match=f"--settle {batch.pk}"):
        money.pay_owed(late)
    assert paid(fake) == ["1.00"]
    no_call_is_on_its_way()
    money.settle(batch, was_paid=True)
    assert [b.state for b in money.pay_owed(late)] == [State.PAID]
    assert paid(fake) == ["1.00", "1.00"], "the second person, once"
    assert reconciliation.reconcile(late).differences == []
    with pytest.raises(StateRefused, match="nothing to say"):
        money.settle(batch, was_paid=False)


def test_what_a_person_says_was_not_paid_is_owed_again(late: Posting, fake: FakeProlific) -> None:
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelError):
        money.pay_owed(late)
    no_call_is_on_its_way()
    money.settle(PaymentBatch.objects.get(), was_paid=False)
    assert len(money.owed(late)) == 1


@pytest.mark.slow
def test_a_process_that_died_while_paying_leaves_a_question_and_one_before_does_not(
    late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*args: Any) -> None:
        raise Killed

    monkeypatch.setattr(ProlificClient, "set_up_bonuses", die)
    with pytest.raises(Killed):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert (batch.state, money.owed(late)) == (State.PREPARED, [])
    monkeypatch.undo()
    with pytest.raises(StateRefused, match=f"payment {batch.pk} was begun at .*, and is about to be sent"):
        money.pay_owed(late)  # Nobody can know yet that it broke off.
    assert money.owed(late) == [] and PaymentBatch.objects.get().state == State.PREPARED
    no_call_is_on_its_way()
    # What a page shows before somebody types the sum.
    assert [debt.amount for debt in money.owed(late)] == [100]
    assert reconciliation.reconcile(late).owed_cents == 100 and money.committed(late.study) == 700
    with ProlificAccount.open() as client:
        monkeypatch.setattr(ProlificClient, "pay_bonuses", die)
        with pytest.raises(Killed):
            money.pay_owed(late, client=client, cents=100)
        monkeypatch.undo()
        assert [batch.state for batch in PaymentBatch.objects.order_by("pk")] == [State.REFUSED, State.SENT]
        with pytest.raises(StateRefused, match="may have been made"):
            money.pay_owed(late, client=client)
    assert money.committed(late.study) == 700


@pytest.mark.slow
@pytest.mark.parametrize("part", ["prepare_bonuses", "pay_bonuses"])
def test_a_refused_payment_is_owed_still(
    late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise PanelRefused("no", answered=400)

    with ProlificAccount.open() as client:
        monkeypatch.setattr(client, part, refuse)
        with pytest.raises(PanelRefused):
            money.pay_owed(late, client=client)
    assert PaymentBatch.objects.get().state == State.REFUSED and fake.paid == []
    assert len(money.owed(late)) == 1
    assert [batch.state for batch in money.pay_owed(late)] == [State.PAID]


@pytest.mark.slow
def test_nothing_is_paid_over_the_cap(fake: FakeProlific) -> None:
    posting = posted(spending_cap=650, places=6)
    finishes_late(fake, posting)
    assert money.committed(posting.study) == 600
    with pytest.raises(StateRefused, match=r"panel\.spending_cap: 100 more would make 700 of 650"):
        money.pay_owed(posting)
    assert fake.paid == [] and not PaymentBatch.objects.exists()


@pytest.mark.slow
def test_many_are_paid_in_several_calls(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProlificAccount, "bonuses_at_once", 2)
    posting = posted()
    for _ in range(3):
        finishes_late(fake, posting)
    assert [batch.payments.count() for batch in money.pay_owed(posting)] == [2, 1]
    assert paid(fake) == ["1.00"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["prepare_bonuses", "pay_bonuses"])
def test_of_two_who_pay_at_once_one_does_and_the_other_waits(
    late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The second comes when the first has stored its payment, or has sent it. Both know the sum."""
    refusals = []
    with ProlificAccount.open() as client:
        call = getattr(client, method)

        def somebody_else_comes(*args: Any, **more: Any) -> Any:
            with pytest.raises(StateRefused) as refused:
                money.pay_owed(late, cents=100)
            refusals.append(str(refused.value))
            return call(*args, **more)

        monkeypatch.setattr(client, method, somebody_else_comes)
        (batch,) = money.pay_owed(late, client=client, cents=100)
    (why,) = refusals
    assert ("is about to be sent" if method == "prepare_bonuses" else "may have been made or not") in why
    assert PaymentBatch.objects.get() == batch and batch.state == State.PAID
    assert not Payment.objects.filter(is_void=True).exists()
    assert (paid(fake), money.owed(late), money.committed(late.study)) == (["1.00"], [], 700)


@pytest.mark.slow
def test_of_two_who_pay_many_at_once_each_bonus_is_paid_once(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes between two calls of the first, when nothing is about to be sent: both pay a part."""
    monkeypatch.setattr(ProlificAccount, "bonuses_at_once", 1)
    posting = posted()
    for _ in range(3):
        finishes_late(fake, posting)
    others: list[PaymentBatch] = []
    send = money._send

    def somebody_else_comes_then(batch: PaymentBatch, client: Any) -> None:
        monkeypatch.setattr(money, "_send", send)
        send(batch, client)
        others.extend(money.pay_owed(posting, cents=200))

    monkeypatch.setattr(money, "_send", somebody_else_comes_then)
    mine = money.pay_owed(posting, cents=300)
    assert (len(mine), len(others), money.owed(posting)) == (1, 2, [])
    assert set(PaymentBatch.objects.values_list("state", flat=True)) == {State.PAID}
    assert len({who for who, _units in fake.paid}) == 3 and paid(fake) == ["1.00"] * 3


@pytest.mark.slow
def test_what_becomes_owed_between_two_calls_is_not_paid_unseen(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agreed sum holds for all calls together."""
    monkeypatch.setattr(ProlificAccount, "bonuses_at_once", 1)
    posting = posted()
    for _ in range(2):
        finishes_late(fake, posting)
    send = money._send

    def somebody_finishes_late_then(batch: PaymentBatch, client: Any) -> None:
        monkeypatch.setattr(money, "_send", send)
        send(batch, client)
        stored_submission(posting, sits(posting.study), "TIMED-OUT")

    monkeypatch.setattr(money, "_send", somebody_finishes_late_then)
    with pytest.raises(StateRefused, match=r"it costs 2\.00 USD now, and 1\.00 USD was agreed to"):
        money.pay_owed(posting, cents=200)
    assert paid(fake) == ["1.00"] and len(money.owed(posting)) == 2


@pytest.mark.parametrize(("now", "agreed", "is_refused"), [(99, 100, True), (101, 100, True), (100, 100, False)])
def test_another_sum_than_the_agreed_one_is_refused_whether_it_is_more_or_less(
    now: int, agreed: int, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(StateRefused, match=rf"it costs {now / 100:.2f} USD now, and 1\.00 USD was agreed to"):
            money.refuse_another_sum(now, agreed, "USD")
    else:
        money.refuse_another_sum(now, agreed, "USD")
    money.refuse_another_sum(now, None, "USD")


def test_a_posting_counts_in_the_currency_in_which_it_was_made() -> None:
    study = paid_study()
    money.refuse_other_currency(study, "GBP", "GBP")
    money.refuse_other_currency(study, "", "GBP")
    for said, of_posting in (("USD", "GBP"), ("GBP", "")):
        with pytest.raises(StateRefused, match=r"panel\.currency"):
            money.refuse_other_currency(study, said, of_posting)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["the plug-in", "our own"])
def test_an_error_before_anything_is_sent_drops_the_payment_at_once(
    late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fails(*args: Any) -> Any:
        raise KeyError("somebody")

    with ProlificAccount.open() as client:
        with monkeypatch.context() as broken:
            if where == "our own":
                broken.setattr(money, "_bonuses", fails)
            else:
                broken.setattr(client, "prepare_bonuses", fails)
            with pytest.raises(KeyError):
                money.pay_owed(late, client=client)
        batch = PaymentBatch.objects.get()
        assert batch.state == State.REFUSED and "KeyError" in batch.error and "somebody" not in batch.error
        assert money.committed(late.study) == 600 and len(money.owed(late)) == 1
        assert [again.state for again in money.pay_owed(late, client=client)] == [State.PAID]
    assert paid(fake) == ["1.00"]


# Settling


@pytest.fixture
def on_its_way(late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> PaymentBatch:
    """A payment that was sent; the process died before an answer came."""

    class Killed(BaseException):
        pass

    def die(*args: Any) -> None:
        raise Killed

    with monkeypatch.context() as dying, ProlificAccount.open() as client:
        dying.setattr(ProlificClient, "pay_bonuses", die)
        with pytest.raises(Killed):
            money.pay_owed(late, client=client)
    return PaymentBatch.objects.get()


@pytest.mark.slow
@pytest.mark.parametrize("was_paid", [True, False])
def test_a_payment_without_an_answer_waits_as_one_that_was_sent(
    late: Posting, fake: FakeProlific, was_paid: bool
) -> None:
    """The client gives up after seconds, and the panel may still pay."""
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelUnreachable):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert batch.state == State.UNKNOWN
    with pytest.raises(StateRefused, match="may be on its way: wait for its answer"):
        money.settle(batch, was_paid=was_paid)
    assert PaymentBatch.objects.get().state == State.UNKNOWN and money.owed(late) == []
    no_call_is_on_its_way()
    assert money.settle(batch, was_paid=was_paid).state == (State.PAID if was_paid else State.REFUSED)


@pytest.mark.slow
@pytest.mark.parametrize("was_paid", [True, False])
def test_a_payment_is_settled_only_when_no_call_can_be_on_its_way(
    on_its_way: PaymentBatch, late: Posting, was_paid: bool
) -> None:
    (difference,) = reconciliation.reconcile(late).differences
    assert difference.judgement.action == Action.SAY and f"payment {on_its_way.pk}" in difference.judgement.sentence
    with pytest.raises(StateRefused, match="may be on its way"):
        money.settle(on_its_way, was_paid=was_paid)
    assert PaymentBatch.objects.get().state == State.SENT and money.owed(late) == []
    no_call_is_on_its_way()
    money.settle(on_its_way, was_paid=was_paid)
    assert PaymentBatch.objects.get().state == (State.PAID if was_paid else State.REFUSED)
    assert len(money.owed(late)) == (0 if was_paid else 1)
    assert money.committed(late.study) == (700 if was_paid else 600)
    assert AuditEntry.objects.get(action="settle_payment").detail["was_paid"] is was_paid


# The second case


WAVES: dict[str, Any] = {
    "sitting": {"items": 1},
    "stages": [{"sittings": 4}, {"sittings": 4, "wave": 2}],
    "waves": [{"after_days": 1, "open_days": 7}],
}


def paid_study(**panel: Any) -> Study:
    return cast.open_study(panel={**cast.PROLIFIC, **PAY, **panel}, sitting={"items": 1}, stages=[{"sittings": 6}])


def in_wave_2(sitting: Sitting, **columns: Any) -> Sitting:
    """The same person's sitting of the second wave."""
    later = Sitting.objects.get(pk=sitting.pk)
    later.pk, later.wave, later.booklet, later.public_id = None, 2, None, uuid.uuid4()
    later._state.adding = True
    later.stage = sitting.stage.study.stages.get(index=2)
    for name, value in {"state": "live", "ended_at": None, **columns}.items():
        setattr(later, name, value)
    later.save()
    return later


def test_each_waves_posting_owes_by_that_waves_sitting() -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "bonus_per_point": 7}, **WAVES)
    first, second = stored_posting(study), stored_posting(study, index=2, reward=130)
    sitting = begins(study, {"participant_id": "p", "study_id": first.external_id, "id": "x"})
    scored(sitting, "3")
    in_wave_2(sitting)
    stored_submission(first, sitting, "TIMED-OUT")
    stored_submission(second, sitting, "TIMED-OUT")
    assert [(payment.kind, payment.amount) for payment in money.owed(first)] == [("late", 100), ("score", 21)]
    assert [finding.ours for finding in reconciliation.reconcile(first).findings] == ["complete"]
    assert money.owed(second) == [], "nobody has finished the second wave"
    assert [finding.ours for finding in reconciliation.reconcile(second).findings] == ["live"]


def test_the_late_of_the_second_wave_are_owed_its_own_reward_and_points() -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "bonus_per_point": 7}, **WAVES)
    posting = stored_posting(study, index=2, reward=130)
    sitting = begins(study, {"participant_id": "p", "study_id": "s", "id": "x"})
    scored(sitting, "3")
    in_wave_2(sitting, state="complete", ended_at=timezone.now())
    stored_submission(posting, sitting, "TIMED-OUT")
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [("late", 130)], (
        "no points were made in it"
    )


def test_who_came_again_and_took_part_is_paid_for_finding_no_place_in_a_later_wave() -> None:
    """Only in the first wave is a visit after one that found no place another one of the same person."""
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY, "turned_away_pay": 30}, **WAVES)
    posting = stored_posting(study, index=2)
    before = sits(study, "turned_away")
    sitting = sits(study, "complete")
    sitting.respondent.came_before = before.respondent
    sitting.respondent.save()
    assert not money.is_another_visit(sitting), "who finishes is no visit that found no place"
    in_wave_2(sitting, state="turned_away", ended_at=timezone.now())
    stored_submission(posting, sitting, "RETURNED")
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [("turned_away", 30)]


def test_who_waits_for_items_of_the_second_wave_may_not_come_again_to_the_first() -> None:
    study = cast.open_study(panel={**cast.PROLIFIC, **PAY}, **WAVES)
    first, second = stored_posting(study), stored_posting(study, index=2)
    sitting = begins(study, {"participant_id": "p", "study_id": first.external_id, "id": "x"})
    in_wave_2(sitting)
    for posting, may_come_again in ((first, False), (second, True)):
        stored_submission(posting, sitting, "ACTIVE")
        assert posting.submissions.filter(Exists(_may_find_no_place(posting))).exists() == may_come_again


def test_what_one_posting_owes_another_studys_does_not() -> None:
    """The people, payments and batches of the other study are left out."""
    own_study, other = paid_study(), cast.open_study(slug="other", panel={**cast.PROLIFIC, **PAY}, sitting={"items": 1})
    mine, theirs = stored_posting(own_study), stored_posting(other)
    rows = [stored_submission(posting, sits(posting.study), "TIMED-OUT") for posting in (mine, theirs)]
    batch = PaymentBatch.objects.create(posting=theirs, state=State.PAID, sent_at=timezone.now(), fees=33)
    Payment.objects.create(batch=batch, submission=rows[1], kind="late", amount=100)
    assert ([row.submission.pk for row in money.owed(mine)], money.owed(theirs)) == ([rows[0].pk], [])
    assert (money.committed(own_study), money.committed(other)) == (600, 733)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "is_void", "cents"),
    [
        ("prepared", False, 125),
        ("sent", False, 125),
        ("unknown", False, 125),
        ("paid", False, 125),
        ("refused", True, 0),
        ("paid", True, 125),  # Paid all the same, and a second time by another one.
    ],
)
def test_what_was_or_may_have_been_paid_counts_with_its_fees(state: str, is_void: bool, cents: int) -> None:
    posting = stored_posting(paid_study(), published_at=None)
    row = stored_submission(posting, sits(posting.study), "TIMED-OUT")
    batch = PaymentBatch.objects.create(posting=posting, state=state, sent_at=timezone.now(), fees=25)
    Payment.objects.create(batch=batch, submission=row, kind="late", amount=100, is_void=is_void)
    assert money.committed(posting.study) == cents


def test_what_is_held_after_a_restore_counts_with_its_fees() -> None:
    posting = stored_posting(paid_study(), fee_rate=2500)
    for _person in range(4):
        stored_submission(posting, sits(posting.study), "TIMED-OUT")
    before, since = money.committed(posting.study), timezone.now()
    prepared = PaymentBatch.objects.create(posting=posting)
    batch = money.hold(posting, since=since, why="restored")
    assert (batch.state, batch.fees, batch.sent_at, batch.error) == (State.UNKNOWN, 100, since, "restored")
    assert sum(payment.amount for payment in batch.payments.all()) == 400
    assert money.committed(posting.study) == before + 500 and money.owed(posting) == []
    prepared.refresh_from_db()
    assert (prepared.state, prepared.sent_at) == (State.UNKNOWN, since)


def test_what_is_added_to_a_held_payment_counts_with_its_fees_and_only_who_ended_before(db: None) -> None:
    posting = stored_posting(paid_study(), fee_rate=2500)
    rows = [stored_submission(posting, sits(posting.study), "ACTIVE") for _person in range(2)]
    held = money.hold(posting, since=timezone.now() - timedelta(hours=1), why="restored")
    rows.append(stored_submission(posting, sits(posting.study), "ACTIVE"))
    before = money.committed(posting.study)
    posting.submissions.update(status="TIMED-OUT")
    money.hold_more(posting)
    held.refresh_from_db()
    assert (set(held.payments.values_list("submission", flat=True)), held.fees) == ({row.pk for row in rows[:2]}, 50)
    assert money.committed(posting.study) == before + 250
    assert [debt.submission.pk for debt in money.owed(posting)] == [rows[2].pk]
    (entry,) = AuditEntry.objects.filter(action="hold_bonuses", via="worker")
    assert (entry.detail["people"], entry.detail["cents"]) == (2, 200)
    money.hold_more(posting)
    assert held.payments.count() == 2


def test_what_a_restore_holds_may_be_on_its_way_from_the_server_before(db: None) -> None:
    """Whenever the backup was made: that server ran until the restore."""
    posting = stored_posting(paid_study())
    stored_submission(posting, sits(posting.study), "TIMED-OUT")
    now = timezone.now()
    held = money.hold(posting, since=now - timedelta(days=1), why="restored")
    Posting.objects.update(read_at=now + timedelta(seconds=5))
    with pytest.raises(StateRefused, match="may be on its way"):
        money.settle(held, was_paid=False)
    PaymentBatch.objects.update(created_at=now - ProlificAccount.longest_call)
    assert money.settle(held, was_paid=False).error == "restored", "why it was held stays"


@pytest.mark.slow
def test_a_payment_says_when_it_was_settled(late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise PanelRefused("no", answered=400)

    with ProlificAccount.open() as client, monkeypatch.context() as refusing:
        refusing.setattr(client, "pay_bonuses", refuse)
        with pytest.raises(PanelRefused):
            money.pay_owed(late, client=client)
    refused = PaymentBatch.objects.get()
    assert refused.sent_at is not None and refused.settled_at is not None and refused.settled_at >= refused.sent_at
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelUnreachable):
        money.pay_owed(late)
    no_call_is_on_its_way()
    settled = money.settle(PaymentBatch.objects.latest("pk"), was_paid=False)
    assert settled.settled_at is not None and settled.settled_at > refused.settled_at
    (done,) = money.pay_owed(late)
    assert done.settled_at is not None and done.settled_at > settled.settled_at


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "then", "now"), [("screen_out_pay", 40, 20), ("turned_away_pay", 40, 20), ("reward", 100, 90)]
)
def test_an_amendment_lowers_nothing_that_was_promised(name: str, then: int, now: int) -> None:
    def panel(cents: int) -> dict[str, Any]:
        places = {"screen_out_places": 3} if name == "screen_out_pay" else {}
        return {"kind": "generic", "reward": 200, **places, name: cents}

    study = cast.open_study(panel=panel(then), sitting={"items": 1}, stages=[{"sittings": 6}])
    field = {"screen_out_pay": "screened_out", "turned_away_pay": "turned_away", "reward": "reward"}[name]
    early = begin_sitting(study=study, ids=PanelIds("generic", "early"))
    for cents, of_early, of_late in ((now, then, now), (then + 5, then + 5, then + 5)):
        text = cast.study_text(panel=panel(cents), sitting={"items": 1}, stages=[{"sittings": 6}])
        amending.amend(study, text=text, source_name="new.toml", reason="other pay")
        study = Study.objects.get(pk=study.pk)
        late = begin_sitting(study=study, ids=PanelIds("generic", f"late-{cents}"))
        assert [getattr(money.promised(study, sitting), field) for sitting in (early, late)] == [of_early, of_late]


def test_who_was_screened_out_is_owed_what_was_promised_then() -> None:
    def text(cents: int) -> dict[str, Any]:
        pays = {"reward": 100, "screen_out_pay": cents, "screen_out_places": 3}
        return {"panel": {"kind": "generic", **pays}, "sitting": {"items": 1}, "stages": [{"sittings": 6}]}

    study = cast.open_study(**text(40))
    sitting = begin_sitting(study=study, ids=PanelIds("generic", "p"))
    Sitting.objects.filter(pk=sitting.pk).update(state="screened_out", ended_at=timezone.now())
    amending.amend(study, text=cast.study_text(**text(20)), source_name="new.toml", reason="less")
    assert [line.amount for line in owed_list(Study.objects.get(pk=study.pk))] == [40]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("state", "status", "kinds"),
    [
        ("complete", "TIMED-OUT", ["late", "score"]),
        ("complete", "APPROVED", ["score"]),
        ("complete", "PARTIALLY APPROVED", ["score"]),
        ("complete", "SCREENED OUT", []),
        ("complete", "odd", []),
        ("turned_away", "RETURNED", ["turned_away"]),
        ("turned_away", "TIMED-OUT", ["turned_away"]),
        ("turned_away", "APPROVED", []),
        ("turned_away", "REJECTED", []),
        ("screened_out", "TIMED-OUT", []),
        ("failed_checks", "TIMED-OUT", []),
        ("expired", "TIMED-OUT", []),
    ],
)
def test_what_is_owed_by_how_it_ended_here_and_there(state: str, status: str, kinds: list[str]) -> None:
    posting = stored_posting(paid_study(bonus_per_point=7, turned_away_pay=30))
    sitting = begins(posting.study, {"participant_id": "p", "study_id": "s", "id": "x"})
    scored(sitting, "3")
    Sitting.objects.filter(pk=sitting.pk).update(state=state)
    stored_submission(posting, sitting, status)
    assert [payment.kind for payment in money.owed(posting)] == kinds


def test_a_bonus_that_was_paid_leaves_the_other_one_owed() -> None:
    posting = stored_posting(paid_study(bonus_per_point=7))
    sitting = begins(posting.study, {"participant_id": "p", "study_id": "s", "id": "x"})
    scored(sitting, "3")
    row = stored_submission(posting, sitting, "TIMED-OUT")
    batch = PaymentBatch.objects.create(posting=posting, state=State.PAID, sent_at=timezone.now())
    Payment.objects.create(batch=batch, submission=row, kind="late", amount=100)
    assert [(payment.kind, payment.amount) for payment in money.owed(posting)] == [("score", 21)]


def test_who_never_began_here_hides_nobody_who_is_owed() -> None:
    posting = stored_posting(paid_study())
    stored_submission(posting, None, "TIMED-OUT")
    late = stored_submission(posting, sits(posting.study), "TIMED-OUT")
    assert [(debt.submission, debt.kind, debt.amount) for debt in money.owed(posting)] == [(late, "late", 100)]


def test_points_are_read_for_all_where_one_of_them_was_promised_money(monkeypatch: pytest.MonkeyPatch) -> None:
    cents_a_point = {1: 0, 2: 7, 3: 0}
    monkeypatch.setattr(money, "promised", lambda _study, sitting: money.Promised(0, 0, cents_a_point[sitting.pk]))
    monkeypatch.setattr(money, "points_of", lambda sittings: {sitting.pk: Decimal(3) for sitting in sittings})
    sittings = [Sitting(pk=pk) for pk in cents_a_point]
    assert money.promised_points(Study(), sittings) == dict.fromkeys(cents_a_point, Decimal(3))
    assert money.promised_points(Study(), [sittings[0], sittings[2]]) == {}


def test_points_below_nothing_take_nothing_away() -> None:
    posting = stored_posting(paid_study(bonus_per_point=7))
    sitting = begins(posting.study, {"participant_id": "p", "study_id": "s", "id": "x"})
    scored(sitting, "-3")
    stored_submission(posting, sitting, "APPROVED")
    assert money.owed(posting) == []


def test_fees_of_a_drafted_posting_are_expected_of_the_next_one_and_the_highest_where_none_is_known() -> None:
    study = paid_study()
    assert money.fees_expected(study) == Prolific.highest_fees
    stored_posting(study, fee_rate=1000, vat_rate=500, fixed_fee=3000)
    assert money.fees_expected(study) == FeeRates(1000, 500)
    stored_posting(study, fee_rate=0)
    assert money.fees_expected(study) == Prolific.highest_fees
    stored_posting(study, fee_rate=2000, vat_rate=700)
    assert money.fees_expected(study) == FeeRates(2000, 700), "of the newest"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statuses", "cents"),
    [
        (["APPROVED"] * 2, 200),
        (["APPROVED"] * 3, 300),
        (["APPROVED", "PARTIALLY APPROVED", "AWAITING REVIEW"], 300),
        (["APPROVED", "RETURNED", "REJECTED", "TIMED-OUT", "ACTIVE"], 200),
    ],
)
def test_people_beyond_the_places_are_committed_too(statuses: list[str], cents: int) -> None:
    """Somebody returned, another person got the place, and then the first one handed in after all."""
    study = paid_study(spending_cap=320)
    posting = stored_posting(study, places=2)
    draft = stored_posting(study, places=2, published_at=None)
    for status in statuses:
        stored_submission(posting, None, status)
        stored_submission(draft, None, "APPROVED")
    assert money.committed(study) == cents
    if cents > 200:
        with pytest.raises(StateRefused, match="100 more would make 400 of 320"):
            money.refuse_over_cap(study, 100)
    Posting.objects.filter(pk=posting.pk).update(fee_rate=3330, vat_rate=2000, fixed_fee=50)
    assert money.committed(study) == cents + FeeRates(3330, 2000).on(cents) + 50


@pytest.mark.parametrize(
    ("there", "state", "cents"),
    [
        ({"rewards": 100, "bonuses": 60, "fees": 6}, "paid", 266),
        ({"rewards": 100, "bonuses": 120, "fees": 6}, "paid", 266 + 60),  # It was carried out twice.
        ({"rewards": 100, "bonuses": 60, "fees": 40}, "paid", 266 + 34),  # Its fees are dearer by now.
        ({"rewards": 100, "bonuses": 60, "fees": 6}, "unknown", 266),  # Counted as it may have been paid.
        ({"rewards": 100, "bonuses": 60, "fees": 6}, "refused", 200 + 66),  # Somebody was wrong who said so.
        ({"rewards": 0}, "paid", 266),
        ({"rewards": 900, "currency": "GBP"}, "paid", 266),
    ],
)
def test_what_the_panel_charged_beyond_our_rows_is_committed(there: dict[str, Any], state: str, cents: int) -> None:
    said = {"rewards": 0, "bonuses": 0, "fees": 0, "currency": "USD", **there}
    study = paid_study()
    posting = stored_posting(study, places=2, panel_facts={"spent": said})
    row = stored_submission(posting, None, "APPROVED")
    batch = PaymentBatch.objects.create(posting=posting, state=state, sent_at=timezone.now(), fees=6)
    Payment.objects.create(batch=batch, submission=row, kind="score", amount=60, is_void=state == "refused")
    assert money.committed(study) == cents


@pytest.mark.slow
def test_a_bonus_that_the_panel_paid_twice_counts_twice_against_the_cap(late: Posting, fake: FakeProlific) -> None:
    fake.break_next("/pay/", Breakage.TWICE)
    money.pay_owed(late)
    assert (paid(fake), money.committed(late.study)) == (["1.00", "1.00"], 700)
    read_posting(late)
    assert money.committed(late.study) == 800


@pytest.mark.slow
def test_who_was_paid_the_reward_as_a_bonus_is_not_approved_without_a_person_who_says_so(
    late: Posting, fake: FakeProlific
) -> None:
    (row,) = late.submissions.all()

    def judged(status: str) -> Any:
        late.submissions.update(status=status)
        (finding,) = reconciliation.reconcile(late).findings
        return finding.judgement

    assert judged("AWAITING REVIEW").action == Action.APPROVE
    assert judged("TIMED-OUT").action == Action.PAY
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelUnreachable):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    for state in ("unknown", "paid"):
        PaymentBatch.objects.update(state=state)
        looked = judged("AWAITING REVIEW")
        assert looked.action == Action.LOOK
        assert f"payment {batch.pk} was made in place of the reward: decide whether" in looked.sentence
        looked = judged("APPROVED")
        assert looked.action == Action.LOOK and "the person was paid twice" in looked.sentence
    judged("AWAITING REVIEW")
    assert reconciliation.approve_finished(late) == 0
    row.refresh_from_db()
    reconciliation.settle_difference(row, "They sent everything twice.")
    assert judged("AWAITING REVIEW").action == Action.APPROVE, "somebody decided it"
    assert judged("APPROVED").action == Action.LOOK
    PaymentBatch.objects.update(state="refused")
    Payment.objects.update(is_void=True)
    assert judged("APPROVED").action == Action.NOTHING


def test_a_payment_that_was_not_sent_is_no_question_for_a_person() -> None:
    posting = stored_posting(paid_study())
    row = stored_submission(posting, sits(posting.study), "APPROVED")
    batch = PaymentBatch.objects.create(posting=posting, sent_at=timezone.now())
    Payment.objects.create(batch=batch, submission=row, kind="score", amount=10)
    for state, action in (("prepared", Action.NOTHING), ("sent", Action.SAY), ("unknown", Action.SAY)):
        PaymentBatch.objects.update(state=state)
        (finding,) = reconciliation.reconcile(posting).findings
        assert finding.judgement.action == action, state


@pytest.mark.parametrize(("draft", "action"), [({"name": "ours"}, Action.WAIT), ({}, Action.ASK_BACK)])
def test_a_posting_of_the_panels_own_pages_asks_nobody_by_itself(draft: dict[str, Any], action: Action) -> None:
    """What it does on a code, Hunch knows of its own drafts alone."""
    study = paid_study()
    posting = stored_posting(study, draft=draft)
    code = study.completion_code("failed_checks")
    stored_submission(posting, sits(study, "failed_checks"), "AWAITING REVIEW", entered_code=code)
    (finding,) = reconciliation.reconcile(posting).findings
    assert (finding.code, finding.judgement.action) == ("failed_checks", action)


@pytest.mark.slow
def test_points_beside_the_reward_are_no_second_pay(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    scored(begins(posting.study, place), "3")
    fake.submit(place["id"], posting.study.completion_code("completed"))
    fake.submissions[place["id"]]["status"] = "APPROVED"
    read_posting(posting)
    assert len(money.pay_owed(posting)) == 1
    assert reconciliation.reconcile(posting).differences == []


def test_who_was_paid_for_finding_no_place_and_then_approved_is_shown() -> None:
    study = paid_study(turned_away_pay=30)
    posting = stored_posting(study)
    row = stored_submission(posting, sits(study, "turned_away"), "APPROVED")
    assert reconciliation.reconcile(posting).findings[0].judgement.action == Action.NOTHING
    batch = PaymentBatch.objects.create(posting=posting, state="paid", sent_at=timezone.now())
    Payment.objects.create(batch=batch, submission=row, kind="turned_away", amount=30)
    assert "paid twice" in reconciliation.reconcile(posting).to(Action.LOOK)[0].judgement.sentence
