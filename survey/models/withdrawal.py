"""Withdrawals: when a person had their answers deleted, how many they were, and what used them. No content is kept."""

from django.db import models

from .predictor import PredictorRun
from .sitting import Respondent


class Withdrawal(models.Model):
    """The person's answers are gone; this row counts them and names the predictors that had learnt from them."""

    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="withdrawal")
    at = models.DateTimeField("time")
    reason = models.CharField(max_length=300, blank=True, help_text="How we came to know: the debriefing, a letter.")
    answers = models.PositiveIntegerField(help_text="Items that had been answered to their end.")
    stages = models.JSONField(
        "stages concerned", default=list, help_text="For each stage: its number, its answers, whether it was frozen."
    )
    removed = models.JSONField(
        "rows deleted", default=dict, help_text="Table to the number of its rows that were deleted."
    )
    points = models.DecimalField(
        "points owed",
        max_digits=12,
        decimal_places=4,
        default=0,
        help_text="What the scores had come to: a bonus stays owed.",
    )
    predictor_runs = models.ManyToManyField(
        PredictorRun,
        verbose_name="predictors trained with the answers",
        blank=True,
        related_name="withdrawals",
        help_text="Trained with the answers before they went.",
    )

    class Meta:
        ordering = ["-at", "-id"]
        permissions = [("withdraw_people", "Can delete a person's answers at their wish")]

    def __str__(self) -> str:
        return f"withdrawal of {self.respondent}"
