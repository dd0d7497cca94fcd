"""Bonuses: under a cap, written before they are sent, and never sent twice."""

from typing import Any

import pytest
from django.utils import timezone

from survey.contracts.panels import PanelError, PanelRefused, PanelUnreachable
from survey.exceptions import StateRefused
from survey.models import Payment, PaymentBatch, Posting, Response, Score
from survey.panels import money, reconciliation
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.client import ProlificClient
from survey.panels.prolific.fake import FakeProlific
from survey.panels.reconciliation import Action
from survey.panels.submissions import read_posting
from survey.services.sittings.expiry import expire_sitting
from survey.services.studies import amending
from tests import cast

from .world import PAY, arrives, begins, posted, row_of

pytestmark = pytest.mark.django_db
State = PaymentBatch.State


def finishes_late(fake: FakeProlific, posting: Posting) -> dict[str, Any]:
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    return place


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


def test_points_are_paid_to_those_who_were_approved(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    for response in [r for a in sitting.assignments.all() for r in a.responses.all()]:
        Score.objects.create(response=response, value="1.25", rule="r", version="1")
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)
    assert money.owed(posting) == []
    fake.submissions[place["id"]]["status"] = "APPROVED"
    read_posting(posting)
    (one,) = money.owed(posting)
    assert (one.kind, one.amount) == (Payment.Kind.SCORE, 18)  # 2.5 points at 7 cents, half a cent up


def test_points_are_paid_at_least_as_the_file_said_that_the_person_began_with(fake: FakeProlific) -> None:
    posting = posted(bonus_per_point=7)
    place = arrives(fake, posting)
    sitting = begins(posting.study, place)
    Score.objects.create(
        response=Response.objects.filter(assignment__sitting=sitting)[0], value=3, rule="r", version="1"
    )
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
