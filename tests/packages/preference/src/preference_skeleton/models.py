"""A prompt with two replies, and how people judged them."""

from django.db import models
from django.db.models import Q

from survey.models import Item, ModelAnswer, Question, Response


class Comparison(models.Model):
    """Both replies are the same one in a control that says what a tie looks like."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="comparison", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    a = models.ForeignKey(ModelAnswer, on_delete=models.PROTECT, related_name="+")
    b = models.ForeignKey(ModelAnswer, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.item.key


class Judgement(models.Model):
    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="judgement", primary_key=True)
    a_first = models.BooleanField(help_text="Whether A stood first, as reply 1.")
    cannot_judge = models.BooleanField(default=False)
    reason = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"judgement of {self.response}"


class Rating(models.Model):
    """The place on one scale, as given."""

    judgement = models.ForeignKey(Judgement, on_delete=models.CASCADE, related_name="ratings")
    scale = models.CharField(max_length=40)
    given = models.PositiveSmallIntegerField(help_text="1: reply 1 is much better; 8: reply 2 is.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judgement", "scale"], name="preference_rating_once_a_scale"),
            models.CheckConstraint(condition=Q(given__gte=1, given__lte=8), name="preference_rating_1_to_8"),
        ]

    def __str__(self) -> str:
        return f"{self.scale} {self.given}"

    @property
    def towards_a(self) -> float:
        """-3.5 .. 3.5, whichever side A stood on."""
        towards_first = 4.5 - self.given
        return towards_first if self.judgement.a_first else -towards_first
