"""Language models, what they answered to a bank's questions, and the jobs that ask them."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from survey.exceptions import HunchError
from survey.letters import problem_of

from .leased import Leased
from .question import Bank, Question

LONGEST_NAME = 120  # characters


class LanguageModel(models.Model):
    """One language model with one way of asking it, under the name that tables show."""

    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def named(cls, name: str) -> "LanguageModel":
        """The model of this name, made where there is none.

        Raises:
            HunchError: the name holds what cannot be seen, or is too long.
        """
        model = cls.objects.filter(name=name).first()
        if model is None:
            wrong = problem_of(name) if name.strip() else "is empty"
            if len(name) > LONGEST_NAME:
                wrong = f"{name[:60]!r} has {len(name)} characters; at most {LONGEST_NAME}"
            if wrong:
                raise HunchError(f"name of a language model: {wrong}")
            model, _created = cls.objects.get_or_create(name=name)
        return model


class ModelAnswerQuerySet(models.QuerySet["ModelAnswer"]):
    def judged(self) -> "ModelAnswerQuerySet":
        """Those of which it is known whether they are right: one reply, or several that are all right or all wrong."""
        return self.filter(correct__isnull=False)

    def graded(self) -> "ModelAnswerQuerySet":
        """Those of which it is known how right they are: the judged ones, and those that are right in part."""
        return self.filter(Q(correct__isnull=False) | Q(share_correct__isnull=False))

    def by_question(self) -> dict[int, float]:
        """How right each graded answer is, from 0 to 1, by the question's primary key."""
        rows = self.graded().order_by().values_list("question_id", "correct", "share_correct")
        return {question: float(bool(correct)) if share is None else share for question, correct, share in rows}


class ModelAnswer(models.Model):
    """What a language model answered to a question: the reply as it came, what it states, and whether that is right."""

    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="answers")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="model_answers")
    correct = models.BooleanField(
        "right", null=True, blank=True, help_text="Unknown where nobody judged the reply, or where it is right in part."
    )
    share_correct = models.FloatField(
        "share of right replies",
        null=True,
        blank=True,
        help_text="Above 0 and below 1: the share of right replies, or the grade of one.",
    )
    response = models.TextField(
        "reply",
        blank=True,
        help_text="Exactly as it came, the first of several. Empty where only its verdict was imported.",
    )
    replies = models.JSONField(
        "all replies", default=list, blank=True, help_text="All replies where the question was asked again."
    )
    stated = models.TextField(
        "answer that is stated", blank=True, help_text="The answer that the reply states; empty where it states none."
    )
    reason = models.TextField(blank=True, help_text="Why no answer could be read off the reply.")
    unreadable = models.PositiveSmallIntegerField(
        "replies without an answer",
        default=0,
        help_text="How many of the replies state no answer, or two. They count as not right.",
    )
    rules_version = models.CharField(
        "version of the rules",
        max_length=20,
        blank=True,
        help_text="Of the rules that judged it; empty where its verdict was imported.",
    )
    request_sha256 = models.CharField(
        "hash of the request",
        max_length=64,
        blank=True,
        help_text="Of question, model, prompt and parameters; empty for imported answers.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ModelAnswerQuerySet.as_manager()

    class Meta:
        ordering = ["language_model", "question"]
        constraints = [
            models.UniqueConstraint(fields=["language_model", "question"], name="model_answer_once_a_question"),
            models.CheckConstraint(
                condition=Q(share_correct__isnull=True)
                | Q(share_correct__gt=0, share_correct__lt=1, correct__isnull=True),
                name="model_answer_share_between_0_and_1",
            ),
        ]
        indexes = [
            models.Index(fields=["request_sha256"], condition=~Q(request_sha256=""), name="model_answer_by_request"),
        ]

    def __str__(self) -> str:
        return f"{self.language_model}: {self.question}"

    @property
    def fraction(self) -> float | None:
        """How right it is, from 0 to 1; None where nobody judged it."""
        if self.share_correct is not None:
            return self.share_correct
        return None if self.correct is None else float(self.correct)

    def grade(self, fraction: float | None) -> None:
        """Set how right it is, from 0 to 1; the row is not saved."""
        whole = fraction is None or fraction in (0, 1)
        self.share_correct = None if whole else fraction
        self.correct = bool(fraction) if whole and fraction is not None else None


class AnswerCollection(Leased):
    """A job that asks a language model a bank's questions."""

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        STOPPED = "stopped", "stopped"
        FAILED = "failed", "failed"

    language_model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="collections")
    bank = models.ForeignKey(Bank, on_delete=models.PROTECT, related_name="collections")
    model = models.CharField(
        "model's name at the server",
        max_length=200,
        help_text="The server's name for it, or local:FOLDER for one on disk.",
    )
    max_tokens = models.PositiveIntegerField("most tokens of a reply", default=5)
    replies = models.PositiveSmallIntegerField(
        "replies to each question", default=1, help_text="How often each question is asked."
    )
    temperature = models.FloatField(default=0)
    template = models.TextField(
        "wording of the request", blank=True, help_text="The text of a template (see Help); empty: ours."
    )
    limit = models.PositiveIntegerField(
        "most questions", null=True, blank=True, help_text="So many questions only, drawn at random."
    )
    seed = models.BigIntegerField("seed of chance", default=0)
    concurrency = models.PositiveSmallIntegerField("requests at once", default=8)
    price_in = models.DecimalField(
        "price of a million tokens sent",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="For a million tokens that are sent.",
    )
    price_out = models.DecimalField(
        "price of a million tokens received",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text="For a million tokens that come back.",
    )
    cost_cap = models.DecimalField("most that it may cost", max_digits=12, decimal_places=4, null=True, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    stop_requested = models.BooleanField("asked to stop", default=False)
    wanted = models.PositiveIntegerField("questions to ask", default=0, help_text="Questions to ask.")
    answered = models.PositiveIntegerField(
        "questions with an answer", default=0, help_text="Of these, with an answer by now."
    )
    refused = models.PositiveIntegerField(
        "questions refused", default=0, help_text="Questions that the server refused one by one."
    )
    tokens_in = models.PositiveBigIntegerField("tokens sent", default=0)
    tokens_out = models.PositiveBigIntegerField("tokens received", default=0)
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        permissions = [("collect_answers", "Can ask language models, which may cost money")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "stopped", "failed"]),
                name="answer_collection_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False),
                name="answer_collection_running_has_a_lease",
            ),
            models.CheckConstraint(condition=Q(concurrency__gte=1), name="answer_collection_concurrency_at_least_1"),
            models.CheckConstraint(condition=Q(max_tokens__gte=1), name="answer_collection_tokens_at_least_1"),
            models.CheckConstraint(condition=Q(replies__gte=1), name="answer_collection_replies_at_least_1"),
            models.CheckConstraint(
                condition=Q(cost_cap__isnull=True) | Q(price_in__isnull=False, price_out__isnull=False),
                name="answer_collection_cap_needs_prices",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.language_model} on {self.bank}"

    @property
    def cost(self) -> float | None:
        """In the prices' currency, of the tokens so far; None without prices."""
        if self.price_in is None or self.price_out is None:
            return None
        return float(self.price_in * self.tokens_in + self.price_out * self.tokens_out) / 1e6
