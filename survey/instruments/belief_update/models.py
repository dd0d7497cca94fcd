"""Pairs and beliefs: typed rows that belong to core items and responses. Beliefs are integer percentage points."""

from dataclasses import dataclass

from django.db import models
from django.db.models import F, Q

from survey.models import Item, ModelAnswer, Question, Response
from survey.models.quick import QuickRows


class Pair(QuickRows):
    """(ordered evidence, target question). Without evidence it is a re-asking control."""

    item = models.OneToOneField(Item, on_delete=models.PROTECT, related_name="pair", primary_key=True)
    target = models.ForeignKey(Question, verbose_name="target question", on_delete=models.PROTECT, related_name="+")
    evidence = models.ForeignKey(
        Question, verbose_name="evidence question", on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    outcome = models.BooleanField(null=True, blank=True, help_text="Whether the model answered the evidence correctly.")
    answer = models.ForeignKey(
        ModelAnswer,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="What a language model really answered to the evidence; empty where outcomes are hypothetical.",
    )
    # In items with evidence in steps, the second and the third evidence question in the item's own order.
    evidence_2 = models.ForeignKey(
        Question,
        verbose_name="second evidence question",
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
    )
    outcome_2 = models.BooleanField("second outcome", null=True, blank=True)
    answer_2 = models.ForeignKey(
        ModelAnswer, verbose_name="second answer", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    evidence_3 = models.ForeignKey(
        Question,
        verbose_name="third evidence question",
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
    )
    outcome_3 = models.BooleanField("third outcome", null=True, blank=True)
    answer_3 = models.ForeignKey(
        ModelAnswer, verbose_name="third answer", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
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
            models.CheckConstraint(
                condition=Q(evidence_2__isnull=True, outcome_2__isnull=True, answer_2__isnull=True)
                | Q(evidence_2__isnull=False, outcome_2__isnull=False, evidence__isnull=False)
                & ~Q(evidence_2=F("target"))
                & ~Q(evidence_2=F("evidence")),
                name="pair_second_evidence_is_whole",
            ),
            models.CheckConstraint(
                condition=Q(evidence_3__isnull=True, outcome_3__isnull=True, answer_3__isnull=True)
                | Q(evidence_3__isnull=False, outcome_3__isnull=False, evidence_2__isnull=False)
                & ~Q(evidence_3=F("target"))
                & ~Q(evidence_3=F("evidence"))
                & ~Q(evidence_3=F("evidence_2")),
                name="pair_third_evidence_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.item.key

    @property
    def steps(self) -> "list[EvidenceStep]":
        """Every evidence question with its outcome, in the item's own order; none in a control without evidence."""
        places = (
            (self.evidence_id, self.outcome, ""),
            (self.evidence_2_id, self.outcome_2, "_2"),
            (self.evidence_3_id, self.outcome_3, "_3"),
        )
        return [
            EvidenceStep(place, key, bool(outcome), self, suffix)
            for place, (key, outcome, suffix) in enumerate(places, 1)
            if key is not None
        ]


@dataclass(frozen=True)
class EvidenceStep:
    """One evidence question of an item. `place`: which of them it is in the item's own order, from 1."""

    place: int
    question_id: int
    correct: bool
    pair: Pair
    suffix: str

    @property
    def question(self) -> Question:
        question: Question = getattr(self.pair, f"evidence{self.suffix}")
        return question

    @property
    def answer(self) -> ModelAnswer | None:
        answer: ModelAnswer | None = getattr(self.pair, f"answer{self.suffix}")
        return answer


class Aid(models.Model):
    """What an aid says beside a pair's target: how many of the questions most like it one model answered right. Stored
    when the pair is planned; whether it is shown is decided by the conditions."""

    class Similarity(models.TextChoices):
        WORDS = "words", "by their words"
        EMBEDDINGS = "embeddings", "by embeddings of their texts"

    pair = models.OneToOneField(Pair, on_delete=models.CASCADE, related_name="aid", primary_key=True)
    asked = models.PositiveSmallIntegerField(
        "similar questions counted", help_text="How many similar questions it counts."
    )
    right = models.PositiveSmallIntegerField(
        "similar questions answered right", help_text="How many of them the model answered correctly."
    )
    language_model = models.CharField(max_length=120, help_text="Whose real answers are counted.")
    similarity = models.CharField(max_length=10, choices=Similarity.choices)
    questions = models.JSONField(
        "ids of the similar questions", help_text="The ids of these questions, the most similar first."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(asked__gte=1) & Q(right__lte=F("asked")), name="aid_right_of_asked"),
            models.CheckConstraint(condition=Q(similarity__in=["words", "embeddings"]), name="aid_similarity_known"),
        ]

    def __str__(self) -> str:
        return f"{self.right} of {self.asked}"


class QuestionVector(models.Model):
    """The embedding of a question's text, by which similar questions are found."""

    question = models.OneToOneField(
        Question, on_delete=models.CASCADE, related_name="similarity_vector", primary_key=True
    )
    model = models.CharField("model that made it", max_length=200, help_text="What made it.")
    vector = models.TextField(help_text="Little-endian half-precision numbers of unit norm, in base64.")

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(vector=""), name="question_vector_not_empty")]

    def __str__(self) -> str:
        return str(self.question)


class Belief(QuickRows):
    """One stated probability, in percentage points, and how it was given."""

    class Kind(models.TextChoices):
        PRIOR = "prior", "prior"
        STEP_1 = "step_1", "after the first of several evidence questions"
        STEP_2 = "step_2", "after the second of three evidence questions"
        POSTERIOR = "posterior", "posterior"

    class Entry(models.TextChoices):
        """How the value was entered. Without scripts it is not known."""

        UNKNOWN = "", "unknown"
        TYPED = "typed", "typed into the field"
        TRACK = "track", "on the track, by pointer"
        TRACK_KEYS = "track_keys", "on the track, by keyboard"
        BUTTON = "button", "kept by a button"
        PREFILLED = "prefilled", "left as it was filled in"

    class Direction(models.TextChoices):
        NONE = "", "not asked"
        LOWER = "lower", "lower"
        SAME = "same", "the same"
        HIGHER = "higher", "higher"

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="belief", primary_key=True)
    kind = models.CharField("prior or posterior", max_length=9, choices=Kind.choices)
    value = models.PositiveSmallIntegerField()
    direction = models.CharField(max_length=6, choices=Direction.choices, blank=True)
    entered_by = models.CharField("how it was entered", max_length=10, choices=Entry.choices, blank=True)
    first_value = models.PositiveSmallIntegerField(
        "first number set", null=True, blank=True, help_text="The first number that was set."
    )
    value_changes = models.PositiveIntegerField(
        "times that the number was set",
        null=True,
        blank=True,
        help_text="How often the number was set to another value, the first time included.",
    )
    variant = models.CharField(
        "form of the screen", max_length=200, blank=True, help_text="In which form the screen was shown."
    )
    place = models.PositiveSmallIntegerField(
        "evidence question before it",
        null=True,
        blank=True,
        help_text="Which of the item's evidence questions came right before, in its own order; empty with one.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(value__gte=0) & Q(value__lte=100), name="belief_between_0_and_100"),
            models.CheckConstraint(
                condition=Q(kind__in=["prior", "step_1", "step_2", "posterior"]), name="belief_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(direction="")
                | Q(direction__in=["lower", "same", "higher"], kind__in=["step_1", "step_2", "posterior"]),
                name="belief_direction_of_a_posterior",
            ),
            models.CheckConstraint(
                condition=Q(entered_by__in=["", "typed", "track", "track_keys", "button", "prefilled"]),
                name="belief_entry_known",
            ),
            models.CheckConstraint(
                condition=Q(first_value__isnull=True) | Q(first_value__lte=100), name="belief_first_value_at_most_100"
            ),
            models.CheckConstraint(
                condition=Q(place__isnull=True) | Q(place__gte=1, place__lte=3) & ~Q(kind="prior"),
                name="belief_place_of_an_evidence_question",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value} %"


class Explanation(models.Model):
    """What a person wrote about why the belief changed or stayed; empty if left empty."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="explanation", primary_key=True)
    text = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.text


class ReasonCode(models.Model):
    """What one coder said of one reason. `coder` is the name of the file that brought it."""

    explanation = models.ForeignKey(Explanation, on_delete=models.CASCADE, related_name="codes")
    coder = models.CharField("who read it", max_length=60)
    code = models.CharField("kind of reason", max_length=80)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["explanation", "coder"], name="one_code_a_coder_and_reason"),
            models.CheckConstraint(condition=~Q(coder="") & ~Q(code=""), name="reason_code_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.coder}: {self.code}"


class TargetAnswer(models.Model):
    """What a person answers to the target question themselves, judged as a language model's answer is."""

    response = models.OneToOneField(Response, on_delete=models.CASCADE, related_name="target_answer", primary_key=True)
    text = models.TextField(help_text="The letter of an option, or what was written.")
    correct = models.BooleanField("right")
    rules_version = models.CharField(
        "version of the rules", max_length=20, blank=True, help_text="Of the rules that judged it."
    )
    confidence = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="How sure the person was to be right, in percentage points."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="target_answer_not_empty"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__lte=100),
                name="target_answer_confidence_at_most_100",
            ),
        ]

    def __str__(self) -> str:
        return self.text
