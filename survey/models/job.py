"""Work that somebody asked for and a worker does: an export, a package, a set of screens."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from .leased import Leased
from .predictor import TRIES
from .study import Study


def new_key() -> str:
    return secrets.token_hex(16)


class JobQuerySet(models.QuerySet["Job"]):
    def waiting(self) -> "JobQuerySet":
        """Those that are not over."""
        return self.filter(state__in=Job.WAITING)

    def forget_results(self) -> None:
        """Nobody gets what these rows hold: results expire now, and work that goes on begins again. Call it in the
        transaction that deletes what the results may hold."""
        self.filter(state=Job.State.DONE).update(state=Job.State.EXPIRED, files=[], result={})
        # The process that does it now may no longer write.
        self.filter(state=Job.State.RUNNING).update(
            state=Job.State.QUEUED, attempt=F("attempt") + 1, lease_until=None, sent_at=None
        )


class Job(Leased):
    """One thing that somebody asked for. Its kind says what is made, and what right it needs
    (`survey/services/base/job_kinds.py`).

    The same question has one row while that is not over. Result files lie in the storage under `key`, and are deleted
    after `expires_at`. Only who asked may have them. A withdrawal ends all results of its study: they may hold the
    answers that are deleted.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"
        EXPIRED = "expired", "expired"

    WAITING = ("queued", "running")

    kind = models.CharField(max_length=30)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="jobs")
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="jobs",
        help_text="Who asked, and alone gets the files. Empty: a command did.",
    )
    arguments = models.JSONField(
        "what was asked for", default=dict, blank=True, help_text="Each argument's texts, checked."
    )
    asked_sha256 = models.CharField(
        "hash of what was asked for", max_length=64, help_text="Of kind, arguments and who asked."
    )
    key = models.CharField("keyed name", max_length=32, unique=True, default=new_key, editable=False)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    tries_left = models.PositiveSmallIntegerField(default=TRIES, help_text="Claims left before it fails for good.")
    progress_done = models.PositiveIntegerField("done so far", default=0)
    progress_total = models.PositiveIntegerField("to do in all", default=0)
    progress_text = models.CharField("what is being done", max_length=200, blank=True)
    error = models.TextField(blank=True, help_text="Why it failed, or what it waits for.")
    result = models.JSONField("outcome", default=dict, blank=True, help_text="What the kind says of it.")
    files = models.JSONField("files made", default=list, blank=True, help_text="Each result file: name, bytes, sha256.")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="When its files are deleted.")

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["asked_by", "-id"], name="job_by_who_asked")]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "asked_sha256"],
                condition=Q(state__in=["queued", "running"]),
                name="job_once_while_it_waits",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed", "cancelled", "expired"]),
                name="job_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False), name="job_running_has_a_lease"
            ),
            models.CheckConstraint(condition=~Q(state="done") | Q(expires_at__isnull=False), name="job_done_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_waiting(self) -> bool:
        return self.state in self.WAITING

    @property
    def percent(self) -> int | None:
        """How much of it is done; None where nobody can say."""
        if self.state == self.State.DONE:
            return 100
        return min(100 * self.progress_done // self.progress_total, 100) if self.progress_total else None

    def time_left(self, now: datetime | None = None) -> timedelta | None:
        """How long it still takes at the pace so far; None where that cannot be said yet."""
        if self.state != self.State.RUNNING or not self.progress_done or self.started_at is None:
            return None
        spent = (now or timezone.now()) - self.started_at
        return spent * (max(self.progress_total - self.progress_done, 0) / self.progress_done)

    def file_named(self, name: str) -> dict[str, Any] | None:
        matches: Sequence[dict[str, Any]] = [file for file in self.files if file["name"] == name]
        return matches[0] if matches else None

    def place_of(self, name: str, attempt: int | None = None) -> str:
        """Where the storage has a file of one attempt; by default of the present one."""
        return f"{self.place}/{self.attempt if attempt is None else attempt}/{name}"

    @property
    def place(self) -> str:
        return f"jobs/{self.key}"
