"""Study and stage: what a researcher sets up, and one round of collection."""

from copy import copy
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from survey.study_file import DesignConfig, StageConfig, StudyConfig, read_stored
from survey.study_file.kept import checked_file, keep_file, kept_file

from .question import Bank

# The study file, as text and checked. A page leaves both in the database: `Study.config` knows the file by its hash.
FILE_FIELDS = ("stored_config", "source_text")
TEST_ENDING = "_test"  # Of the short name of a test copy. A study file's has no underscore.
UNIFORM_BY_CHOICE = "uniform_by_choice"  # In a stage's manifest: why it does not draw as the study file says.


class StudyRows(models.QuerySet["Study"]):
    def real(self) -> "StudyRows":
        """Without test copies: what lists, looks after the site and other studies' figures are about."""
        return self.filter(test_of__isnull=True)


class Study(models.Model):
    """A study, or the test copy of one.

    A test copy is a study of its own, with its own stages, places and people: so no query of capacity, training,
    estimates or pay has to tell test people from real ones. Its short name cannot be that of a study file.
    """

    slug = models.SlugField("short name", max_length=80, unique=True)
    title = models.CharField(max_length=200)
    bank = models.ForeignKey(Bank, on_delete=models.PROTECT, related_name="studies")
    instrument = models.CharField(max_length=60, help_text="Name in the registry of instruments.")
    seed = models.BigIntegerField("seed of chance", help_text="Every random draw of the study descends from it.")
    stored_config = models.JSONField(
        "checked study file", help_text="The study file, checked, with its defaults filled in."
    )
    source_text = models.TextField("study file", help_text="The study file as it was given.")
    source_sha256 = models.CharField("hash of the study file", max_length=64)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    locked_at = models.DateTimeField(
        "began at", null=True, blank=True, help_text="When its first main stage was opened."
    )
    locked_sha256 = models.CharField(
        "hash of the file at the beginning",
        max_length=64,
        blank=True,
        help_text="Of the study file in force at that time.",
    )
    archived_at = models.DateTimeField(
        "put away at", null=True, blank=True, help_text="Out of the lists, and no stage opens."
    )

    is_blind = models.BooleanField(
        "conditions hidden", default=False, help_text="Nobody sees conditions until an owner unblinds it."
    )
    unblinded_at = models.DateTimeField("conditions shown since", null=True, blank=True)

    test_of = models.OneToOneField(
        "self",
        verbose_name="test copy of",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="test_copy",
        help_text="The study that this is the test copy of; empty for a study.",
    )

    objects = StudyRows.as_manager()

    was_opened: bool  # Not a column: `enrolment.study_of` reads it with the row.

    class Meta:
        ordering = ["-created_at", "slug"]
        verbose_name_plural = "studies"
        permissions = [
            ("run_study", "Can open, pause, close and retry stages"),
            ("export_study", "Can export answers"),
            ("amend_study", "Can change a study's file"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(locked_at__isnull=True, locked_sha256="")
                | Q(locked_at__isnull=False) & ~Q(locked_sha256=""),
                name="study_locked_with_a_hash",
            ),
            # No study file can take such a name, and no copy another one.
            models.CheckConstraint(
                condition=Q(test_of__isnull=True) & ~Q(slug__endswith=TEST_ENDING)
                | Q(test_of__isnull=False, slug__endswith=TEST_ENDING),
                name="study_test_copy_by_its_name",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return reverse("frontend:welcome", args=[self.slug])

    @property
    def is_test(self) -> bool:
        return self.test_of_id is not None

    @cached_property
    def config(self) -> StudyConfig:
        """The study file in force, checked. If it was left in the database, the one that this process keeps."""
        if "stored_config" in self.__dict__:
            return checked_file(self.pk, self.source_sha256, self.stored_config)
        kept_config = kept_file(self.pk, self.source_sha256)
        return kept_config or keep_file(self.pk, self.source_sha256, read_stored(self.stored_config))

    def config_in(self, language: str) -> StudyConfig:
        """The same config with every text in that language, as people read it before a level is drawn for them."""
        return self.config.in_language(language).under({})

    def as_of(self, sha256: str) -> StudyConfig:
        """The study file with that hash: the one in force, or one that an amendment has replaced."""
        if not sha256 or sha256 == self.source_sha256:
            return self.config
        if kept_config := kept_file(self.pk, sha256):
            return kept_config
        replaced = self.amendments.filter(old_sha256=sha256).order_by("pk").last()
        return keep_file(self.pk, sha256, read_stored(replaced.old_config)) if replaced else self.config

    def under(self, sha256: str) -> "Study":
        """This study with the file of that hash instead of its own; not to be saved."""
        older = copy(self)
        older.stored_config = self.as_of(sha256).model_dump(mode="json")
        older.__dict__.pop("config", None)
        return older

    def main_stages(self) -> "models.QuerySet[Stage]":
        """The stages whose answers count, in order: without the pilots, which come before them."""
        return self.stages.filter(index__gt=self.config.pilots).order_by("index")

    def completion_code(self, outcome: str) -> str:
        return self.codes.get(outcome=outcome).code


class CompletionCode(models.Model):
    """One random code for each outcome. A browser only ever receives the code of its own outcome."""

    class Outcome(models.TextChoices):
        COMPLETED = "completed", "completed"
        NO_CONSENT = "no_consent", "no consent"
        FAILED_CHECKS = "failed_checks", "failed checks"
        STUDY_FULL = "study_full", "study full"
        SCREENED_OUT = "screened_out", "screened out"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="codes")
    outcome = models.CharField(max_length=20, choices=Outcome.choices)
    code = models.CharField(max_length=40)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "outcome"], name="completion_code_one_an_outcome"),
            models.UniqueConstraint(fields=["study", "code"], name="completion_code_unique_in_study"),
        ]

    def __str__(self) -> str:
        return f"{self.study} {self.outcome}"


