"""Respondents and what they do: a sitting walks through its blocks, its assignments and their numbered responses."""

import secrets
import uuid
from collections.abc import Mapping

from django.core import signing
from django.db import models
from django.db.models import Q

from survey.study_file import BlockConfig, StudyConfig

from .plan import Booklet, Slot
from .quick import QuickRows
from .study import Stage, Study

SITTING_TOKEN_SALT = "hunch.sitting"  # noqa: S105 - a salt that says what is signed, not a secret
TOKEN_BY_IDS_SALT = "hunch.sitting.by_ids"  # noqa: S105


def new_pseudonym() -> str:
    return "r-" + secrets.token_hex(8)


class Respondent(QuickRows):
    """A person in a study, known only by a pseudonym."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="respondents")
    pseudonym = models.CharField(max_length=24, unique=True, default=new_pseudonym, editable=False)
    is_simulated = models.BooleanField("simulated person", default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    came_before = models.OneToOneField(
        "self",
        verbose_name="earlier visit",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="came_again",
        help_text="The same person's earlier visit, which found no free place.",
    )

    class Meta:
        ordering = ["study", "id"]

    def __str__(self) -> str:
        return self.pseudonym


class PanelIdentity(models.Model):
    """The panel's ids of a person: encrypted, kept apart from the answers, and found by a hash keyed for each study."""

    respondent = models.OneToOneField(Respondent, on_delete=models.CASCADE, related_name="panel_identity")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="+")
    panel = models.CharField(max_length=40)
    person_hash = models.CharField("keyed hash of the person", max_length=64)
    submission_hash = models.CharField("keyed hash of the submission", max_length=64, blank=True)
    browser_hash = models.CharField(
        "hash of the browser's secret",
        max_length=64,
        blank=True,
        help_text="Of a secret of the browser in which the person consented.",
    )
    ids_encrypted = models.BinaryField(
        "ids at the panel, encrypted", help_text="Person, study and submission ids, encrypted with the identity key."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "panel identities"
        permissions = [("see_panel_identity", "Can see panel identities")]
        constraints = [
            models.UniqueConstraint(fields=["study", "person_hash"], name="panel_identity_one_a_person_and_study"),
        ]

    def __str__(self) -> str:
        return f"panel identity of {self.respondent}"


class WaveIdentity(models.Model):
    """The panel's ids with which a person came back for a later wave. Those of wave 1 are the panel identity's."""

    identity = models.ForeignKey(
        PanelIdentity, verbose_name="first identity", on_delete=models.CASCADE, related_name="of_waves"
    )
    wave = models.PositiveSmallIntegerField()
    submission_hash = models.CharField("keyed hash of the submission", max_length=64, blank=True)
    browser_hash = models.CharField(
        "hash of the browser's secret",
        max_length=64,
        blank=True,
        help_text="Of a secret of the browser in which the person consented.",
    )
    ids_encrypted = models.BinaryField(
        "ids at the panel, encrypted", help_text="Person, study and submission ids, encrypted with the identity key."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["identity_id", "wave"]
        verbose_name_plural = "panel identities of later waves"
        constraints = [
            models.UniqueConstraint(fields=["identity", "wave"], name="wave_identity_one_a_person_and_wave"),
            models.CheckConstraint(condition=Q(wave__gte=2), name="wave_identity_of_a_later_wave"),
        ]

    def __str__(self) -> str:
        return f"{self.identity} in wave {self.wave}"


class Sitting(QuickRows):
    """One pass of a respondent through a stage.

    `step` counts the accepted POSTs, and one more when an item counts unfinished. A form carries the step it was shown
    for, so that a POST that is repeated or too late is recognised.
    """

    class State(models.TextChoices):
        LIVE = "live", "live"
        COMPLETE = "complete", "complete"
        EXPIRED = "expired", "expired"
        FAILED_CHECKS = "failed_checks", "failed checks"
        TURNED_AWAY = "turned_away", "turned away (stage full)"
        SCREENED_OUT = "screened_out", "screened out"

    public_id = models.UUIDField("random id", default=uuid.uuid4, unique=True, editable=False)
    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="sittings")
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="sittings")
    wave = models.PositiveSmallIntegerField(default=1)
    booklet = models.OneToOneField(Booklet, on_delete=models.PROTECT, null=True, blank=True, related_name="sitting")
    state = models.CharField(max_length=14, choices=State.choices, default=State.LIVE)
    language = models.CharField(max_length=10, default="en")
    step = models.PositiveIntegerField("page", default=0)
    block = models.PositiveSmallIntegerField(
        "part of the study", default=0, help_text="Index in the study file's blocks."
    )
    started_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(help_text="Time of the last accepted POST.")
    expired_at = models.DateTimeField(
        "ran out of time at", null=True, blank=True, help_text="When it last expired, also after a return."
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True, help_text="When its person took all of it back.")
    study_sha256 = models.CharField(
        "hash of the study file", max_length=64, blank=True, help_text="Of the study file in force when it began."
    )

    # Not stored. Whether `begin_sitting` has just made this row.
    is_new = False
    # Not stored. Whether the person here has only named the ids, which others may know. They may go on, but nothing is
    # done at their word that cannot be taken back.
    is_by_ids_alone = False

    class Meta:
        ordering = ["stage_id", "started_at"]  # By keys: by "stage", its table and the study's would be joined.
        constraints = [
            models.UniqueConstraint(fields=["respondent", "wave"], name="sitting_one_a_person_study_and_wave"),
            models.CheckConstraint(
                condition=Q(state__in=["live", "complete", "expired", "failed_checks", "turned_away", "screened_out"]),
                name="sitting_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="complete") | Q(ended_at__isnull=False), name="sitting_complete_has_an_end"
            ),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True) | ~Q(state="live"), name="sitting_withdrawn_is_not_live"
            ),
        ]
        indexes = [
            models.Index(fields=["last_seen_at"], condition=Q(state="live"), name="sitting_live_by_last_seen"),
            # Who has begun and has no items yet holds a place.
            models.Index(
                fields=["stage"], condition=Q(state="live", booklet__isnull=True), name="sitting_waiting_in_stage"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.respondent} in {self.stage}"

    @property
    def token(self) -> str:
        """What the browser or the API client holds. It is signed. A returning person gets the same one again; anyone
        who is here by the ids alone gets another one, which says so."""
        salt = TOKEN_BY_IDS_SALT if self.is_by_ids_alone else SITTING_TOKEN_SALT
        return signing.Signer(salt=salt).sign(self.public_id.hex)

    @staticmethod
    def public_id_of(token: str) -> uuid.UUID | None:
        """The id inside a token; None if the token is forged or from elsewhere."""
        for salt in (SITTING_TOKEN_SALT, TOKEN_BY_IDS_SALT):
            try:
                return uuid.UUID(signing.Signer(salt=salt).unsign(token))
            except (signing.BadSignature, ValueError):
                continue
        return None

    @staticmethod
    def was_given_by_ids(token: str) -> bool:
        """Whether a valid token was given to somebody who was here by the ids alone."""
        try:
            signing.Signer(salt=TOKEN_BY_IDS_SALT).unsign(token)
        except signing.BadSignature:
            return False
        return True

    @property
    def is_over(self) -> bool:
        """Ended for good. An expired sitting is not over: its person may come back, unless they have withdrawn."""
        return self.withdrawn_at is not None or self.state not in (self.State.LIVE, self.State.EXPIRED)

    @property
    def found_no_place(self) -> bool:
        """Whether its person agreed and then found all places taken, or those of a quota's cell: they were asked no
        item, so they may come again. Not whom a quota does not look for."""
        return (
            self.state == self.State.TURNED_AWAY
            and self.booklet_id is None
            and self.withdrawn_at is None
            and not self.quota_places.filter(state="outside").exists()
        )

    @property
    def config(self) -> StudyConfig:
        """The study file that the sitting began with, whatever was amended since."""
        return self.stage.study.as_of(self.study_sha256)

    @property
    def shown_config(self) -> StudyConfig:
        """The same config in the language of the sitting's pages, with the answerer named as its levels say."""
        config = self.config.in_language(self.language)
        return config if config.texts.answerer is None else config.under(self.levels())

    @property
    def current_block(self) -> BlockConfig:
        return self.shown_config.blocks[self.block]

    def text_of(self, block: BlockConfig) -> str:
        """A block's text as this sitting reads it, under its levels."""
        return self.shown_config.block_text(block, self.levels() if self.config.conditions else {})

    # Its levels, where they were read together with one of its items: they are drawn once and stay.
    known_levels: Mapping[str, str] | None = None

    def levels(self) -> dict[str, str]:
        """Factor to level, as drawn for this sitting."""
        if self.known_levels is not None:
            return dict(self.known_levels)
        return {condition.factor: condition.level for condition in self.conditions.all()}


class ConditionLevel(models.Model):
    """The level of a factor that a sitting was given, with its chance and seed."""

    sitting = models.ForeignKey(Sitting, on_delete=models.CASCADE, related_name="conditions")
    factor = models.CharField("condition", max_length=40)
    level = models.CharField(max_length=60)
    probability = models.FloatField()
    seed = models.BigIntegerField("seed of chance")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sitting", "factor"], name="condition_one_level_a_factor"),
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="condition_probability_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.factor}={self.level}"


class ChosenLevels(models.Model):
    """Levels that the person who walks through a test copy has chosen. They take the place of a draw."""

    sitting = models.OneToOneField(Sitting, on_delete=models.CASCADE, related_name="chosen_levels")
    levels = models.JSONField("level of each condition", default=dict, help_text="Factor to level.")

    class Meta:
        verbose_name_plural = "chosen levels"

    def __str__(self) -> str:
        return ", ".join(f"{factor}={level}" for factor, level in self.levels.items()) or "none"


class AssignmentCondition(models.Model):
    """The level of a factor that one item of a sitting was given, with its chance and seed."""

    assignment = models.ForeignKey("Assignment", on_delete=models.CASCADE, related_name="conditions")
    factor = models.CharField("condition", max_length=40)
    level = models.CharField(max_length=60)
    probability = models.FloatField()
    seed = models.BigIntegerField("seed of chance")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["assignment", "factor"], name="item_condition_one_level_a_factor"),
            models.CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="item_condition_probability_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.factor}={self.level}"


