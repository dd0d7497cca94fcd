"""Pairs and beliefs: the typed rows beside core items and responses. Beliefs are integer percentage points."""

from django.db import models
from django.db.models import F, Q

from survey.models import Item, ModelAnswer, Question, Response


class Pair(models.Model):
    """(ordered evidence, target question). Without evidence it is a re-asking control."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="pair", primary_key=True)
    target = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    evidence = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    outcome = models.BooleanField(null=True, blank=True, help_text="Whether the model answered the evidence correctly.")
    answer = models.ForeignKey(
        ModelAnswer,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="What a language model really answered to the evidence; empty where outcomes are hypothetical.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(evidence__isnull=True, outcome__isnull=True)
                | Q(evidence__isnull=False, outcome__isnull=False),
                name="pair_evidence_and_outcome_together",
            ),
            models.CheckConstraint(
                condition=Q(answer__isnull=True) | Q(evidence__isnull=False), name="pair_answer_needs_evidence"
            ),
            models.CheckConstraint(
                condition=Q(evidence__isnull=True) | ~Q(evidence=F("target")), name="pair_evidence_is_not_the_target"
            ),
        ]

    def __str__(self) -> str:
        return self.item.key


class Belief(models.Model):
    """One stated probability, in percentage points."""

    class Kind(models.TextChoices):
        PRIOR = "prior", "prior"
        POSTERIOR = "posterior", "posterior"

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="belief", primary_key=True)
    kind = models.CharField(max_length=9, choices=Kind.choices)
    value = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(value__gte=0) & Q(value__lte=100), name="belief_between_0_and_100"),
            models.CheckConstraint(condition=Q(kind__in=["prior", "posterior"]), name="belief_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value} %"
