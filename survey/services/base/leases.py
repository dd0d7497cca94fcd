"""Work that a worker claims by a lease and keeps by heartbeats. It writes only while the claim holds. Imports models.

One implementation for every kind of row that workers claim (`Leased`). Each step is a conditional update and checks the
number of updated rows: of two workers that claim at once, one gets 0 rows.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import Error, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from predictors.errors import Stopped
from survey.models import Leased
from survey.storage.database import forget_broken_connection
from survey.storage.outages import is_outage

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=90)
# A thread renews the lease of work that reports no progress, but not for ever, since the work might hang.
RENEW_EVERY = LEASE.total_seconds() / 3
RENEW_AT_MOST = timedelta(hours=1)
# How the error of work begins that cannot begin yet, and goes on by itself.
WAITS = "waits: "
# Progress is written at most this often, in seconds.
WRITE_EVERY = 2.0
# A task that did not begin this long after it was sent is lost with its broker or worker, and is sent again.
SEND_AGAIN = timedelta(seconds=30)

Row = TypeVar("Row", bound=Leased)


class Hold(Generic[Row]):
    """One worker's hold on a row. Everything is written through it, and only while the row still has this `attempt`.

    `attempt` is the claim's number: reading the row again never turns another worker's claim into ours.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self.attempt = row.attempt

    def _mine(self) -> QuerySet[Row]:
        rows: QuerySet[Row] = type(self.row)._default_manager.all()
        return rows.filter(pk=self.row.pk, attempt=self.attempt, state=Leased.RUNNING)

    def renew(self, **changes: Any) -> bool:
        """Renew the lease, and write `changes` with it. False if the claim is lost: then the work must stop."""
        return bool(self._mine().update(lease_until=timezone.now() + LEASE, **changes))

    def renew_if_possible(self, **changes: Any) -> bool:
        """Renew the lease within long work. A database that is away for a moment does not end the work: whether the
        claim still holds is checked when its result is written."""
        try:
            return self.renew(**changes)
        except Error as exc:
            if connection.in_atomic_block or not is_outage(exc):
                raise
            logger.info("%s %s: no heartbeat now (%s)", type(self.row).__name__, self.row.pk, exc)
            forget_broken_connection()
            return True

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Renew the lease from a separate thread while work goes on that gives no heartbeats."""
        over = threading.Event()
        until = time.monotonic() + RENEW_AT_MOST.total_seconds()

        def keep_on() -> None:
            try:
                while not over.wait(RENEW_EVERY) and time.monotonic() < until:
                    # The work may hold the database in a long transaction; the next renewal is soon enough.
                    self.renew_if_possible()
            finally:
                connection.close()  # Each thread has its own connection.

        thread = threading.Thread(target=keep_on, name=f"lease-{self.row.pk}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def lock(self) -> None:
        """Inside a transaction: make sure that the claim is ours and stays ours until the commit.

        Raises:
            Stopped: another worker has it.
        """
        if not list(self._mine().select_for_update(no_key=True).values_list("pk", flat=True)):
            raise Stopped

    def end(self, state: str, **changes: Any) -> bool:
        """End the work in this state; False if the claim was lost and nothing was written."""
        return bool(self._mine().update(state=state, lease_until=None, finished_at=timezone.now(), **changes))

    def give_back(self, *, sent_at: datetime | None = None, **changes: Any) -> bool:
        """Queue the row for the next worker: at once, or SEND_AGAIN after `sent_at`."""
        return bool(self._mine().update(state=Leased.QUEUED, lease_until=None, sent_at=sent_at, **changes))

    def let_lapse(self) -> bool:
        """End the lease now: another worker continues as after a crash, once a task is due again."""
        return bool(self._mine().update(lease_until=timezone.now()))


class ReportingHold(Hold[Row]):
    """A hold on a row that stores its progress, in `progress_done`, `progress_total` and `progress_text`."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self._last_at = 0.0
        self._last = (0, 0)

    def heartbeat(self, done: int, total: int, text: str) -> bool:
        """Renew the lease and store the progress; False if the claim is lost, which stops the work.

        Written at most every few seconds, and at once when a part of the work ends (`done` is `total`).
        """
        has_ended = done >= total and (done, total) != self._last
        if time.monotonic() - self._last_at < WRITE_EVERY and not has_ended:
            return True
        self._last_at, self._last = time.monotonic(), (done, total)
        return self.renew_if_possible(progress_done=done, progress_total=total, progress_text=text[:200])

    def reporting(self, text: str) -> Callable[[int, int], None]:
        """A function that gives heartbeats with this text, as progress(done, total), and ends the work with Stopped if
        the claim is lost."""

        def report(done: int, total: int) -> None:
            if not self.heartbeat(done, total, text):
                raise Stopped

        return report


def claim(rows: QuerySet[Row], pk: int, *, now: datetime | None = None, **changes: Any) -> Row | None:
    """Claim one of these rows if it is free, and write `changes` with the claim; None if another worker has it.

    Args:
        rows: the rows that may be claimed.
    """
    now = now or timezone.now()
    row = rows.filter(pk=pk).first()
    if row is None:
        return None
    claimed = rows.filter(rows.model.is_free(now), pk=pk, attempt=row.attempt).update(
        state=Leased.RUNNING, attempt=F("attempt") + 1, lease_until=now + LEASE, **changes
    )
    if not claimed:
        return None
    attempt = row.attempt + 1
    row.refresh_from_db()
    row.attempt = attempt  # Our claim's number, even if another worker has claimed since.
    return row


def due(rows: QuerySet[Row], *, now: datetime | None = None) -> list[Row]:
    """The rows that need a task, oldest first: free ones for which none was sent lately.

    What was sent later than now was sent by a clock that was set back since.
    """
    now = now or timezone.now()
    lately = Q(sent_at__gte=now - SEND_AGAIN, sent_at__lte=now + SEND_AGAIN)
    unsent = Q(sent_at__isnull=True) | ~lately
    return list(rows.filter(rows.model.is_free(now), unsent).order_by("pk"))


def mark_sent(row: Leased, *, now: datetime | None = None) -> bool:
    """Record that a task is sent for a row; False if another beat or worker has just done so."""
    unchanged = type(row)._default_manager.filter(pk=row.pk, sent_at=row.sent_at, attempt=row.attempt)
    return bool(unchanged.update(sent_at=now or timezone.now()))