class Consent(QuickRows):
    """What was agreed to, in which words, and when, so that consent can be proved."""

    sitting = models.OneToOneField(Sitting, on_delete=models.PROTECT, related_name="consent")
    version = models.CharField(max_length=40)
    language = models.CharField(max_length=10)
    text_sha256 = models.CharField("hash of the text", max_length=64)
    given_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"consent of {self.sitting}"


class CheckAttempt(models.Model):
    """One attempt at the comprehension checks."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="check_attempts")
    attempt = models.PositiveSmallIntegerField("number of the try")
    answers = models.JSONField(help_text="Check id to the chosen option's index.")
    shown = models.JSONField(
        "options in the order shown",
        default=dict,
        help_text="Check id to the indices of its options in the order shown.",
    )
    passed = models.BooleanField()
    at = models.DateTimeField("time")

    class Meta:
        ordering = ["sitting_id", "attempt"]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "attempt"], name="check_attempt_once"),
            models.CheckConstraint(condition=Q(attempt__in=[1, 2]), name="check_attempts_at_most_two"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.sitting}"


class FormAnswer(models.Model):
    """The answers to one questionnaire block."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="form_answers")
    block = models.CharField("name of the form", max_length=60, help_text="The block's name in the study file.")
    version = models.CharField("version of the form", max_length=40, default="1", help_text="Of the block's questions.")
    answers = models.JSONField()
    at = models.DateTimeField("time")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sitting", "block"], name="form_answer_once_a_block")]

    def __str__(self) -> str:
        return f"{self.block} of {self.sitting}"


