"""Money and webhooks used by many at once, on PostgreSQL with real threads."""

import time
from threading import Event

import pytest
from django.db import transaction
from django.utils import timezone

from survey.exceptions import HunchError, StateRefused
from survey.models import PaymentBatch, Posting, Submission, WebhookEvent
from survey.panels import money, postings, webhooks
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting
from tests.survey.sittings.test_concurrency import together

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
    assert PaymentBatch.objects.filter(state=PaymentBatch.State.PAID).count() == 1


def test_a_payment_that_is_sent_while_another_process_looks_is_not_paid_again(fake: FakeProlific) -> None:
    posting = posted()
    place = arrives(fake, posting)
    begins(posting.study, place)
    fake.time_out(place["id"])
    read_posting(posting)
    batch = money._prepare(fetched(posting), at_once=200, by=None, via="test")
    assert batch is not None
    is_marked = Event()

    def sends() -> None:
        with transaction.atomic():
            PaymentBatch.objects.filter(pk=batch.pk).update(state="sent", sent_at=timezone.now(), external_id="b")
            is_marked.set()
            time.sleep(0.5)  # The other process reads the payments meanwhile.

    def looks() -> object:
        is_marked.wait(5)
        return money.pay_owed(fetched(posting))

    _sent, result = together(sends, looks)
    assert isinstance(result, StateRefused) and "may have been made or not" in str(result), result
    assert not fake.paid and PaymentBatch.objects.get().state == "sent"


def test_two_who_spend_at_once_stay_under_the_cap(fake: FakeProlific) -> None:
    posting = posted(places=2, spending_cap=300)
    results = together(*[lambda: postings.add_places(fetched(posting), 1)] * 3)
    assert sum(isinstance(result, Posting) for result in results) == 1, results
    assert sum(isinstance(result, HunchError) for result in results) == 2, results
    other = posted_again(posting)
    results = together(lambda: postings.publish(fetched(other)), lambda: postings.publish(fetched(other)))
    assert all(isinstance(result, HunchError) for result in results)
    assert money.committed(fetched(posting).study) == 300


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
