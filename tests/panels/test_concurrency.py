"""Money and webhooks used by many at once, on PostgreSQL with real threads."""

import time
from contextlib import suppress
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from survey.exceptions import HunchError, StateRefused
from survey.models import PaymentBatch, Posting, Submission, WebhookEvent
from survey.panels import money, postings, reconciliation, webhooks
from survey.panels.prolific.account import ProlificAccount
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.survey.sittings.test_concurrency import together
from tests.waiting import PATIENCE

from .world import arrives, begins, posted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def fetched(posting: Posting) -> Posting:
    """A thread's own: rows are not shared."""
    return Posting.objects.select_related("study__bank", "stage").get(pk=posting.pk)


def test_of_many_who_pay_at_once_each_bonus_is_sent_once(fake: FakeProlific) -> None:
    posting = posted()
    late = [arrives(fake, posting) for _ in range(3)]
    for place in late:
        begins(posting.study, place)
        fake.time_out(place["id"])
    read_posting(posting)
    results = together(*[lambda: money.pay_owed(fetched(posting))] * 4)
    assert all(isinstance(result, list | HunchError) for result in results), results
    money.pay_owed(fetched(posting))
    assert sorted(who for who, _amount in fake.paid) == sorted(place["id"] for place in late)
    assert PaymentBatch.objects.get().state == PaymentBatch.State.PAID, "those who came second left nothing behind"
    assert len([result for result in results if isinstance(result, list) and result]) == 1, results