class Assignment(QuickRows):
    """A slot given to a sitting. `live` and `counted` hold the slot; the others do not.

    `declined` is what a person left out who was free to stop: it is no gap in what they gave.
    """

    class State(models.TextChoices):
        LIVE = "live", "live"
        COUNTED = "counted", "complete in time"
        RELEASED = "released", "released unanswered"
        DECLINED = "declined", "left out by stopping"
        LATE = "late", "late"
        WITHDRAWN = "withdrawn", "taken back by the person"

    HOLDING = (State.LIVE, State.COUNTED)
    OWED = (State.RELEASED, State.LATE, State.WITHDRAWN)
    GIVEN_BACK = (*OWED, State.DECLINED)

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="assignments")
    slot = models.ForeignKey(
        Slot, verbose_name="place in the plan", on_delete=models.PROTECT, related_name="assignments"
    )
    position = models.PositiveSmallIntegerField(
        "place in the sitting", help_text="1 for the first item of the sitting."
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.LIVE)
    assigned_at = models.DateTimeField("shown at")
    completed_at = models.DateTimeField(null=True, blank=True, help_text="Set for late ones too.")

    class Meta:
        ordering = ["sitting_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["sitting", "position"], name="assignment_position_unique_in_sitting"),
            models.UniqueConstraint(fields=["sitting", "slot"], name="assignment_slot_once_a_sitting"),
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(state__in=["live", "counted"]),
                name="assignment_one_live_or_counted_a_slot",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["live", "counted", "released", "declined", "late", "withdrawn"]),
                name="assignment_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state="counted") | Q(completed_at__isnull=False), name="assignment_counted_is_complete"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["live", "released", "declined", "withdrawn"]) | Q(completed_at__isnull=True),
                name="assignment_open_is_incomplete",
            ),
        ]
        indexes = [
            models.Index(
                fields=["slot"],
                condition=Q(state__in=["released", "late", "withdrawn", "declined"]),
                name="assignment_given_back",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slot} for {self.sitting}"

    @property
    def is_complete(self) -> bool:
        return self.completed_at is not None

    # The levels drawn for this item, where they were read together with it.
    known_levels: Mapping[str, str] | None = None

    def levels(self) -> dict[str, str]:
        """Factor to level: those of its sitting and those drawn for this item."""
        own = self.known_levels
        if own is None:
            own = {condition.factor: condition.level for condition in self.conditions.all()}
        return {**self.sitting.levels(), **own}

    def hand_responses(self, responses: "list[Response]") -> None:
        """From now on `responses.all()` gives this list. The caller adds to it what it stores."""
        known = self.responses.all()
        known._result_cache = responses  # As `prefetch_related` does.
        self._prefetched_objects_cache = {**getattr(self, "_prefetched_objects_cache", {}), "responses": known}


class Response(QuickRows):
    """One stored reaction. Its content is in the instrument's typed table, one row for each response."""

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="responses")
    number = models.PositiveSmallIntegerField("number in the assignment", help_text="1, 2, ... inside the assignment.")
    screen = models.CharField(max_length=40)
    screen_sha256 = models.CharField("hash of the screen", max_length=64, help_text="Of what the screen said.")
    answered_at = models.DateTimeField()
    server_ms = models.PositiveBigIntegerField(
        "milliseconds by the server's clock", help_text="Since the sitting's previous accepted POST."
    )
    client = models.JSONField(
        "times measured by the browser", default=dict, blank=True, help_text="What the browser measured, as it sent it."
    )

    class Meta:
        ordering = ["assignment_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["assignment", "number"], name="response_number_unique_in_assignment"),
            models.CheckConstraint(condition=Q(number__gte=1), name="response_number_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.screen} of {self.assignment}"


class Score(models.Model):
    """Points the server computed after a response, with the rule that did."""

    response = models.OneToOneField(Response, on_delete=models.PROTECT, related_name="score")
    value = models.DecimalField(max_digits=10, decimal_places=4)
    rule = models.CharField("rule that it is by", max_length=60)
    version = models.CharField(max_length=20)

    def __str__(self) -> str:
        return f"{self.value} by {self.rule} {self.version}"
