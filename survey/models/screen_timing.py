"""How long people looked at screens that leave no response. In milliseconds; the browser's times are not checked.

The times of the items' own screens are stored with their responses.
"""

from django.db import models
from django.db.models import Q

from .sitting import Sitting

MAX_UNFINISHED = 5  # rows per sitting and step: leaving and returning again and again must not fill the table


class ScreenTiming(models.Model):
    """A step that was taken and has no response of an item: instructions, checks, a form, an attention check."""

    sitting = models.ForeignKey(Sitting, on_delete=models.CASCADE, related_name="screen_timings")
    step = models.PositiveIntegerField("page")
    kind = models.CharField("kind of page", max_length=20)
    name = models.CharField(max_length=60, blank=True, help_text="The block's name in the study file, or the screen's.")
    taken_at = models.DateTimeField("shown from")
    server_ms = models.PositiveBigIntegerField(
        "milliseconds by the server's clock", help_text="Since the sitting's previous accepted POST."
    )
    client = models.JSONField(
        "times measured by the browser", default=dict, blank=True, help_text="What the browser measured, as it sent it."
    )

    class Meta:
        ordering = ["sitting_id", "step"]
        constraints = [models.UniqueConstraint(fields=["sitting", "step"], name="screen_timing_once_a_step")]

    def __str__(self) -> str:
        return f"step {self.step} of {self.sitting}"


class UnfinishedScreen(models.Model):
    """A page that was left without being sent. The person may have come back to it."""

    sitting = models.ForeignKey(Sitting, on_delete=models.CASCADE, related_name="unfinished_screens")
    step = models.PositiveIntegerField("page")
    number = models.PositiveSmallIntegerField(
        "number of the try", help_text="1, 2, ... for each time that the step was left."
    )
    kind = models.CharField("kind of page", max_length=20)
    name = models.CharField(max_length=60, blank=True)
    left_at = models.DateTimeField(help_text="When the browser's word came.")
    client = models.JSONField(
        "times measured by the browser", default=dict, blank=True, help_text="What the browser measured, as it sent it."
    )

    class Meta:
        ordering = ["sitting_id", "step", "number"]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "step", "number"], name="unfinished_screen_number_once_a_step"),
            models.CheckConstraint(
                condition=Q(number__gte=1, number__lte=MAX_UNFINISHED), name="unfinished_screens_a_step_limited"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step} of {self.sitting}, left"
