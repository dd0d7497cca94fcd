"""Where people belong in a study's quotas, by what they answered before the items. Imports Django alone."""

from django.db import models
from django.db.models import Q

from .sitting import Sitting
from .study import Stage


class QuotaPlace(models.Model):
    """Where somebody belongs in one quota of the study file, decided once. A place counts as taken while it is `held`
    and its sitting is live or complete."""

    class State(models.TextChoices):
        HELD = "held", "has a place"
        FULL = "full", "the cell was full, and the sitting ended"
        OUTSIDE = "outside", "belongs in no cell"
        LOST = "lost", "was away, and somebody else got the place"

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="quota_places")
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="quota_places")
    quota = models.CharField(max_length=40, help_text="The quota's name in the study file.")
    cell = models.CharField(
        "part of the quota", max_length=40, blank=True, help_text="The cell's name; empty outside of all."
    )
    state = models.CharField(max_length=10, choices=State.choices)
    answers = models.JSONField(help_text="The answers that decided, by question.")
    at = models.DateTimeField("time")

    class Meta:
        ordering = ["sitting_id", "id"]
        indexes = [models.Index(fields=["stage", "quota", "cell"], name="quota_place_by_cell")]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "quota"], name="quota_place_one_a_sitting_and_quota"),
            models.CheckConstraint(
                condition=Q(state__in=["held", "full", "outside", "lost"]), name="quota_place_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="outside", cell="") | ~Q(state="outside") & ~Q(cell=""),
                name="quota_place_has_a_cell_unless_outside",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quota} of {self.sitting}"
