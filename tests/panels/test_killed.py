"""A process is killed at every point between an intention that costs money and its record.

Each path is run once to learn its points: before every statement that writes, before every call that changes something
at the panel, and after each such call was carried out. They must be those that stand in `PATHS`. Then it is run and
killed at one point after the other, and led to its end as a researcher would: after a while the panel is read, a
payment whose outcome is unknown is looked up there, and what was not done is done again. Nothing is paid twice or
lost, and whatever the panel may charge counts as spent at every moment.
"""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from survey.exceptions import StateRefused
from survey.models import PaymentBatch, Posting, Submission
from survey.panels import money, postings, reconciliation
from survey.panels.accounts import account_of
from survey.panels.prolific.fake import FakeProlific
from survey.panels.submissions import read_posting

from .world import arrives, begins, posted

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LATER = timedelta(minutes=11)
INTENTION = ["UPDATE posting", "INSERT auditentry"]
TRANSITION = ["POST studies/transition", "answered POST studies/transition"]
SET_UP = ["POST submissions/bonus-payments", "answered POST submissions/bonus-payments"]
PAY = ["POST bulk-bonus-payments/pay", "answered POST bulk-bonus-payments/pay"]
BULK = ["POST submissions/bulk-approve", "answered POST submissions/bulk-approve"]
ANSWERED = ["UPDATE posting", "UPDATE posting"]  # What was asked for is over; and what the panel said of it.
STATE = ("studies", "submissions", "batches", "groups", "paid", "calls")


class Killed(BaseException):
    """No handler of errors takes it, as none sees a process being killed."""


@dataclass
class Watch:
    """Notes the points that a path comes by, and kills it at one."""

    kill_at: int | None = None
    points: list[str] = field(default_factory=list)

    def reach(self, point: str) -> None:
        self.points.append(point)
        if self.kill_at == len(self.points) - 1:
            raise Killed(point)

    def statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if match := re.match(r'(INSERT INTO|UPDATE|DELETE FROM) "survey_(\w+)"', sql):
            self.reach(f"{match[1].split()[0]} {match[2]}")
        return execute(sql, params, many, context)


@contextmanager
def watched(watch: Watch) -> Iterator[Watch]:
    request = httpx.Client.request

    def call(client: httpx.Client, method: str, path: Any, **more: Any) -> httpx.Response:
        if method == "GET" or "calculator" in str(path):
            return request(client, method, path, **more)
        words = [part for part in str(path).strip("/").split("/")[2:] if not re.fullmatch(r"[0-9a-f]{24}", part)]
        name = f"{method} {'/'.join(words)}"
        watch.reach(name)
        answer = request(client, method, path, **more)
        watch.reach(f"answered {name}")
        return answer

    with pytest.MonkeyPatch.context() as patch, connection.execute_wrapper(watch.statement):
        patch.setattr(httpx.Client, "request", call)
        yield watch


@contextmanager
def as_it_was(fake: FakeProlific) -> Iterator[None]:
    """What happens inside is undone, in the database and at the panel."""
    before = {name: copy.deepcopy(getattr(fake, name)) for name in STATE}
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    for name, value in before.items():
        setattr(fake, name, value)


@dataclass(frozen=True)
class Path:
    """`begin` makes the posting, `act` is what costs money, `again` leads it to its end after a kill, and `holds` is
    what must be true then."""

    begin: Callable[[FakeProlific], Posting]
    act: Callable[[Posting], Any]
    again: Callable[[Posting, FakeProlific], None]
    holds: Callable[[Posting, FakeProlific], None]
    points: list[str]


def time_passes() -> None:
    """Every call that was begun is over."""
    for name in ("pending_at", "changed_at", "published_at", "read_at"):
        Posting.objects.filter(**{f"{name}__isnull": False}).update(**{name: F(name) - LATER})
    Submission.objects.update(read_at=F("read_at") - LATER)
    Submission.objects.filter(approved_at__isnull=False).update(approved_at=F("approved_at") - LATER)
    PaymentBatch.objects.update(created_at=F("created_at") - LATER)
    PaymentBatch.objects.filter(sent_at__isnull=False).update(sent_at=F("sent_at") - LATER)


def charged(posting: Posting, fake: FakeProlific) -> int:
    """The most that the panel can charge for what it was asked for until now, with fees and VAT."""
    study = fake.studies[posting.external_id]
    if study["status"] == "UNPUBLISHED":
        return 0
    costs = fake._cost(study, projected=True)
    return sum(row["amount"] for parts in costs.values() for row in parts.values())


def fresh(posting: Posting) -> Posting:
    return Posting.objects.select_related("study", "stage").get(pk=posting.pk)


# Publishing, now or later


def drafted(fake: FakeProlific) -> Posting:
    return posted(publish=False)


def publish(posting: Posting) -> None:
    postings.publish(posting)


def schedule(posting: Posting) -> None:
    postings.schedule(posting, timezone.now() + timedelta(days=1))


def publish_again(posting: Posting, fake: FakeProlific) -> None:
    read_posting(posting)
    if fresh(posting).published_at is None:
        postings.publish(fresh(posting))


def schedule_again(posting: Posting, fake: FakeProlific) -> None:
    read_posting(posting)
    if fresh(posting).published_at is None:
        schedule(fresh(posting))


def is_published(posting: Posting, fake: FakeProlific) -> None:
    asked = [path for method, path in fake.calls if method == "POST" and path.endswith("/transition/")]
    assert fake.studies[posting.external_id]["status"] in ("ACTIVE", "SCHEDULED") and len(asked) == 1
    assert money.committed(posting.study) == posting.cost == charged(posting, fake)


# Taking a schedule back: nothing may be free here that the panel still charges


