"""What a study looked like a moment ago, for all who look at it."""

from django.db import models
from django.db.models import F

from .study import Study


class LiveSnapshotQuerySet(models.QuerySet["LiveSnapshot"]):
    def empty(self) -> None:
        """Forget what is there, and what is being made now: somebody has withdrawn."""
        gone = {"claimed_until": None, "at": None}
        changes = {f"{half}_{name}": value for half in ("quick", "slow") for name, value in gone.items()}
        attempts = {f"{half}_attempt": F(f"{half}_attempt") + 1 for half in ("quick", "slow")}
        self.update(quick={}, slow={}, **changes, **attempts)


class LiveSnapshot(models.Model):
    """Counts and means of a study at one moment, as JSON. Nobody's own words stand here.

    `quick` is counted by the database; `slow` needs the answers and is made less often. Who makes a half has claimed it
    until its `claimed_until`; every claim raises its `attempt`, and only the newest may write.
    """

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="live_snapshot", primary_key=True)
    quick = models.JSONField("quick part", default=dict, blank=True)
    quick_at = models.DateTimeField("quick part made at", null=True, blank=True)
    quick_seconds = models.FloatField(
        "seconds that the quick part took", default=0, help_text="How long it took to make."
    )
    quick_attempt = models.PositiveIntegerField("number of the quick part's try", default=0)
    quick_claimed_until = models.DateTimeField("quick part kept for its worker until", null=True, blank=True)
    slow = models.JSONField("slow part", default=dict, blank=True)
    slow_at = models.DateTimeField("slow part made at", null=True, blank=True)
    slow_seconds = models.FloatField(
        "seconds that the slow part took", default=0, help_text="How long it took to make."
    )
    slow_attempt = models.PositiveIntegerField("number of the slow part's try", default=0)
    slow_claimed_until = models.DateTimeField("slow part kept for its worker until", null=True, blank=True)

    objects = LiveSnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["study_id"]

    def __str__(self) -> str:
        return f"snapshot of {self.study}"
