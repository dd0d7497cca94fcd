"""Runs of tokens in passages, and what people guessed at each token."""

from typing import NamedTuple

from django.db import models
from django.db.models import F, Q

from survey.models import Item, Question, Response, TokenizerRecord

LONGEST = 200  # characters of a guess


class RunToken(NamedTuple):
    """A token of a run: its id, where it stands in the passage's text, and whether people are asked for it."""

    id: int
    start: int
    end: int
    asked: bool


class TokenRun(models.Model):
    """`length` tokens of a passage from token `start` on, which are guessed one after another."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="token_run", primary_key=True)
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="+")
    tokenizer = models.ForeignKey(TokenizerRecord, on_delete=models.PROTECT, related_name="+")
    start = models.PositiveIntegerField("tokens before it", help_text="So many tokens of the passage stand before it.")
    length = models.PositiveSmallIntegerField("number of tokens", help_text="Tokens, with those that are given.")
    tokens = models.JSONField(
        "where the tokens are", help_text="Of each token: id, first character, the one after its last, 1 if asked."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(length__gte=1), name="next_token_run_not_empty")]

    def __str__(self) -> str:
        return self.item.key

    @property
    def run_tokens(self) -> list[RunToken]:
        return [RunToken(token, start, end, bool(asked)) for token, start, end, asked in self.tokens]

    @property
    def asked_places(self) -> list[int]:
        """The places in the run, from 0, of the tokens that people are asked for."""
        return [place for place, token in enumerate(self.run_tokens) if token.asked]

    def text_of(self, token: RunToken) -> str:
        return self.question.plain[token.start : token.end]


class TokenGuess(models.Model):
    """What a person took for the next token, and whether it was."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="token_guess", primary_key=True)
    place = models.PositiveSmallIntegerField("place in the run", help_text="In the run, from 0.")
    position = models.PositiveIntegerField("place in the passage", help_text="In the passage, from 0.")
    attempt = models.PositiveSmallIntegerField(
        "which guess of the token",
        default=1,
        help_text="Which guess of this token it is, from 1: more than 1 in Shannon's game alone.",
    )
    text = models.CharField(max_length=LONGEST, help_text="The guess, with its blanks.")
    token = models.PositiveIntegerField("id of the guessed token", help_text="Its id.")
    true_token = models.PositiveIntegerField("id of the true token", help_text="The id of the passage's own token.")
    right = models.BooleanField()

    class Meta:
        verbose_name_plural = "token guesses"
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="next_token_guess_not_empty"),
            models.CheckConstraint(condition=Q(attempt__gte=1), name="next_token_attempt_at_least_1"),
            models.CheckConstraint(
                condition=Q(right=True, token=F("true_token")) | (Q(right=False) & ~Q(token=F("true_token"))),
                name="next_token_right_by_id",
            ),
        ]

    def __str__(self) -> str:
        return self.text
