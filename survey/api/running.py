"""Running studies: created from a file, their stages moved, and what goes on in them read. For members of the study."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from survey.exceptions import FieldErrors, FileErrors, NotFound, StateRefused
from survey.models import Evaluation, JobStep, PredictorRun, Stage, Study, Submission
from survey.panels import inviting
from survey.panels.accounts import cost_at_panel
from survey.panels.asking import state_meant
from survey.services.answers import blinding
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.plans import planning
from survey.services.stages import lifecycle
from survey.services.studies import creating, lookup

from . import shapes
from .researchers import MOVES, ResearcherView, StudyList, stage_rows
from .respondents import REFUSED_BODIES, errors
from .serializers import NewStudySerializer, StageActionSerializer, list_of, response_of, serializer_of

SUBJECTS = ("file", "stages", "steps", "jobs", "runs", "postings", "answers", "estimates", "reports", "leaderboard")


class Studies(StudyList):
    """The list as it was, and a new study."""

    @extend_schema(
        operation_id="study_create",
        summary="Create a study from a study file",
        request=NewStudySerializer,
        responses={
            201: serializer_of(shapes.Overview),
            200: OpenApiResponse(
                serializer_of(shapes.Overview), description="`check_only`: the file could be used. Not stored."
            ),
            **errors(400, 401, 403, *REFUSED_BODIES, 422, 429),
        },
        tags=["researchers"],
    )
    def post(self, request: Request) -> Response:
        """Create a study. You own it. It needs the permission to add studies and a token with the scope run, for all
        of your studies. 422 names every problem of the file with its line; then nothing is stored."""
        token: Any = request.auth
        if not request.user.has_perm("survey.add_study"):
            raise PermissionDenied(_("Your account lacks the permission to create studies (survey.add_study)."))
        if token is not None and not token.for_all_studies:
            raise PermissionDenied(_("This token is for chosen studies. To create one, use a token for all of yours."))
        body = NewStudySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        text = body.validated_data["file"]
        try:
            study = creating.checked_study(text=text, source_name="", reader=request.user)
            if not body.validated_data["check_only"]:
                study = creating.create_study(text=text, source_name="", by=request.user, via="api")
                rights.read_again(request.user)
        except FileErrors as exc:
            raise _by_key(exc) from exc
        return response_of(shapes.Overview, _overview(request, study), status=201 if study.pk else 200)


def _by_key(refused: FileErrors) -> FieldErrors:
    """The problems of a file, each under the key of the file that it is about."""
    lines: dict[str, list[str]] = defaultdict(list)
    for problem in refused.problems:
        line = f"line {problem.line}: " if problem.line else ""
        lines[problem.field or "file"].append(f"{line}{problem.message}")
    return FieldErrors(lines)


def _overview(request: Request, study: Study) -> shapes.Overview:
    config, is_stored = study.config, study.pk is not None
    here = request.build_absolute_uri
    if is_stored:
        states = list(study.stages.order_by("index").values_list("index", "state"))
    else:
        states = [(index, Stage.State.DRAFT.value) for index in range(1, len(config.stages) + 1)]
    return {
        "slug": study.slug,
        "title": study.title,
        "instrument": study.instrument,
        "bank": str(study.bank),
        "panel": config.panel.kind,
        "languages": list(config.languages),
        "minutes": config.expected_minutes,
        "stages": [{"stage": at, "state": state, "pilot": config.stages[at - 1].pilot} for at, state in states],
        "created_at": study.created_at if is_stored else None,
        "locked_at": study.locked_at,
        "locked_sha256": study.locked_sha256,
        "file_sha256": study.source_sha256,
        "url": here(study.get_absolute_url()),
        "admin_url": here(reverse("admin:survey_study_change", args=[study.pk])) if is_stored else "",
        "rights": [right.value for right in Right if is_stored and rights.may(request.user, right, study.pk)],
        "addresses": {name: here(reverse(f"api:{name}", args=[study.slug])) for name in SUBJECTS if is_stored},
        "remarks": [] if study.locked_at else [str(note) for note in creating.remarks_on(study)],
    }


class Overview(ResearcherView):
    @extend_schema(
        operation_id="overview",
        summary="Read what a study is and which stages it has",
        responses={200: serializer_of(shapes.Overview), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The study for those who run it. `studies/SLUG/` is what respondents may know of it."""
        return response_of(shapes.Overview, _overview(request, self.study(slug)))


