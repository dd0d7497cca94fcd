"""Predictor runs, the snapshot they learn from, and the job steps that lead from one stage to the next."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from .leased import Leased
from .study import Stage


class SnapshotAnswer(models.Model):
    """One answer at the time of freezing, as a keyed hash. After a withdrawal the row stays and marks its place."""

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="snapshot")
    number = models.PositiveIntegerField()
    assignment = models.ForeignKey("survey.Assignment", on_delete=models.SET_NULL, null=True, related_name="snapshots")
    digest = models.CharField(max_length=64)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["stage", "number"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "number"], name="snapshot_number_unique_in_stage"),
            models.UniqueConstraint(fields=["stage", "assignment"], name="snapshot_assignment_once_in_stage"),
        ]

    def __str__(self) -> str:
        return f"{self.stage} answer {self.number}"


class PredictorRun(models.Model):
    """One training of a predictor on the answers up to and including a stage."""

    class Role(models.TextChoices):
        MAIN = "main", "main"
        COMPARED = "compared", "compared"
        BASELINE = "baseline", "baseline"

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="predictor_runs")
    name = models.CharField(max_length=60, help_text="Name in the registry of predictors.")
    role = models.CharField(
        max_length=10, choices=Role.choices, default=Role.MAIN, help_text="Only the main one plans a stage."
    )
    params = models.JSONField(default=dict)
    seed = models.BigIntegerField()
    held_out_through = models.PositiveSmallIntegerField(
        default=0, help_text="The pairs that the plans of the stages up to this one hold out were kept from it."
    )
    input_sha256 = models.CharField(max_length=64)
    example_count = models.PositiveIntegerField()
    members = models.JSONField(default=dict, help_text="Member number to its files: name to sha256.")
    seconds = models.FloatField(default=0, help_text="Of training, all members together.")
    held_out_sha256 = models.CharField(
        max_length=64, blank=True, help_text="File of its scores of held-out items, if somebody asked for them."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["stage", "created_at"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "name", "input_sha256"], name="predictor_run_once_an_input"),
            models.CheckConstraint(
                condition=Q(role__in=["main", "compared", "baseline"]), name="predictor_run_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} after {self.stage}"

    @property
    def is_ready(self) -> bool:
        return self.ready_at is not None

    def stop(self, why: str) -> int:
        """End the steps of its training that have not ended, or have failed; return how many. A worker that trains a
        member notices at its next heartbeat. Call it with the lock of its stage, so that the training does not end
        meanwhile."""
        return self.job_steps.exclude(state=JobStep.State.DONE).update(
            state=JobStep.State.DONE,
            lease_until=None,
            finished_at=timezone.now(),
            progress_text="stopped",
            result={"stopped": why},
        )


class Evaluation(models.Model):
    """How well a predictor did on a stage's answers that it had not seen.

    `metrics` has the instrument's figures under three names: `weighted` (the sampled answers, with the design's
    weights), `naive` (the same without weights) and `holdout` (the uniform holdout, where the stage has one). Under
    `difference`, by the same names, are the figures minus those of the main predictor.
    """

    predictor_run = models.ForeignKey(PredictorRun, on_delete=models.PROTECT, related_name="evaluations")
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="evaluations")
    metrics = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["stage", "created_at"]
        constraints = [
            models.UniqueConstraint(fields=["predictor_run", "stage"], name="evaluation_once_a_run_and_stage"),
        ]

    def __str__(self) -> str:
        return f"{self.predictor_run} on {self.stage}"


# A step whose worker died is tried again this many times. The limit stops a step that kills its worker every time.
TRIES = 3


class JobStep(Leased):
    """One step of the work after a stage."""

    class Kind(models.TextChoices):
        FREEZE = "freeze", "freeze answers"
        EVALUATE = "evaluate", "evaluate predictor"
        TRAIN = "train", "train predictor"
        SCORE = "score", "score candidates"
        PLAN = "plan", "plan next stage"

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="job_steps")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    predictor_run = models.ForeignKey(
        PredictorRun,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="job_steps",
        help_text="What a training step trains.",
    )
    member = models.PositiveSmallIntegerField(default=0)
    input_sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    # Two columns of `Leased`, repeated with other help texts for the admin pages.
    attempt = models.PositiveIntegerField(default=0, help_text="Claims so far; only the newest may write.")
    sent_at = models.DateTimeField(null=True, blank=True, help_text="When a task was last sent for it.")
    tries_left = models.PositiveSmallIntegerField(default=TRIES, help_text="Claims left before a person must look.")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    progress_text = models.CharField(max_length=200, blank=True)
    result = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["stage", "id"]
        constraints = [
            models.UniqueConstraint(fields=["stage", "kind", "member", "input_sha256"], name="job_step_once_an_input"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed"]), name="job_step_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False), name="job_step_running_has_a_lease"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} ({self.stage})"

    @property
    def title(self) -> str:
        """What it does; for a training, what it trains and which member."""
        if self.predictor_run is None:
            return self.get_kind_display()
        return f"train {self.predictor_run.name}, member {self.member + 1}"

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class ScoringPart(Leased):
    """Some of the candidates that a scoring step lets the predictor score. Any process that is free takes one.

    Parts are there as long as their step needs them. Their bounds do not depend on who scores them.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        DONE = "done", "done"

    step = models.ForeignKey(JobStep, on_delete=models.CASCADE, related_name="parts")
    predictor_run = models.ForeignKey(PredictorRun, on_delete=models.PROTECT, related_name="+")
    member = models.PositiveSmallIntegerField(
        null=True, help_text="The one member that scores; empty: the mean of all."
    )
    questions_sha256 = models.CharField(max_length=64, help_text="The questions that the rows name by their places.")
    rows = models.BinaryField(help_text="The candidates, as a .npy file.")
    count = models.PositiveIntegerField()
    input_sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    helpers_left = models.PositiveSmallIntegerField(
        default=TRIES, help_text="Claims left for others than the worker that has the step."
    )
    error = models.TextField(blank=True, help_text="Why the last worker gave it back.")
    scores = models.BinaryField(null=True, help_text="Their scores, float32, as a .npy file.")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["step", "input_sha256"], name="scoring_part_once_an_input"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done"]), name="scoring_part_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False), name="scoring_part_running_has_a_lease"
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | Q(scores__isnull=False), name="scoring_part_done_has_scores"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} candidates of: {self.step}"
