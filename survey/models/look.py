"""What was seen of a stage while it ran, by its stopping rule."""

from django.db import models
from django.db.models import F, Q

from .study import Stage


class Look(models.Model):
    """One look at a running stage with a stopping rule: the estimate and its interval that holds at any time, from the
    answers completed before `answers_until`. Never changed. They are means of 30 people or more.

    The one with `reached` ended the stage; none comes after it.
    """

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="looks")
    number = models.PositiveIntegerField(help_text="From 1 in its stage.")
    at = models.DateTimeField("time")
    answers_until = models.DateTimeField(help_text="Later answers were not looked at.")
    people = models.PositiveIntegerField()
    answers = models.PositiveIntegerField()
    value = models.FloatField()
    standard_error = models.FloatField()
    low = models.FloatField("lower end")
    high = models.FloatField("upper end")
    reached = models.BooleanField(
        "narrow enough", default=False, help_text="The interval was narrow enough: the stage was closed."
    )

    class Meta:
        ordering = ["stage_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "number"], name="look_number_unique_in_stage"),
            models.UniqueConstraint(fields=["stage"], condition=Q(reached=True), name="look_reached_once_a_stage"),
            models.CheckConstraint(condition=Q(low__lte=F("high")), name="look_low_below_high"),
        ]

    def __str__(self) -> str:
        return f"look {self.number} at {self.stage}"

    @property
    def width(self) -> float:
        return self.high - self.low
