"""Answers to the practice item, which shows how the screens work. They never count as data. Imports Django alone."""

from django.db import models
from django.db.models import Q

from .sitting import Sitting


class PracticeAnswer(models.Model):
    """One answer to a practice item, numbered inside the sitting. It belongs to no item and no slot. Where there are
    several examples, one more row says that the page between two of them was read."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="practice_answers")
    number = models.PositiveSmallIntegerField(help_text="1, 2, ... inside the sitting.")
    screen = models.CharField(max_length=40)
    data = models.JSONField(help_text="The fields that were accepted, by name.")
    at = models.DateTimeField("time")

    class Meta:
        ordering = ["sitting_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "number"], name="practice_answer_number_unique_in_sitting"),
            models.CheckConstraint(condition=Q(number__gte=1), name="practice_answer_number_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.screen} of {self.sitting}"
