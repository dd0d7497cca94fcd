"""Passages and guesses: the typed rows beside core items and responses."""

from django.db import models
from django.db.models import Q

from survey.models import Item, Question, Response


class Passage(models.Model):
    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="passage", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.item.key


class Guess(models.Model):
    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="guess", primary_key=True)
    text = models.TextField()

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="guess_not_empty")]

    def __str__(self) -> str:
        return self.text
