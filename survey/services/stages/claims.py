"""A worker's hold on a job step, which every function that runs a step gets."""

from typing import Any

from django.utils import timezone

from predictors.errors import Stopped
from survey.models import JobStep
from survey.services.base import leases


class Claim(leases.ReportingHold[JobStep]):
    """One worker's hold on a step."""

    @property
    def step(self) -> JobStep:
        return self.row

    def renew(self, **changes: Any) -> bool:
        return super().renew(heartbeat_at=timezone.now(), **changes)

    def finish(self, result: dict[str, Any]) -> None:
        """
        Raises:
            Stopped: another worker has the step, and nothing was written.
        """
        if not self.end(JobStep.State.DONE, result=result, error=""):
            raise Stopped

    def fail(self, error: str) -> None:
        self.end(JobStep.State.FAILED, error=error[:4000])
