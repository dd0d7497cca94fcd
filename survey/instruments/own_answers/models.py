"""Asked questions and people's answers: typed rows that belong to core items and responses."""

from django.db import models
from django.db.models import Q

from survey.models import Item, Question, Response


class AskedQuestion(models.Model):
    """A question for one person to answer. Several people answer it through several copies."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="asked_question", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    copy = models.PositiveSmallIntegerField(
        "number of the copy", help_text="From 1, up to the study's answers_per_question."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(copy__gte=1), name="asked_question_copy_at_least_1")]

    def __str__(self) -> str:
        return self.item.key


class OwnAnswer(models.Model):
    """What a person answered, and whether that is right, judged like a language model's answer."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="own_answer", primary_key=True)
    text = models.TextField(help_text="Exactly as it was given.")
    correct = models.BooleanField("right")
    stated = models.TextField(
        "answer that is stated", blank=True, help_text="The answer that the text states; empty where it states none."
    )
    reason = models.TextField(blank=True, help_text="Why no answer could be read off the text.")
    rules_version = models.CharField(
        "version of the rules", max_length=20, blank=True, help_text="Of the rules that judged it."
    )
    confidence = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How sure the person was to be right, in percentage points."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="own_answer_not_empty"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=100),
                name="own_answer_confidence_between_0_and_100",
            ),
        ]

    def __str__(self) -> str:
        return self.text
