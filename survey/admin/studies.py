"""The study page with its actions and downloads, and the lists of studies and stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from survey.contracts import instruments, panels
from survey.contracts.tables import ExtraFile
from survey.database import written_patiently
from survey.exceptions import HunchError
from survey.figures import csv_lines
from survey.live import snapshots
from survey.live.stage_sections import StageSection
from survey.models import Stage, Study
from survey.panels import owed_list
from survey.panels.inviting import may_invite
from survey.read_only_admin import ReadOnlyAdmin, link_to, pretty_json
from survey.services.answers import blinding
from survey.services.base import auditing, rights
from survey.services.base.rights import Right
from survey.services.plans import planning
from survey.services.results.export import codebook, contents, files
from survey.services.stages import lifecycle
from survey.services.stages.progress import stage_progress
from survey.services.studies.outdated import file_problems

from . import downloads, estimates, jobs, leaderboard, study_page
from .drafting import may_draft
from .filters import TestCopyFilter, deferred_study, study_filter
from .study_file import file_facts
from .study_making import StudyMakingPages
from .waves import WavePages

State = Stage.State
LISTS = (
    ("survey_sitting", "Sittings"),
    ("survey_assignment", "Answers"),
    ("survey_respondent", "Respondents"),
    ("survey_item", "Items"),
    ("survey_slot", "Slots"),
    ("survey_booklet", "Booklets"),
    ("survey_jobstep", "Job steps"),
    ("survey_predictorrun", "Predictor runs"),
    ("survey_posting", "Postings at a panel"),
    ("survey_entrylink", "Entry links"),
    ("survey_auditentry", "Who did what"),
)


@dataclass(frozen=True)
class StageAction:
    """Something a researcher can do to a stage: when it is offered, what is asked first, what function does it."""

    name: str
    label: str
    explanation: str
    is_offered: Callable[[StageSection, Sequence[StageSection]], bool]
    run: Callable[[Stage, Any], str]
    is_final: bool = False


def _row(section: StageSection) -> Stage:
    """The stage's row, which every section of the page has."""
    if section.stage is None:
        raise ValueError(f"stage {section.index}: the section has no row")
    return section.stage


