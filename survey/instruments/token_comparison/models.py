"""Contexts with the tokens that a generator drew, comparisons of two tokens, and what people said of them."""

from typing import Any, NamedTuple

from django.db import models
from django.db.models import F, Q

from survey.models import Item, LanguageModel, Question, Response, TokenizerRecord


class DrawnToken(NamedTuple):
    """A token that the generator drew `times` times; log_g: the natural logarithm of its probability there."""

    id: int
    text: str
    times: int
    log_g: float


class PreparedContext(models.Model):
    """The first `position` tokens of a text, and what the generator drew to follow them. Probabilities are those among
    the tokens that people can read."""

    preparation = models.CharField(
        "hash of the settings", max_length=64, help_text="Hash of the settings by which it was made."
    )
    text_sha256 = models.CharField("hash of the text", max_length=64, help_text="Of the text in UTF-8, without markup.")
    position = models.PositiveIntegerField(
        "tokens of the context", help_text="Tokens of the context; the next one is the true one."
    )
    end = models.PositiveIntegerField("end of the context", help_text="The first character after the context.")
    tokenizer = models.ForeignKey(TokenizerRecord, on_delete=models.PROTECT, related_name="+")
    generator = models.CharField("model that draws", max_length=520, help_text="local:FOLDER or ngram:NAME.")
    generator_sha256 = models.CharField(
        "hash of the model that draws", max_length=64, help_text="Of all that its probabilities depend on."
    )
    seed = models.PositiveBigIntegerField("seed of chance", help_text="The draws are from it.")
    draws = models.PositiveIntegerField("tokens drawn", help_text="How many tokens were drawn.")
    same = models.PositiveIntegerField("draws of the true token", help_text="How many of them are the true token.")
    true_id = models.PositiveIntegerField("id of the true token")
    true_text = models.CharField("text of the true token", max_length=200)
    log_g_true = models.FloatField(
        "logarithm of the true token's chance",
        help_text="Natural logarithm of the generator's probability of the true token.",
    )
    drawn = models.JSONField(
        "other tokens", help_text="The other tokens: id, text, times and the logarithm of the probability."
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["preparation", "text_sha256", "position"], name="comparison_context_prepared_once"
            ),
            models.CheckConstraint(condition=Q(same__lte=F("draws")), name="comparison_same_among_draws"),
            models.CheckConstraint(condition=Q(log_g_true__lte=0), name="comparison_context_log_not_above_0"),
        ]

    def __str__(self) -> str:
        return f"{self.position} tokens of text {self.text_sha256[:12]}"

    @property
    def others(self) -> list[DrawnToken]:
        """The other tokens that were drawn, in the order of their ids."""
        return [
            DrawnToken(int(token_id), str(text), int(times), float(log)) for token_id, text, times, log in self.drawn
        ]


class ContextReading(models.Model):
    """What a language model gives to the true and the drawn tokens of a context: natural logarithms."""

    context = models.ForeignKey(PreparedContext, on_delete=models.CASCADE, related_name="readings")
    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="+")
    source = models.CharField("model file or server", max_length=520, help_text="local:FOLDER or ngram:NAME.")
    source_sha256 = models.CharField(
        "hash of what it was read from", max_length=64, help_text="Of all that the reading depends on beside the text."
    )
    log_true = models.FloatField(
        "logarithm of the true token's chance",
        null=True,
        help_text="Of the true token; empty where the model cannot give it.",
    )
    log_others: Any = models.JSONField(
        "logarithms of the drawn tokens' chances",
        help_text="Of the drawn tokens, in their order; null where it cannot give one.",
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["context", "language_model", "source_sha256"], name="comparison_context_read_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.language_model} on {self.context}"


class TokenPair(models.Model):
    """A context, its true next token, and another token that the generator drew `multiplicity` times."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="token_pair", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    context = models.ForeignKey(PreparedContext, on_delete=models.PROTECT, related_name="+")
    other_id = models.PositiveIntegerField("id of the other token")
    other_text = models.CharField("text of the other token", max_length=200)
    multiplicity = models.PositiveIntegerField("times drawn")
    log_g_other = models.FloatField(
        "logarithm of the other token's chance",
        help_text="Natural logarithm of the generator's probability of the other token.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(multiplicity__gt=0), name="comparison_was_drawn"),
            models.CheckConstraint(condition=Q(log_g_other__lte=0), name="comparison_log_not_above_0"),
        ]

    def __str__(self) -> str:
        return self.item.key

    @property
    def shown(self) -> str:
        """The text of the context."""
        return self.question.plain[: self.context.end]


class StatedChance(models.Model):
    """What a person said of one comparison, and the points for it."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="stated_chance", primary_key=True)
    percent_left = models.PositiveSmallIntegerField(
        "chance given to the left token", help_text="The stated chance that the left token is the true one."
    )
    true_is_left = models.BooleanField("true token stood left")
    reward = models.DecimalField("points", max_digits=10, decimal_places=4, help_text="Points.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(percent_left__gt=0) & Q(percent_left__lt=100), name="comparison_chance_between_0_and_100"
            )
        ]

    def __str__(self) -> str:
        return f"{self.percent_left} % left"

    @property
    def percent_true(self) -> int:
        """The chance that was given to the true token."""
        return self.percent_left if self.true_is_left else 100 - self.percent_left