def scheduled(fake: FakeProlific) -> Posting:
    posting = posted(publish=False)
    schedule(posting)
    return posting


def unschedule(posting: Posting) -> None:
    postings.unschedule(posting)


def unschedule_again(posting: Posting, fake: FakeProlific) -> None:
    read_posting(posting)
    if fresh(posting).state == "SCHEDULED":
        unschedule(fresh(posting))


def is_a_draft(posting: Posting, fake: FakeProlific) -> None:
    assert fake.studies[posting.external_id]["status"] == "UNPUBLISHED"
    assert money.committed(posting.study) == charged(posting, fake) == 0


# More places


def offered(fake: FakeProlific) -> Posting:
    return posted()


def add(posting: Posting) -> None:
    postings.add_places(posting, 2)


def add_again(posting: Posting, fake: FakeProlific) -> None:
    read_posting(posting)
    if fresh(posting).places == 6:
        postings.add_places(fresh(posting), 2)


def has_eight(posting: Posting, fake: FakeProlific) -> None:
    assert posting.places == fake.studies[posting.external_id]["total_available_places"] == 8
    assert money.committed(posting.study) == posting.cost == charged(posting, fake)


# Bonuses


def owing(fake: FakeProlific) -> Posting:
    posting = posted()
    for _ in range(2):
        place = arrives(fake, posting)
        begins(posting.study, place)
        fake.time_out(place["id"])
    read_posting(posting)
    assert len(money.owed(posting)) == 2
    return posting


def pay(posting: Posting) -> None:
    money.pay_owed(posting)


def pay_again(posting: Posting, fake: FakeProlific) -> None:
    """Anyone who is told that a payment may have been made looks at the panel and says what they see."""
    try:
        money.pay_owed(posting)
    except StateRefused as refusal:
        batch = PaymentBatch.objects.get(state__in=["sent", "unknown"])
        if f"--settle {batch.pk}" not in refusal.message:
            raise
        money.settle(batch, was_paid=bool(fake.paid))
        money.pay_owed(posting)


def both_are_paid_once(posting: Posting, fake: FakeProlific) -> None:
    assert [units for _who, units in fake.paid] == [Decimal("1.00")] * 2
    assert len({who for who, _units in fake.paid}) == 2 and money.owed(posting) == []
    read_posting(posting)
    account = account_of(fresh(posting))
    assert account.difference == 0 and account.here.total == 200 + 67 + 13
    assert money.committed(posting.study) == posting.cost + account.here.total


# Approvals


def finished(people: int) -> Callable[[FakeProlific], Posting]:
    def begin(fake: FakeProlific) -> Posting:
        posting = posted()
        for _ in range(people):
            place = arrives(fake, posting)
            begins(posting.study, place)
            fake.submit(place["id"], posting.study.completion_code("completed"))
        read_posting(posting)
        return posting

    return begin


def approve(posting: Posting) -> None:
    reconciliation.approve_finished(posting)


def approve_again(posting: Posting, fake: FakeProlific) -> None:
    read_posting(posting)
    reconciliation.approve_finished(posting)
    read_posting(posting)


def all_are_approved(posting: Posting, fake: FakeProlific) -> None:
    assert {row["status"] for row in fake.submissions.values()} == {"APPROVED"}
    assert reconciliation.reconcile(posting).differences == []
    account = account_of(fresh(posting))
    assert account.difference == 0 and account.here.rewards == 100 * len(fake.submissions)


PATHS = {
    "publish": Path(drafted, publish, publish_again, is_published, [*INTENTION, *TRANSITION, *ANSWERED]),
    "schedule": Path(drafted, schedule, schedule_again, is_published, [*INTENTION, *TRANSITION, *ANSWERED]),
    "add places": Path(
        offered, add, add_again, has_eight, [*INTENTION, "PATCH studies", "answered PATCH studies", *ANSWERED]
    ),
    "unschedule": Path(
        scheduled, unschedule, unschedule_again, is_a_draft, [*TRANSITION, "UPDATE posting", "INSERT auditentry"]
    ),
    "pay bonuses": Path(
        owing, pay, pay_again, both_are_paid_once,
        ["INSERT paymentbatch", "INSERT payment", "INSERT auditentry", *SET_UP, "UPDATE paymentbatch", *PAY,
         "UPDATE paymentbatch", "INSERT auditentry"],
    ),
    "approve one": Path(
        finished(1), approve, approve_again, all_are_approved,
        ["UPDATE submission", "UPDATE submission", "UPDATE submission", "POST submissions/transition",
         "answered POST submissions/transition", "UPDATE submission", "INSERT auditentry"],
    ),
    "approve several": Path(
        finished(3), approve, approve_again, all_are_approved, ["UPDATE submission", *BULK, "INSERT auditentry"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_wherever_it_is_killed_nothing_is_paid_twice_and_nothing_is_lost(fake: FakeProlific, name: str) -> None:
    fake.fee, fake.vat = Decimal("0.333"), Decimal("0.2")
    path = PATHS[name]
    posting = path.begin(fake)
    fake.calls.clear()
    with as_it_was(fake), watched(Watch()) as whole:
        path.act(fresh(posting))
    assert whole.points == path.points
    for number, point in enumerate(path.points):
        with as_it_was(fake):
            with pytest.raises(Killed, match=re.escape(point)), watched(Watch(number)):
                path.act(fresh(posting))
            assert money.committed(posting.study) >= charged(posting, fake), f"killed at {point}"
            time_passes()
            path.again(fresh(posting), fake)
            try:
                path.holds(fresh(posting), fake)
            except AssertionError as exc:
                raise AssertionError(f"killed at {number + 1}, {point}") from exc
