"""A prompt with two replies, how a person judged them, and how a language model did."""

from django.db import models
from django.db.models import F, Q

from survey.models import Item, LanguageModel, ModelAnswer, Question, Response

MIDDLE = 4.5
"""Places 1 to 4 lean to the first reply, 5 to 8 to the second; there is no middle place."""


def towards_a(place: int, a_first: bool) -> float:
    """A place as a rating towards A, -3.5 to 3.5, whichever side A stood on."""
    return MIDDLE - place if a_first else place - MIDDLE


class ReplyComparison(models.Model):
    """What an item shows. Both replies are the same one in a control that says what a tie looks like."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="comparison", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    a = models.ForeignKey(ModelAnswer, verbose_name="reply A", on_delete=models.PROTECT, related_name="+")
    b = models.ForeignKey(ModelAnswer, verbose_name="reply B", on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.item.key


class ReplyJudgement(models.Model):
    """What a person said of two replies, as given: nothing is turned towards a model yet."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="judgement", primary_key=True)
    a_first = models.BooleanField("A stood first", help_text="Whether A stood first, as reply 1.")
    cannot_judge = models.BooleanField("could not judge", default=False)
    place = models.PositiveSmallIntegerField(
        "place on the scale",
        null=True,
        blank=True,
        help_text="On the first question, 1: reply 1 is much better; 8: reply 2 is. Empty where nobody could judge.",
    )
    places = models.JSONField(
        "places on all scales", default=dict, blank=True, help_text="The same of every question, by its name."
    )
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(place__isnull=True) | Q(place__gte=1, place__lte=8), name="judgement_place_1_to_8"
            ),
            models.CheckConstraint(
                condition=Q(cannot_judge=True, place__isnull=True) | Q(cannot_judge=False, place__isnull=False),
                name="judgement_place_unless_it_cannot_be_judged",
            ),
        ]

    def __str__(self) -> str:
        return f"judgement of {self.response}"

    def towards_a(self, place: int) -> float:
        return towards_a(place, self.a_first)


class JudgeVerdict(models.Model):
    """What a language model said of two replies in one order. Kept for the replies, so that every study with them has
    it."""

    class First(models.TextChoices):
        A = "a", "A first"
        B = "b", "B first"
        NEITHER = "", "each reply alone, or not known"

    judge = models.ForeignKey(
        LanguageModel, verbose_name="judging model", on_delete=models.PROTECT, related_name="verdicts"
    )
    template = models.CharField(
        "wording of the request", max_length=40, help_text="How it was asked; empty for imported verdicts.", blank=True
    )
    template_version = models.CharField("version of the wording", max_length=20, blank=True)
    a = models.ForeignKey(ModelAnswer, verbose_name="reply A", on_delete=models.PROTECT, related_name="+")
    b = models.ForeignKey(ModelAnswer, verbose_name="reply B", on_delete=models.PROTECT, related_name="+")
    first = models.CharField("reply shown first", max_length=1, choices=First, blank=True)
    towards_a = models.FloatField(
        "score towards A",
        null=True,
        blank=True,
        help_text="-3.5 to 3.5. Empty where no score could be read, which is no tie.",
    )
    chance_a = models.FloatField(
        "chance that A is better",
        null=True,
        blank=True,
        help_text="That A is better, by the model's own probabilities of the eight numbers.",
    )
    reply = models.TextField(blank=True, help_text="As it came; of replies rated alone both, one below the other.")
    request_sha256 = models.CharField(
        "hash of the request", max_length=64, blank=True, help_text="Empty for imported verdicts."
    )
    rules_version = models.CharField(
        "version of the rules",
        max_length=20,
        blank=True,
        help_text="Of the rules that read the score; empty for imported verdicts.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["judge", "template", "a", "b", "first"]
        constraints = [
            models.UniqueConstraint(
                fields=["judge", "template", "a", "b", "first"], name="verdict_once_a_pair_and_order"
            ),
            models.CheckConstraint(condition=Q(a__lt=F("b")), name="verdict_a_before_b"),
            models.CheckConstraint(
                condition=Q(towards_a__isnull=True) | Q(towards_a__gte=-3.5, towards_a__lte=3.5),
                name="verdict_towards_a_in_scale",
            ),
            models.CheckConstraint(
                condition=Q(chance_a__isnull=True) | Q(chance_a__gte=0, chance_a__lte=1), name="verdict_chance_0_to_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judge} on {self.a_id} and {self.b_id}"