def _is_next(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    """Whether all earlier stages are finished."""
    return all(_row(other).state == State.FROZEN for other in all_of_them if other.index < section.index)


def _can_plan(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    return _row(section).state == State.DRAFT and (
        _row(section).config.design.kind == "uniform" or section.candidates is not None
    )


def _can_open(section: StageSection, all_of_them: Sequence[StageSection]) -> bool:
    ready = _row(section).state == State.PLANNED or (
        _row(section).state == State.DRAFT and _row(section).plans_on_opening
    )
    return ready and _is_next(section, all_of_them)


def _plan(stage: Stage, user: Any) -> str:
    planning.plan_stage(stage, by=user, via="admin")
    return f"Stage {stage.index} is planned."


def _plan_uniformly(stage: Stage, user: Any) -> str:
    lifecycle.choose_uniform(stage, by=user, via="admin")
    return _plan(Stage.objects.select_related("study__bank").get(pk=stage.pk), user)


def _open(stage: Stage, user: Any) -> str:
    lifecycle.open_stage(stage, by=user, via="admin")
    return f"Stage {stage.index} is open."


def _pause(stage: Stage, user: Any) -> str:
    lifecycle.pause_stage(stage, by=user, via="admin")
    return f"Stage {stage.index} is paused."


def _close(stage: Stage, user: Any) -> str:
    lifecycle.close_stage(stage, by=user, via="admin")
    return f"Stage {stage.index} is closing. The study page shows the next steps of work under it."


def _close_now(stage: Stage, user: Any) -> str:
    lifecycle.close_stage(stage, now=True, by=user, via="admin")
    return f"Stage {stage.index} is closing now. The study page shows the next steps of work under it."


def _retry(stage: Stage, user: Any) -> str:
    count = lifecycle.retry_steps(stage, by=user, via="admin")
    return f"{count} failed step{'' if count == 1 else 's'} of stage {stage.index} will be tried again."


ACTIONS = (
    StageAction(
        "plan",
        "Plan",
        "Draws the stage's items and deals them into booklets, from the stage's stored seed. A plan is never changed.",
        _can_plan,
        _plan,
    ),
    StageAction(
        "plan-uniformly",
        "Plan uniformly",
        "The predictor could learn nothing from the stage before: all its answers were alike, or there were none. This "
        "draws the stage uniformly instead of as the study file says, and records that in the stage's manifest.",
        lambda section, all_of_them: _is_next(section, all_of_them) and lifecycle.waits_for_a_choice(_row(section)),
        _plan_uniformly,
        is_final=True,
    ),
    StageAction(
        "open",
        "Open",
        "Respondents can begin. A pilot or a first stage that is not planned yet is planned now. Opening the first "
        "main stage locks the study file: from then on only what changes no figure can be amended.",
        _can_open,
        _open,
    ),
    StageAction(
        "resume",
        "Resume",
        "Respondents can begin again.",
        lambda section, _all: _row(section).state == State.PAUSED,
        _open,
    ),
    StageAction(
        "pause",
        "Pause",
        "Nobody else can begin. People who have begun can finish.",
        lambda section, _all: _row(section).state == State.OPEN,
        _pause,
    ),
    StageAction(
        "close",
        "Close",
        "Nobody else can begin, for good. People who have begun can finish; then the answers are frozen, the "
        "predictor is trained and the next stage is planned.",
        lambda section, _all: _row(section).state in (State.OPEN, State.PAUSED),
        _close,
        is_final=True,
    ),
    StageAction(
        "close-now",
        "Close now",
        "Nobody else can begin, for good, and the stage does not wait. People who have begun can finish, get their "
        "code and are paid, but what they answer from now on does not count.",
        lambda section, _all: (
            _row(section).state in (State.OPEN, State.PAUSED)
            or (_row(section).state == State.CLOSING and section.live > 0)
        ),
        _close_now,
        is_final=True,
    ),
    StageAction(
        "retry",
        "Retry failed steps",
        "The workers try the stage's failed steps again.",
        lambda section, _all: bool(section.failed_steps),
        _retry,
    ),
)
ACTION_BY_NAME = {action.name: action for action in ACTIONS}


@admin.register(Study)
class StudyAdmin(StudyMakingPages, WavePages):
    """Studies come from study files. A study's page shows how it goes, and runs it."""

    list_display = ("slug", "title", "bank", "instrument", "states", "created_by", "created_at")
    list_filter = (TestCopyFilter,)
    list_select_related = ("bank", "created_by")
    deferred = ("source_text", "stored_config")
    search_fields = ("slug", "title")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("stages")

    @admin.display(description="stages")
    def states(self, study: Study) -> str:
        # Stages in a row that have the same state are grouped: a study may have fifty.
        stages = sorted(study.stages.all(), key=lambda stage: stage.index)
        parts: list[list[Any]] = []
        for stage in stages:
            if parts and parts[-1][2] == stage.state:
                parts[-1][1] = stage.index
            else:
                parts.append([stage.index, stage.index, stage.state])
        return ", ".join(f"{a if a == b else f'{a}–{b}'} {state}" for a, b, state in parts)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/stages/<int:index>/<slug:name>/", wrap(self.action_view), name="survey_study_action"),
            path("<int:pk>/unblind/", wrap(self.unblind_view), name="survey_study_unblind"),
            path("<int:pk>/live/", wrap(self.live_view), name="survey_study_live"),
            path("<int:pk>/export/<str:name>", wrap(self.export_view), name="survey_study_export"),
            path("<int:pk>/leaderboard/", wrap(self.leaderboard_view), name="survey_study_leaderboard"),
            path("<int:pk>/estimates/", wrap(self.estimates_view), name="survey_study_estimates"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        study = self._whole(request, object_id)
        if study is None:
            raise Http404
        if not self.has_view_permission(request, study):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        may_run = rights.may(request.user, Right.RUN, study.pk)
        root = request.build_absolute_uri("/").rstrip("/")
        context = self._live(request, study, may_wait=False)
        look = context["look"]
        return self._page(
            request,
            "page.html",
            title=f"{study.title} (test copy)" if study.is_test else study.title,
            study=study,
            addresses=study_page.addresses(study, root),
            codes=study.codes.order_by("pk") if may_run else [],  # With a code a person is paid.
            may_run=may_run,
            reports=look.quick.reports if look else [],
            earlier=study_page.earlier_stages(context["live"]),
            **context,
            may_draft=may_draft(request.user, study),
            waves=may_invite(request.user, study),
            **file_facts(study, request.user),
            files=_files(study, request.user),
            file_problems=[] if context["instrument_problem"] else file_problems(study),
            job_kinds=jobs.kinds_for(study, request.user),
            lists=[
                (label, f"{reverse(f'admin:{name}_changelist')}?study={study.slug}")
                for name, label in LISTS
                if self._may_list(request, study, name.removeprefix("survey_"))
            ],
        )

    def _whole(self, request: HttpRequest, object_id: str) -> Study | None:
        """The study with its file, and as `withdrawn` how many people have withdrawn, in one statement."""
        if not object_id.isdecimal():
            return None
        rows = Study.objects.select_related("bank", "created_by").annotate(withdrawn=Count("respondents__withdrawal"))
        study: Study | None = self.visible_to(request.user, rows).filter(pk=int(object_id)).first()
        return study

    def _live(self, request: HttpRequest, study: Study, *, may_wait: bool) -> dict[str, Any]:
        """What the part of the page shows that refreshes by itself, and what its stages' sections need."""
        look, sections = study_page.shown(study, may_wait=may_wait)
        may_run = rights.may(request.user, Right.RUN, study.pk)
        return {
            "look": look,
            "live": study_page.live(study, request.user, look, sections) if look else None,
            "sections": [(section, _offered(section, sections) if may_run else []) for section in sections],
            "outcome": next((section.outcomes.name for section in sections if section.outcomes.name), ""),
            "instrument_problem": instruments.problem_with(study.instrument),
            "panel_problem": panels.of_study(study).problem,
            "alerts": list(study.alerts.filter(resolved_at__isnull=True)),
        }

    def live_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The part of the study page that refreshes by itself. The page's script knows it by the header."""
        study = self._study(request, pk)
        context = self._live(request, study, may_wait=True)
        response = self._page(request, "live.html", study=study, title=study.title, is_refresh=True, **context)
        response["X-Hunch-Live"] = "1"
        return response

    def _may_list(self, request: HttpRequest, study: Study, name: str) -> bool:
        """Whether the list of that model shows the user anything of the study."""
        page: Any = self.admin_site.get_model_admin(apps.get_model("survey", name))
        right = page.right or rights.right_to_see(page.model)
        return page.has_view_permission(request) and rights.may(request.user, right, study.pk)

    def action_view(self, request: HttpRequest, pk: int, index: int, name: str) -> HttpResponse:
        """GET asks first, POST acts."""
        study = self._study(request, pk, Right.RUN)
        action = ACTION_BY_NAME.get(name)
        stage = study.stages.filter(index=index).first()
        if action is None or stage is None:
            raise Http404
        stage.study = study
        if request.method == "POST":
            try:
                messages.success(request, action.run(stage, request.user))
            except HunchError as exc:
                messages.error(request, f"{action.label}: {exc.message}")
            snapshots.forget(study)
            return HttpResponseRedirect(reverse("admin:survey_study_change", args=[pk]))
        return self._page(
            request,
            "action.html",
            title=f"{action.label}: stage {stage.index} of {stage.study.slug}?",
            study=stage.study,
            stage=stage,
            action=action,
            progress=stage_progress(stage),
        )

    def unblind_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """GET asks first, POST shows the conditions to everybody."""
        study, problem = self._study(request, pk, Right.UNBLIND), ""
        if request.method == "POST":
            try:
                reason = request.POST.get("reason", "").replace("\x00", "")
                blinding.unblind(study, reason=reason, by=request.user, via="admin")
                snapshots.forget(study)
                messages.success(request, "The conditions are shown from now on.")
                return HttpResponseRedirect(reverse("admin:survey_study_change", args=[pk]))
            except HunchError as exc:
                problem = exc.message
        return self._page(request, "unblind.html", title=f"Unblind {study.slug}?", study=study, problem=problem)

    def export_view(self, request: HttpRequest, pk: int, name: str) -> Any:
        """One file of the export, streamed. By POST, since the audit records each download."""
        study = self._study(request, pk, Right.SEE_POSTINGS if name == owed_list.FILE else Right.EXPORT)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        lines = _export(study, name, with_pay=rights.may(request.user, Right.SEE_POSTINGS, study.pk))
        if lines is None:
            raise Http404
        is_guarded = downloads.is_guarded(request, name)
        auditing.record("export_answers", study, by=request.user, via="admin", form=name, guarded=is_guarded)
        kind = "text/markdown" if name.endswith(".md") else "text/csv"
        guarded_lines = map(csv_lines.guarded, lines) if is_guarded else lines
        response = StreamingHttpResponse(written_patiently(guarded_lines), content_type=f"{kind}; charset=utf-8")
        response["Content-Disposition"] = downloads.save_as(study, name, guarded=is_guarded)
        return response

    def leaderboard_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """How the study's predictors did on later answers."""
        study = self._study(request, pk)
        return self._page(
            request,
            "leaderboard.html",
            title=f"Leaderboard of {study.slug}",
            study=study,
            **leaderboard.context(study, request.GET.dict()),
        )

    def estimates_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """What the answers say about all items."""
        study = self._study(request, pk)
        return self._page(
            request,
            "estimates.html",
            title=f"Estimates: {study.title}",
            study=study,
            **estimates.context(
                study,
                request.GET.getlist("by"),
                request.GET.getlist("condition"),
                may_see_people=rights.may(request.user, Right.EXPORT, study.pk),
            ),
        )


def _offered(section: StageSection, all_of_them: Sequence[StageSection]) -> list[StageAction]:
    return [action for action in ACTIONS if action.is_offered(section, all_of_them)]


def _files(study: Study, user: Any) -> list[str]:
    names = []
    if instruments.is_known(study.instrument) and rights.may(user, Right.EXPORT, study.pk):
        names = ["answers.csv", *(extra.name for extra in contents.file_heads(study)), "codebook.md"]
    owes = (
        panels.of_study(study).pays_from_a_list and not study.is_test and rights.may(user, Right.SEE_POSTINGS, study.pk)
    )
    return [*names, owed_list.FILE] if owes else names


def _export(study: Study, name: str, *, with_pay: bool) -> Any:
    """The lines of one file of the export; None if there is no such file."""
    if name == "answers.csv":
        return files.answers_csv(study)
    if name == "codebook.md":
        return iter([codebook.codebook_page(study)])
    if name == owed_list.FILE and panels.of_study(study).pays_from_a_list and not study.is_test:
        rows = owed_list.rows_of(study, owed_list.owed_list(study))
        return files.streamed(ExtraFile(name, owed_list.COLUMNS, rows))
    extra = contents.file_named(study, name, with_pay=with_pay)
    return None if extra is None else files.streamed(extra)


@admin.register(Stage)
class StageAdmin(ReadOnlyAdmin):
    list_display = ("name", "study", "state", "arrivals", "planned_at", "opened_at", "closing_at", "frozen_at")
    list_filter = (study_filter(), "state")
    list_select_related = ("study",)
    deferred = deferred_study("study")
    fields = (
        "study_page",
        "index",
        "state",
        "seed",
        "arrivals",
        "plan_sha256",
        "snapshot_sha256",
        "planned_at",
        "opened_at",
        "closing_at",
        "frozen_at",
        "manifest_text",
    )
    readonly_fields = ("study_page", "manifest_text")

    @admin.display(description="stage", ordering="index")
    def name(self, stage: Stage) -> str:
        return str(stage)

    @admin.display(description="study")
    def study_page(self, stage: Stage) -> SafeString | str:
        return link_to(stage.study)

    @admin.display(description="manifest")
    def manifest_text(self, stage: Stage) -> SafeString:
        return pretty_json(stage.manifest)
