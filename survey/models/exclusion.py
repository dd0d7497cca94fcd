"""Whose answers a frozen stage excludes, and why. The answers themselves are stored elsewhere."""

from django.db import models

from .sitting import Sitting
from .study import Stage


class Exclusion(models.Model):
    """A sitting whose answers do not count. This is decided when its stage is frozen, by the rules of that moment."""

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="exclusions")
    sitting = models.OneToOneField(Sitting, on_delete=models.CASCADE, related_name="exclusion")
    flags = models.JSONField(
        "signs of careless answering", help_text="The flags that it had and that leave answers out."
    )
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ["stage_id", "sitting_id"]

    def __str__(self) -> str:
        return f"{self.sitting} left out"
