"""Bonuses: under a cap, written before they are sent, and never sent twice."""

from typing import Any

import pytest
from django.utils import timezone

from survey.contracts.panels import PanelError, PanelRefused, PanelUnreachable
from survey.exceptions import StateRefused
from survey.models import Payment, PaymentBatch, Posting, Response, Score, Sitting
from survey.panels import money, reconciliation
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.client import ProlificClient
from survey.panels.prolific.fake import FakeProlific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_posting
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.expiry import expire_sitting
from survey.services.studies import amending
from tests import cast

from .world import PAY, arrives, begins, ids_of, posted, row_of

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
    PaymentBatch.objects.update(sent_at=timezone.now() - ProlificAccount.longest_call)


@pytest.fixture
def late(fake: FakeProlific) -> Posting:
    """A posting that owes one person the reward."""
    posting = posted()
    finishes_late(fake, posting)
    return posting


def paid(fake: FakeProlific) -> list[str]:
    return [str(amount) for _who, amount in fake.paid]


def test_who_finished_after_the_panels_time_is_owed_the_reward_once(late: Posting, fake: FakeProlific) -> None:
    (one,) = money.owed(late)
    assert (one.kind, one.amount) == (Payment.Kind.LATE, 100)
    (batch,) = money.pay_owed(late)
    assert (batch.state, paid(fake)) == (State.PAID, ["1.00"])
    assert money.owed(late) == [] and money.pay_owed(late) == []
    assert paid(fake) == ["1.00"]


def test_the_late_are_owed_the_reward_of_their_posting(late: Posting) -> None:
    """A posting may pay more than the study file says."""
    Posting.objects.filter(pk=late.pk).update(reward=130)
    late.refresh_from_db()
    assert [one.amount for one in money.owed(late)] == [130]


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
    assert [(one.kind, one.amount) for one in money.owed(posting)] == [(Payment.Kind.TURNED_AWAY, 30)]


def test_who_finds_no_place_again_is_paid_for_the_first_visit(fake: FakeProlific) -> None:
    posting = posted(turned_away_pay=30)
    place = arrives(fake, posting)
    visits = [place, {**place, "id": "again"}, {**place, "id": "and-again"}]
    for visit in visits:
        fake.submissions[visit["id"]] = {**visit, "status": "RETURNED"}
        sitting = begin_sitting(study=posting.study, ids=ids_of(visit))
        Sitting.objects.filter(pk=sitting.pk).update(state="turned_away", ended_at=timezone.now())
    read_posting(posting)
    (one,) = money.owed(posting)
    assert (one.kind, one.amount, money.ids_of(one.submission).submission) == (
        Payment.Kind.TURNED_AWAY,
        30,
        place["id"],
    )
    by_id = {money.ids_of(row.submission).submission: row for row in reconciliation.reconcile(posting).findings}
    assert [by_id[visit["id"]].flags for visit in visits] == [(), ("came_before",), ("came_before",)]
    assert [by_id[visit["id"]].judgement.action for visit in visits] == [Action.PAY, Action.NOTHING, Action.NOTHING]


# 2.5 points: half a cent is paid as a whole one, above an even number and above an odd one.
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
    (one,) = money.owed(posting)
    assert (one.kind, one.amount) == (Payment.Kind.SCORE, cents)
    fake.submissions[place["id"]]["status"] = "PARTIALLY APPROVED"
    read_posting(posting)
    assert [one.amount for one in money.owed(posting)] == [cents]


@pytest.mark.parametrize("status", ["REJECTED", "RETURNED", "AWAITING REVIEW"])
def test_points_are_owed_to_nobody_who_is_not_paid(fake: FakeProlific, status: str) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    scored(begins(posting.study, place), "3")
    fake.submissions[place["id"]]["status"] = status
    read_posting(posting)
    assert money.owed(posting) == []


def test_who_finished_late_with_points_is_owed_both_and_paid_in_one_row(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    scored(begins(posting.study, place), "3")
    fake.time_out(place["id"])
    read_posting(posting)
    assert [(one.kind, one.amount) for one in money.owed(posting)] == [
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
    assert [one.amount for one in money.owed(posting)] == [21]


def test_a_payment_whose_answer_got_lost_is_never_sent_again(late: Posting, fake: FakeProlific) -> None:
    fake.lose_next_answer("/pay/")
    with pytest.raises(PanelUnreachable):
        money.pay_owed(late)
    batch = PaymentBatch.objects.get()
    assert (batch.state, batch.needs_a_person, paid(fake)) == (State.UNKNOWN, True, ["1.00"])
    assert money.owed(late) == []
    (found,) = reconciliation.reconcile(late).differences
    assert found.judgement.action == Action.SAY and f"payment {batch.pk}" in found.judgement.sentence
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
    assert PaymentBatch.objects.get().state == State.PREPARED
    monkeypatch.undo()
    with ProlificAccount.open() as client:
        monkeypatch.setattr(ProlificClient, "pay_bonuses", die)
        with pytest.raises(Killed):
            money.pay_owed(late, client=client)
        monkeypatch.undo()
        assert [batch.state for batch in PaymentBatch.objects.order_by("pk")] == [State.REFUSED, State.SENT]
        with pytest.raises(StateRefused, match="may have been made"):
            money.pay_owed(late, client=client)


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


def test_nothing_is_paid_over_the_cap(fake: FakeProlific) -> None:
    posting = posted(spending_cap=650, places=6)
    finishes_late(fake, posting)
    assert money.committed(posting.study) == 600
    with pytest.raises(StateRefused, match=r"panel\.spending_cap: 100 more would make 700 of 650"):
        money.pay_owed(posting)
    assert fake.paid == [] and not PaymentBatch.objects.exists()


def test_many_are_paid_in_several_calls(fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProlificAccount, "bonuses_at_once", 2)
    posting = posted()
    for _ in range(3):
        finishes_late(fake, posting)
    assert [batch.payments.count() for batch in money.pay_owed(posting)] == [2, 1]
    assert paid(fake) == ["1.00"] * 3


def test_of_two_who_pay_at_once_one_does(late: Posting, fake: FakeProlific, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes when the first has stored its payment and is about to send it."""
    with ProlificAccount.open() as client:
        prepare = client.prepare_bonuses

        def somebody_else_first(*args: Any) -> Any:
            monkeypatch.undo()
            assert [batch.state for batch in money.pay_owed(late)] == [State.PAID]
            return prepare(*args)

        monkeypatch.setattr(client, "prepare_bonuses", somebody_else_first)
        with pytest.raises(StateRefused, match="taken up by somebody else"):
            money.pay_owed(late, client=client)
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


@pytest.mark.parametrize("was_paid", [True, False])
def test_a_payment_is_settled_only_when_no_call_can_be_on_its_way(
    on_its_way: PaymentBatch, late: Posting, was_paid: bool
) -> None:
    (found,) = reconciliation.reconcile(late).differences
    assert found.judgement.action == Action.SAY and f"payment {on_its_way.pk}" in found.judgement.sentence
    with pytest.raises(StateRefused, match="may be on its way"):
        money.settle(on_its_way, was_paid=was_paid)
    assert PaymentBatch.objects.get().state == State.SENT and money.owed(late) == []
    no_call_is_on_its_way()
    money.settle(on_its_way, was_paid=was_paid)
    assert PaymentBatch.objects.get().state == (State.PAID if was_paid else State.REFUSED)
    assert len(money.owed(late)) == (0 if was_paid else 1)
    assert money.committed(late.study) == (700 if was_paid else 600)
