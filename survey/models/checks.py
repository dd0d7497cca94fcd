"""What a sitting leaves in addition to its items: attention checks, remarks on questions, and whether its data may be
used."""

from django.db import models
from django.db.models import Q

from .sitting import Assignment, Sitting

LONGEST_REPORT = 500  # characters; the text is in an index, which holds this many in any alphabet


class AttentionAnswer(models.Model):
    """The answer to one attention check. A wrong one sets a flag and changes nothing that the person sees."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="attention_answers")
    name = models.CharField(max_length=40, help_text="The check's name in the study file.")
    position = models.PositiveSmallIntegerField(
        "items answered before", help_text="How many items the person had answered before."
    )
    answer = models.PositiveSmallIntegerField(
        "option chosen", help_text="The chosen option's index in the study file, from 0."
    )
    shown = models.JSONField("options in the order shown", help_text="Indices of the options in the order shown.")
    passed = models.BooleanField()
    at = models.DateTimeField("time")

    class Meta:
        ordering = ["sitting_id", "at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "name"], name="attention_answer_once_a_check"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.sitting}"


class QuestionReport(models.Model):
    """What a respondent finds wrong with an item, in their words."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="question_reports")
    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="question_reports")
    screen = models.CharField(max_length=40, help_text="The item's screen that it was sent from.")
    text = models.CharField(max_length=LONGEST_REPORT)
    at = models.DateTimeField("time")

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "screen", "text"], name="question_report_once_in_these_words"
            ),
            models.CheckConstraint(condition=~Q(text=""), name="question_report_has_words"),
        ]

    def __str__(self) -> str:
        return f"report on {self.assignment}"


class DataChoice(models.Model):
    """What a person chose after the debriefing: the answers may be used, or they are withdrawn."""

    sitting = models.OneToOneField(Sitting, on_delete=models.PROTECT, related_name="data_choice")
    may_use = models.BooleanField("agrees to the use of the data")
    at = models.DateTimeField("time")

    def __str__(self) -> str:
        return f"{'use' if self.may_use else 'withdraw'}: {self.sitting}"