def test_a_payment_that_is_sent_while_another_process_looks_is_not_paid_again(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    batch = money._prepare(fetched(posting), None, None, at_once=200, by=None, via="test")
    assert batch is not None
    is_marked = Event()

    def sends() -> None:
        with transaction.atomic():
            PaymentBatch.objects.filter(pk=batch.pk).update(state="sent", sent_at=timezone.now(), external_id="b")
            is_marked.set()
            time.sleep(0.5)  # The other process reads the payments meanwhile.

    def looks() -> object:
        assert is_marked.wait(PATIENCE)
        return money.pay_owed(fetched(posting))

    _sent, result = together(sends, looks)
    assert isinstance(result, StateRefused) and "may have been made or not" in str(result), result
    assert not fake.paid and PaymentBatch.objects.get().state == "sent"


def test_two_who_spend_at_once_stay_under_the_cap(fake: FakeProlific) -> None:
    posting = posted(places=2, spending_cap=300)
    results = together(*[lambda: postings.add_places(fetched(posting), 1)] * 3)
    assert sum(isinstance(result, Posting) for result in results) == 1, results
    assert sum(isinstance(result, HunchError) for result in results) == 2, results
    assert money.committed(fetched(posting).study) == 300


def test_of_two_who_publish_at_once_one_does(fake: FakeProlific) -> None:
    posting = posted(places=2, spending_cap=300)
    other = posted_again(posting)
    results = together(*[lambda: postings.publish(fetched(other))] * 2)
    assert sum(isinstance(result, Posting) for result in results) == 1, results
    assert sum(isinstance(result, StateRefused) for result in results) == 1, results
    assert fake.calls.count(("POST", f"/api/v1/studies/{other.external_id}/transition/")) == 1
    assert money.committed(fetched(posting).study) == 300


def test_of_many_who_draft_at_once_one_does(fake: FakeProlific) -> None:
    posting = posted(places=2)
    results = together(*[lambda: postings.draft(fetched(posting).stage, places=1, root="http://testserver")] * 3)
    made = [result for result in results if isinstance(result, Posting)]
    assert all(isinstance(result, Posting | StateRefused) for result in results), results
    # Who comes when the first is through drafts the next one.
    assert Posting.objects.count() == len(fake.studies) == 1 + len({posting.pk for posting in made})
    assert {posting.external_id for posting in Posting.objects.all()} == set(fake.studies)
    recorded = fetched(posting).stage.manifest["postings"]
    assert {entry["internal_name"] for entry in recorded} == {
        posting.internal_name for posting in Posting.objects.all()
    }


def test_readings_while_places_are_added_lose_none_of_them(fake: FakeProlific) -> None:
    posting = posted(places=2, spending_cap=800)

    def reads() -> None:
        for _time in range(4):
            read_posting(fetched(posting))

    def adds() -> int:
        done = 0
        for _time in range(4):
            with suppress(StateRefused):  # While the other one's call is under way.
                postings.add_places(fetched(posting), 1)
                done += 1
        return done

    results = together(reads, adds, adds, reads)
    assert not [result for result in results if isinstance(result, BaseException)], results
    done = results[1] + results[2]
    row = fetched(posting)
    assert done >= 1 and row.places == 2 + done == fake.studies[row.external_id]["total_available_places"]
    assert row.pending == "" and row.committed == 100 * row.places


def test_somebody_who_settles_and_the_sender_leave_one_truth(fake: FakeProlific, monkeypatch: Any) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    monkeypatch.setattr(ProlificAccount, "longest_call", timedelta(0))
    is_sent = Event()
    pay = ProlificAccount.pay_bonuses

    def slow(*args: Any, **kwargs: Any) -> None:
        is_sent.set()
        pay(*args, **kwargs)

    monkeypatch.setattr(ProlificAccount, "pay_bonuses", slow)

    def settles() -> object:
        assert is_sent.wait(PATIENCE)
        return money.settle(PaymentBatch.objects.get(), was_paid=False)

    sent, settled = together(lambda: money.pay_owed(fetched(posting)), settles)
    # Who is second learns of the first: either finds the payment settled, or already paid.
    assert isinstance(settled, PaymentBatch if isinstance(sent, StateRefused) else StateRefused), (sent, settled)
    assert isinstance(sent, list) or "counts as paid" in str(sent)
    batch = PaymentBatch.objects.get()
    assert batch.state == "paid" and not batch.payments.filter(is_void=True).exists()
    assert len(fake.paid) == 1 and money.committed(fetched(posting).study) == 700


def posted_again(posting: Posting) -> Posting:
    return postings.draft(posting.stage, places=1, root="http://testserver")


def test_a_submission_that_many_events_are_about_is_one_row(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    for event in fake.webhooks():
        webhooks.take("prolific", headers=event.headers, body=event.body)
    results = together(*[webhooks.work_on_events] * 3, *[lambda: read_posting(fetched(posting))] * 2)
    assert not [result for result in results if isinstance(result, BaseException)], results
    assert Submission.objects.get().status == "AWAITING REVIEW"
    assert set(WebhookEvent.objects.values_list("state", flat=True)) == {"done"}


def test_of_four_researchers_who_ask_back_at_once_each_person_gets_one_request(fake: FakeProlific) -> None:
    posting = posted()
    for place in [arrives(fake, posting) for _ in range(5)]:
        begins(posting.study, place, until="item")
        fake.submit(place["id"], "NOCODE")
    read_posting(posting)
    results = together(*[lambda: reconciliation.ask_back(fetched(posting))] * 4)
    assert all(isinstance(result, int) for result in results), results
    requests = [path for _method, path in fake.calls if path.endswith("/request-return/")]
    assert sum(results) == len(requests) == len(set(requests)) == 5


def test_of_four_who_reject_at_once_one_does(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.submit(place["id"], posting.study.completion_code("completed"))
    read_posting(posting)

    def reject() -> None:
        row = Submission.objects.select_related("posting__study").get()
        reconciliation.reject(row, category="LOW_EFFORT", message="x" * 100)

    results = together(*[reject] * 4)
    assert sorted(type(result).__name__ for result in results) == ["NoneType", *["StateRefused"] * 3], results
    assert len([path for _method, path in fake.calls if path.endswith("/transition/") and "submissions" in path]) == 1


def test_a_payment_cannot_be_settled_while_it_is_on_its_way(
    fake: FakeProlific, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A researcher says "not paid" at the very moment at which the panel pays."""
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    is_at_the_panel, may_answer = Event(), Event()
    pay = fake._pay

    def slowly(batch: object) -> None:
        pay(batch)  # type: ignore[arg-type]
        is_at_the_panel.set()
        assert may_answer.wait(PATIENCE)

    monkeypatch.setattr(fake, "_pay", slowly)

    def settles() -> object:
        assert is_at_the_panel.wait(PATIENCE)
        try:
            return money.settle(PaymentBatch.objects.get(), was_paid=False)
        finally:
            may_answer.set()

    paid, settled = together(lambda: money.pay_owed(fetched(posting)), settles)
    assert isinstance(settled, StateRefused) and "may be on its way" in str(settled), settled
    assert isinstance(paid, list) and PaymentBatch.objects.get().state == "paid"
    assert money.pay_owed(fetched(posting)) == [] and len(fake.paid) == 1


def test_of_many_deliveries_of_the_same_bytes_at_once_one_is_kept(fake: FakeProlific) -> None:
    posting = posted()
    arrives(fake, posting)
    event = fake.webhooks()[0]
    calls = [
        lambda number=number: webhooks.take(
            "prolific", headers={**event.headers, "X-Event-ID": f"made-up-{number}"}, body=event.body
        )
        for number in range(8)
    ]
    results = together(*calls)
    assert not [result for result in results if isinstance(result, BaseException)], results
    assert sum(result is not None for result in results) == WebhookEvent.objects.count() == 1
