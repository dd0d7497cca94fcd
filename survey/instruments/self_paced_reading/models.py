"""Passages that people read, windows in which they began, how long they took for each word, and their answers."""

from django.db import models
from django.db.models import Q

from survey.models import Assignment, Item, Question, Response


class ReadPassage(models.Model):
    """The passage is read word by word, and its question is asked after it."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="read_passage", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.item.key

    @property
    def words(self) -> list[str]:
        return self.question.plain.split()

    @property
    def asks(self) -> str:
        """The yes/no question about the passage."""
        return str(self.question.extra.get("question", ""))

    @property
    def is_yes(self) -> bool:
        """Whether yes is right. No page of a respondent may show it."""
        return bool(self.question.extra.get("answer") == "yes")


class PassageOpening(models.Model):
    """A window in which a person began to read a passage. Two of one passage mean that it was read before, or in two
    windows."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="passage_openings")
    nonce = models.CharField("the window's own mark", max_length=64, help_text="The window's own.")
    opened_at = models.DateTimeField(help_text="By the server's clock.")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["assignment", "nonce"], name="passage_opening_once_a_window")]

    def __str__(self) -> str:
        return f"{self.assignment_id} in window {self.nonce[:8]}"


class WordTimes(models.Model):
    """How long a person looked at each word of a passage, and why these times may not be used, if so."""

    class Means(models.TextChoices):
        KEY = "key"
        TAP = "tap"
        BOTH = "both"

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="word_times", primary_key=True)
    times = models.JSONField("milliseconds for each word", help_text="Milliseconds, one a word.")
    lead_ms = models.PositiveIntegerField(
        "milliseconds before the first word", help_text="From the dashes to the first word."
    )
    server_ms = models.PositiveIntegerField(
        "milliseconds by the server's clock",
        null=True,
        help_text="From the beginning to the answer, by the server's clock. Empty where nothing said begun.",
    )
    means = models.CharField(
        "how words were called", max_length=4, choices=Means.choices, help_text="By which means words were called."
    )
    marks = models.JSONField(
        "why times may not be used", default=list, help_text="Why the times may not be used; empty if they may."
    )

    class Meta:
        verbose_name_plural = "word times"
        constraints = [models.CheckConstraint(condition=~Q(times=[]), name="word_times_not_empty")]

    def __str__(self) -> str:
        return f"{len(self.times)} words"


class PassageAnswer(models.Model):
    """What a person answered to a passage's question."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="passage_answer", primary_key=True)
    yes = models.BooleanField("answered yes")
    right = models.BooleanField()

    def __str__(self) -> str:
        return "yes" if self.yes else "no"
