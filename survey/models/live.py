"""What a study looked like a moment ago, for all who look at it."""

from django.db import models
from django.db.models import F

from .study import Study


class LiveSnapshotQuerySet(models.QuerySet["LiveSnapshot"]):
    def empty(self) -> None:
        """Forget what is there, and what is being made now: somebody has withdrawn, or something was just done."""
        self.update(attempt=F("attempt") + 1, claimed_until=None, quick={}, quick_at=None, slow={}, slow_at=None)


class LiveSnapshot(models.Model):
    """Counts and means of a study at one moment, as JSON. Nobody's own words stand here.

    `quick` is counted by the database; `slow` needs the answers and is made less often. Who makes it has claimed it
    until `claimed_until`; every claim raises `attempt`, and only the newest may write.
    """

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="live_snapshot", primary_key=True)
    quick = models.JSONField(default=dict, blank=True)
    quick_at = models.DateTimeField(null=True, blank=True)
    quick_seconds = models.FloatField(default=0, help_text="How long it took to make.")
    slow = models.JSONField(default=dict, blank=True)
    slow_at = models.DateTimeField(null=True, blank=True)
    slow_seconds = models.FloatField(default=0, help_text="How long it took to make.")
    attempt = models.PositiveIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True)

    objects = LiveSnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["study_id"]

    def __str__(self) -> str:
        return f"snapshot of {self.study}"