class Stage(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", "draft"
        PLANNED = "planned", "planned"
        OPEN = "open", "open"
        PAUSED = "paused", "paused"
        CLOSING = "closing", "closing"
        FROZEN = "frozen", "frozen"

    # Which states may follow each state. `closing` never goes back: people have already read that the stage is over.
    MOVES = {
        State.DRAFT: {State.PLANNED},
        State.PLANNED: {State.OPEN},
        State.OPEN: {State.PAUSED, State.CLOSING},
        State.PAUSED: {State.OPEN, State.CLOSING},
        State.CLOSING: {State.FROZEN},
        State.FROZEN: set(),
    }

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="stages")
    index = models.PositiveSmallIntegerField("number of the stage", help_text="1 for the first stage.")
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    seed = models.BigIntegerField(
        "seed of chance", help_text="Derived from the study's seed; every draw of the stage descends from it."
    )
    arrivals = models.PositiveIntegerField(
        "people who began", default=0, help_text="Sittings begun, for the blocks of the randomisation."
    )
    plan_sha256 = models.CharField("hash of the plan", max_length=64, blank=True)
    snapshot_sha256 = models.CharField("hash of the frozen answers", max_length=64, blank=True)
    manifest = models.JSONField("record of the frozen stage", default=dict, blank=True)
    planned_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True)
    closing_at = models.DateTimeField("began to close at", null=True, blank=True)
    frozen_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(
        "all done at", null=True, blank=True, help_text="When all that follows from closing was done."
    )
    upkeep_error = models.TextField(
        "last error of the upkeep",
        blank=True,
        help_text="Why silent people could not expire, or their slots not be dealt again, the last time.",
    )

    class Meta:
        ordering = ["study", "index"]
        constraints = [
            models.UniqueConstraint(fields=["study", "index"], name="stage_index_unique_in_study"),
            models.CheckConstraint(condition=Q(index__gte=1), name="stage_index_at_least_1"),
            models.CheckConstraint(
                condition=Q(state__in=["draft", "planned", "open", "paused", "closing", "frozen"]),
                name="stage_state_known",
            ),
            models.CheckConstraint(condition=Q(state="draft") | ~Q(plan_sha256=""), name="stage_past_draft_has_a_plan"),
            models.CheckConstraint(
                condition=~Q(state="frozen") | ~Q(snapshot_sha256=""), name="stage_frozen_has_a_snapshot"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study.slug} stage {self.index}"

    @property
    def config(self) -> StageConfig:
        """The study file's part for this stage, unless a person had to replace the design with the uniform one."""
        planned = self.study.config.stages[self.index - 1]
        if self.manifest.get(UNIFORM_BY_CHOICE):
            # A test set's several answers per item belong to its design.
            alone = {"responses_per_item": 1} if planned.design.kind == "test_set" else {}
            return planned.model_copy(update={"design": DesignConfig(), **alone})
        return planned

    @property
    def is_last(self) -> bool:
        return self.index >= len(self.study.config.stages)

    def may_become(self, state: "Stage.State | str") -> bool:
        return state in self.MOVES[Stage.State(self.state)]

    def following(self) -> "Stage | None":
        return self.study.stages.filter(index=self.index + 1).first()

    def before(self) -> "Stage | None":
        """The stage that is open before this one; it may be a pilot."""
        return self.study.stages.filter(index=self.index - 1).first()

    def preceding(self) -> "Stage | None":
        """The earlier stage whose answers this one can use; None for a pilot and right after pilots."""
        return None if self.is_pilot else self.study.main_stages().filter(index=self.index - 1).first()

    @property
    def wave(self) -> int:
        """Its sittings are its people's in this wave."""
        return self.study.config.stages[self.index - 1].wave

    @property
    def is_pilot(self) -> bool:
        return self.index <= self.study.config.pilots

    @property
    def plans_on_opening(self) -> bool:
        """Whether no answers come before it. Such a stage is planned when it is opened, so that the file can be
        corrected until then. The others are planned as soon as the stage before is frozen."""
        return self.index <= self.study.config.pilots + 1

    def record(self, **facts: Any) -> None:
        """Add facts to the manifest (the caller saves)."""
        self.manifest = {**self.manifest, **facts}