class StudyFile(ResearcherView):
    @extend_schema(
        operation_id="study_file",
        summary="Read the study file",
        responses={200: serializer_of(shapes.StudyFile), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The study file in force, and its hash. While the study is blind, a sentence stands in place of the file."""
        study = lookup.find_study(self.study(slug).slug)  # With the file's text, which respondents' pages leave out.
        file = blinding.shown_file(study, study.source_text)
        return response_of(shapes.StudyFile, {"sha256": study.source_sha256, "file": file})


# Stages


def _plan(stage: Stage, *, by: Any, via: str, short_booklets: bool) -> int:
    planning.plan_stage(stage, short_booklets=short_booklets, by=by, via=via)
    return 0


def _plan_uniformly(stage: Stage, *, by: Any, via: str, short_booklets: bool) -> int:
    chosen = lifecycle.choose_uniform(stage, by=by, via=via)
    return _plan(chosen, by=by, via=via, short_booklets=short_booklets)


def _resume(stage: Stage, *, by: Any, via: str, short_booklets: bool) -> int:
    if stage.state != Stage.State.PAUSED:
        raise StateRefused(f"stage {stage.index} of {stage.study.slug} is {stage.state}, not paused")
    lifecycle.open_stage(stage, by=by, via=via)
    return 0


def _retry(stage: Stage, *, by: Any, via: str, short_booklets: bool) -> int:
    return lifecycle.retry_steps(stage, by=by, via=via)


def _moved(move: Callable[..., Stage]) -> Callable[..., int]:
    def act(stage: Stage, *, by: Any, via: str, short_booklets: bool) -> int:
        move(stage, by=by, via=via)
        return 0

    return act


# Name to what it does; each returns how many steps it queued again.
ACTIONS: dict[str, Callable[..., int]] = {
    **{name: _moved(move) for name, move in MOVES.items()},
    "resume": _resume,
    "plan": _plan,
    "plan-uniform": _plan_uniformly,
    "retry": _retry,
}
ACTION = OpenApiParameter(
    "action",
    str,
    OpenApiParameter.PATH,
    enum=list(ACTIONS),
    description="`plan-uniform` is final: it draws without a predictor. `close-now` also ends the sittings under way.",
)
INDEX = OpenApiParameter("index", int, OpenApiParameter.PATH, description="The stage's number, from 1.")
LARGEST_INDEX = 10_000


def _stage(study: Study, index: int) -> Stage:
    if index > LARGEST_INDEX:
        raise NotFound(f"{study.slug} has no stage {index}")
    return lookup.find_stage(study, index)


class OneStage(ResearcherView):
    @extend_schema(
        operation_id="stage",
        summary="Read one stage",
        parameters=[INDEX],
        responses={200: serializer_of(shapes.Stage), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str, index: int) -> Response:
        """A stage with its state and counts."""
        return response_of(shapes.Stage, stage_rows([_stage(self.study(slug), index)])[0])


class ActOnStage(ResearcherView):
    @extend_schema(
        operation_id="stage_action",
        summary="Open, pause, resume, close, plan or retry a stage",
        parameters=[INDEX, ACTION],
        request=StageActionSerializer,
        responses={200: serializer_of(shapes.StageActed), **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 422, 429)},
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str, index: int, action: str) -> Response:
        """Do one thing to a stage, as the study page does. It needs a token with the scope run, and the audit has it.
        The same action sent again changes nothing."""
        study = self.study(slug, Right.RUN)
        if action not in ACTIONS:
            raise NotFound(f"there is no action {action!r}; there are: {', '.join(ACTIONS)}")
        body = StageActionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        if body.validated_data["short_booklets"] and not action.startswith("plan"):
            raise FieldErrors({"short_booklets": [f"{action} draws no plan: leave it out."]})
        retried = ACTIONS[action](_stage(study, index), by=request.user, via="api", **body.validated_data)
        row = stage_rows([lookup.find_stage(study, index)])[0]
        return response_of(shapes.StageActed, {**row, "retried": retried})


# What goes on


class StepList(ResearcherView):
    @extend_schema(
        operation_id="steps",
        summary="List the work between stages",
        responses={200: serializer_of(shapes.WorkStep)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """What workers do after a stage: freeze, train, evaluate, score, plan. The oldest first."""
        steps = JobStep.objects.filter(stage__study=self.study(slug)).select_related("stage", "predictor_run")
        lines: list[shapes.WorkStep] = [
            {
                "number": step.pk,
                "stage": step.stage.index,
                "kind": step.kind,
                "title": step.title,
                "state": step.state,
                "progress_done": step.progress_done,
                "progress_total": step.progress_total,
                "progress_text": step.progress_text,
                "seconds": step.seconds,
                "error": step.error,
                "tries_left": step.tries_left,
                "created_at": step.created_at,
                "started_at": step.started_at,
                "finished_at": step.finished_at,
            }
            for step in steps.defer("result").order_by("pk")
        ]
        return list_of(shapes.WorkStep, lines)


class RunList(ResearcherView):
    @extend_schema(
        operation_id="runs",
        summary="List the trained predictors",
        responses={200: serializer_of(shapes.Run)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """Every training of a predictor: by which answers, when, and which stages judge it."""
        runs = list(PredictorRun.objects.filter(stage__study=self.study(slug)).select_related("stage").order_by("pk"))
        judged: dict[int, list[int]] = defaultdict(list)
        evaluations = Evaluation.objects.filter(predictor_run__in=runs).order_by("stage__index")
        for run, stage in evaluations.values_list("predictor_run", "stage__index"):
            judged[run].append(stage)
        lines: list[shapes.Run] = [
            {
                "number": run.pk,
                "predictor": run.name,
                "role": run.role,
                "params": run.params,
                "trained_after": run.stage.index,
                "training_answers": run.example_count,
                "seconds": run.seconds,
                "input_sha256": run.input_sha256,
                "created_at": run.created_at,
                "ready_at": run.ready_at,
                "evaluated_on": judged[run.pk],
            }
            for run in runs
        ]
        return list_of(shapes.Run, lines)


class InviteToWave(ResearcherView):
    @extend_schema(
        operation_id="wave_invite",
        summary="Invite people to a later wave",
        parameters=[OpenApiParameter("wave", int, OpenApiParameter.PATH, description="The wave, 2 or more.")],
        request=None,
        responses={200: serializer_of(shapes.Invited), **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 429)},
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str, wave: int) -> Response:
        """Invite everybody who finished the wave before and can still come. With links, each person's is in this answer
        and is never shown again; elsewhere they come into the panel's group. It needs a token with the scope run, and
        the audit has it. Who was invited is not invited again."""
        study = self.study(slug, inviting.right_needed(self.study(slug, Right.SEE)))
        root = request.build_absolute_uri("/").rstrip("/")
        invited = inviting.invite(study, min(wave, LARGEST_INDEX), root=root, by=request.user, via="api")
        return response_of(shapes.Invited, invited)


class PostingList(ResearcherView):
    @extend_schema(
        operation_id="postings",
        summary="List the postings at panels",
        responses={200: serializer_of(shapes.Posting)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """Where people are sent from, and how many came. It needs the right to see postings (editors, and who may
        spend). Publishing and paying are done on the pages and by command, where the sum is confirmed."""
        postings = list(self.study(slug, Right.SEE_POSTINGS).postings.select_related("stage").order_by("pk"))
        counts: dict[int, dict[str, int]] = defaultdict(dict)
        rows = Submission.objects.filter(posting__in=postings).order_by().values_list("posting", "status")
        for posting, status, count in rows.annotate(n=Count("pk")):
            counts[posting][status] = count
        lines: list[shapes.Posting] = [
            {
                "number": posting.pk,
                "stage": posting.stage.index,
                "wave": posting.wave,
                "panel": posting.panel,
                "state": posting.state,
                "meaning": state_meant(posting.panel, posting.state).value,
                "pending": posting.pending,
                "reward": posting.reward,
                "currency": posting.currency,
                "places": posting.places,
                "minutes": posting.expected_minutes,
                "may_cost": posting.cost,
                "has_cost": cost_at_panel(posting),
                "submissions": counts[posting.pk],
                "created_at": posting.created_at,
                "publish_at": posting.publish_at,
                "published_at": posting.published_at,
                "read_at": posting.read_at,
                "error": posting.error,
            }
            for posting in postings
        ]
        return list_of(shapes.Posting, lines)
