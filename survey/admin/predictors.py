"""Predictor runs, evaluations, job steps and snapshots: workers write them, and this module shows them."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import ReadOnlyAdmin, pretty_json, shortened
from survey.contracts.instruments import Metric
from survey.figures.words import number
from survey.live.stage_sections import leading
from survey.models import Evaluation, JobStep, PredictorRun, SnapshotAnswer
from survey.services.stages.leaderboard import LEVELS, all_answers, known_metrics, learning_of

from .filters import deferred_study, stage_filter, study_filter


def metric_column(metric: Metric) -> Callable[[Evaluation], str]:
    """A column with this metric over all answers; a dash where the study's instrument does not have it."""

    @admin.display(description=metric.head)
    def column(evaluation: Evaluation) -> str:
        learning = learning_of(evaluation.stage.study)
        value = None if learning is None else leading(evaluation.metrics, metric.name, all_answers(learning))
        return number(value, 3)

    column.__name__ = metric.name
    return column


@admin.register(PredictorRun)
class PredictorRunAdmin(ReadOnlyAdmin):
    help = "tour.md#predictors"
    list_display = (
        "name",
        "role",
        "stage",
        "example_count",
        "member_count",
        "training_seconds",
        "created_at",
        "ready_at",
    )
    list_filter = (study_filter("stage__study"), stage_filter(), "role", "name")
    list_select_related = ("stage__study",)
    deferred = deferred_study("stage__study")
    fields = (
        "name",
        "role",
        "stage",
        "settings",
        "seed",
        "input_sha256",
        "example_count",
        "held_out_through",
        "files",
        "training_seconds",
        "created_at",
        "ready_at",
    )
    readonly_fields = ("settings", "files", "training_seconds", "created_at")

    @admin.display(description="members trained")
    def member_count(self, run: PredictorRun) -> int:
        return len(run.members)

    @admin.display(description="seconds of training", ordering="seconds")
    def training_seconds(self, run: PredictorRun) -> str:
        return number(run.seconds, 1)

    @admin.display(description="parameters")
    def settings(self, run: PredictorRun) -> SafeString:
        return pretty_json(run.params)

    @admin.display(description="files by member, with their sha256")
    def files(self, run: PredictorRun) -> SafeString:
        return pretty_json(run.members)


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    help = "tour.md#predictors"
    list_display = ("predictor_run", "stage", "answers", "created_at")
    list_filter = (study_filter("stage__study"), stage_filter())
    list_select_related = ("stage__study", "predictor_run__stage__study")
    # The study's own configuration is read: it says what the instrument learns.
    deferred = ("stage__study__source_text", *deferred_study("predictor_run__stage__study"))
    fields = ("predictor_run", "stage", "figures", "created_at")
    readonly_fields = ("figures", "created_at")

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """With a column for each metric of the installed instruments."""
        *first, last = self.list_display
        return [*first, *map(metric_column, known_metrics()), last]

    @admin.display
    def answers(self, evaluation: Evaluation) -> Any:
        return (evaluation.metrics.get("naive") or {}).get("n")

    @admin.display(description="metrics")
    def figures(self, evaluation: Evaluation) -> SafeString:
        metrics = evaluation.metrics
        if evaluation.stage.study.is_blind:
            metrics = {name: figures for name, figures in metrics.items() if name != LEVELS}
        return pretty_json(metrics)


@admin.register(JobStep)
class JobStepAdmin(ReadOnlyAdmin):
    help = "tour.md#predictors"
    list_display = ("step", "stage", "state", "progress", "attempt", "tries_left", "taken", "error_in_short")
    list_filter = (study_filter("stage__study"), stage_filter(), "state", "kind")
    list_select_related = ("stage__study", "predictor_run")
    deferred = deferred_study("stage__study")
    fields = (
        "stage",
        "kind",
        "predictor_run",
        "member",
        "input_sha256",
        "state",
        "progress",
        "attempt",
        "tries_left",
        "error_text",
        "result_text",
        "created_at",
        "sent_at",
        "started_at",
        "heartbeat_at",
        "lease_until",
        "finished_at",
    )
    readonly_fields = ("progress", "error_text", "result_text", "created_at")

    @admin.display(ordering="kind")
    def step(self, step: JobStep) -> str:
        return step.title

    @admin.display
    def progress(self, step: JobStep) -> str:
        if not step.progress_total:
            return step.progress_text or "–"
        return f"{step.progress_done} of {step.progress_total} {step.progress_text}".strip()

    @admin.display(description="seconds")
    def taken(self, step: JobStep) -> str:
        return number(step.seconds, 1)

    @admin.display(description="error")
    def error_in_short(self, step: JobStep) -> str:
        return shortened(step.error) or "–"

    @admin.display(description="error")
    def error_text(self, step: JobStep) -> str:
        return step.error or "–"

    @admin.display(description="result")
    def result_text(self, step: JobStep) -> SafeString:
        return pretty_json(step.result)


@admin.register(SnapshotAnswer)
class SnapshotAnswerAdmin(ReadOnlyAdmin):
    list_display = ("number", "stage", "digest", "withdrawn_at")
    list_filter = (study_filter("stage__study"), stage_filter(), ("withdrawn_at", admin.EmptyFieldListFilter))
    list_select_related = ("stage__study",)
    deferred = deferred_study("stage__study")
