"""Estimates that were computed once and are shown until what they rest on has changed."""

from datetime import datetime

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from .leased import Leased
from .study import Study


class StoredEstimateQuerySet(models.QuerySet["StoredEstimate"]):
    def queue(self) -> None:
        """Have these rows computed again. One whose worker has died is computed when it is asked for again: it must not
        take one worker after the other with it."""
        is_over = Q(state="done") | Q(state=Leased.RUNNING, lease_until__lt=timezone.now())
        self.filter(is_over).update(state=Leased.QUEUED, lease_until=None, sent_at=None)

    def empty(self) -> None:
        """Forget all figures of these rows, and those that are being computed now, and have them computed again. Call
        it under the locks of the stages."""
        self.update(
            state=Leased.QUEUED,
            attempt=F("attempt") + 1,  # The process that computes it now may no longer write.
            lease_until=None,
            sent_at=None,
            basis_sha256="",
            report="",
            problem="",
            computed_at=None,
        )


class StoredEstimate(Leased):
    """What the answers of a study said at one moment, in one division: means and counts, nobody's single answer.

    It is out of date where `basis_sha256` is not the hash of what it would rest on now. A queued row is computed again
    by a worker. A withdrawal empties all rows of its study: a mean of one answer is that answer.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="stored_estimates")
    asked = models.JSONField(
        "divisions and levels asked for",
        help_text="The divisions (by) and the levels (condition) that somebody asked for.",
    )
    asked_sha256 = models.CharField("hash of what was asked for", max_length=64)
    basis_sha256 = models.CharField(
        "hash of what it rests on", max_length=64, blank=True, help_text="Of all that the figures rest on."
    )
    report = models.TextField("figures", blank=True, help_text="The figures as JSON; empty if there are none now.")
    problem = models.TextField("why there are no figures", blank=True, help_text="Why there can be none.")
    computed_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField("seconds that it took", default=0, help_text="How long it took.")

    objects = StoredEstimateQuerySet.as_manager()

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.UniqueConstraint(fields=["study", "asked_sha256"], name="stored_estimate_once_a_question"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done"]), name="stored_estimate_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False),
                name="stored_estimate_running_has_a_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"estimates of {self.study}"

    def may_be_computed_again(self, now: datetime, rests: float) -> bool:
        """Whether it has rested for `rests` times as long as it took: answers of an open stage come all the time, and
        a page that somebody watches must not keep a worker busy."""
        return self.computed_at is None or abs((now - self.computed_at).total_seconds()) >= rests * self.seconds
