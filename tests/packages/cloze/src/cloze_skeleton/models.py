"""A place in a sentence, and the words that people wrote there."""

from django.db import models
from django.db.models import Q

from survey.models import Item, Question, Response


class Gap(models.Model):
    """The word at `position` (0 for the first one) is asked for; those before it are shown."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="gap", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveSmallIntegerField()

    def __str__(self) -> str:
        return self.item.key

    @property
    def fragment(self) -> str:
        return " ".join(self.question.plain.split()[: self.position])

    @property
    def target(self) -> str:
        return self.question.plain.split()[self.position]


class Word(models.Model):
    """What was typed; the word that was taken of it and how it matches, by a rule with a version."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="word", primary_key=True)
    text = models.CharField(max_length=40, help_text="As typed.")
    several = models.BooleanField(help_text="More than one word was typed; the first one was taken.")
    normalised = models.CharField(max_length=60)
    rule = models.CharField(max_length=20)
    exact = models.BooleanField()
    lenient = models.BooleanField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="cloze_word_not_empty"),
            models.CheckConstraint(condition=Q(exact=False) | Q(lenient=True), name="cloze_word_exact_is_lenient"),
        ]

    def __str__(self) -> str:
        return self.text
