"""A worker's hold on a job step, which every function that runs a step gets."""

import time
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from predictors.errors import Stopped
from survey.models import JobStep
from survey.services.base import leases

HEARTBEAT_SECONDS = 2.0
# How the error of a step begins that cannot begin yet, and goes on by itself.
WAITS = "waits: "


class Claim(leases.Hold[JobStep]):
    """One worker's hold on a step."""

    def __init__(self, step: JobStep) -> None:
        super().__init__(step)
        self._last_at = 0.0
        self._last = (0, 0)

    @property
    def step(self) -> JobStep:
        return self.row

    def renew(self, **changes: Any) -> bool:
        return super().renew(heartbeat_at=timezone.now(), **changes)

    def heartbeat(self, done: int, total: int, text: str) -> bool:
        """Renew the lease and store the progress; False if the claim is lost, which stops the work.

        Written at most every few seconds, and at once when a part of the work ends (`done` is `total`).
        """
        has_ended = done >= total and (done, total) != self._last
        if time.monotonic() - self._last_at < HEARTBEAT_SECONDS and not has_ended:
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

    def finish(self, result: dict[str, Any]) -> None:
        """
        Raises:
            Stopped: another worker has the step, and nothing was written.
        """
        if not self.end(JobStep.State.DONE, result=result, error=""):
            raise Stopped

    def fail(self, error: str) -> None:
        self.end(JobStep.State.FAILED, error=error[:4000])
