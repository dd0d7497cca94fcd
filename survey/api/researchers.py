"""The researchers' side: studies, stages and answers, for people who may export. They log in by token or session."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from django.core import signing
from django.http import StreamingHttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import SAFE_METHODS, BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from survey.contracts.reports import ReceivedFile
from survey.exceptions import NotFound
from survey.models import ApiToken, Stage, Study
from survey.services.answers import conditions
from survey.services.base import auditing, rights
from survey.services.base.rights import Right
from survey.services.results import reports
from survey.services.results.estimates import stored_estimates, weights
from survey.services.results.export import answers_file, columns, contents, files, formats
from survey.services.sittings import enrolment
from survey.services.stages import lifecycle
from survey.services.stages.leaderboard import leaderboard
from survey.services.stages.progress import stages_progress
from survey.services.studies import lookup
from survey.storage.database import written_patiently

from . import shapes
from .respondents import REFUSED_BODIES, errors
from .serializers import StageMoveSerializer, list_of, response_of, serializer_of

CURSOR_HOLDS = timedelta(days=1)
STAGE = OpenApiParameter("stage", OpenApiTypes.INT, description="Only this stage, from 1.")
CONDITION = OpenApiParameter(
    "condition",
    str,
    many=True,
    description="FACTOR=LEVEL: only answers under this level of a factor; several for several factors.",
)


class MayExport(BasePermission):
    """What the account may do anywhere. `ResearcherView.study` asks about the study."""

    message = _("Your account lacks the permission to export answers (survey.export_study).")

    def has_permission(self, request: Request, view: APIView) -> bool:
        return request.method not in SAFE_METHODS or request.user.has_perm("survey.export_study")


class ScopeAllows(BasePermission):
    """A token that may only read does nothing else. A session has no scope."""

    message = _("This token may only read. Make one with the scope run.")

    def has_permission(self, request: Request, view: APIView) -> bool:
        token: Any = request.auth
        method = str(request.method)
        # A method that the address does not have is refused as such.
        reads = method in SAFE_METHODS or not hasattr(view, method.lower())
        return reads or token is None or token.scope == ApiToken.Scope.RUN


class ResearcherView(APIView):
    permission_classes: Any = (IsAuthenticated, MayExport, ScopeAllows)
    filters: ClassVar[tuple[str, ...] | None] = ()  # What the query may hold; None: the view checks it.

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse unknown filters. If a misspelt one were ignored, the figures would be about all answers."""
        super().initial(request, *args, **kwargs)
        if self.filters is None:
            return
        there_are = ", ".join(self.filters) or "none here"
        unknown = sorted(set(request.query_params) - set(self.filters))
        if unknown:
            raise ValidationError({name: [f"There is no such filter. There are: {there_are}."] for name in unknown})

    def study(self, slug: str, right: Right = Right.EXPORT) -> Study:
        """The study, for who has the right in it.

        Raises:
            NotFound: there is none, or the user is no member, or the token is for other studies.
            PermissionDenied: the user's role does not say so.
        """
        unknown = f"no study is called {slug!r}, or you are not a member of it; GET /api/v1/studies/ lists yours"
        try:
            study = enrolment.study_of(slug)
        except NotFound as exc:
            raise NotFound(unknown) from exc
        if not rights.may(self.request.user, Right.SEE, study.pk):
            raise NotFound(unknown)
        if not rights.may(self.request.user, right, study.pk):
            raise PermissionDenied(_("Your role in this study does not allow that."))
        return study


class StudyList(ResearcherView):
    filters = ("test_copies",)

    @extend_schema(
        operation_id="studies",
        summary="List your studies",
        parameters=[
            OpenApiParameter("test_copies", OpenApiTypes.BOOL, description="`true`: the test copies of your studies.")
        ],
        responses={200: serializer_of(shapes.Study)(many=True), **errors(400, 401, 403, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request) -> Response:
        """The studies that you are a member of, the newest first. Test copies are listed where they are asked for."""
        wanted = request.query_params.get("test_copies", "false")
        if wanted not in ("true", "false"):
            raise ValidationError({"test_copies": ["Write true or false."]})
        studies = Study.objects.filter(test_of__isnull=wanted == "false").select_related("bank")
        rows: list[shapes.Study] = [
            {
                "slug": study.slug,
                "title": study.title,
                "instrument": study.instrument,
                "bank": str(study.bank),
                "stages": len(study.config.stages),
                "created_at": study.created_at,
                "url": request.build_absolute_uri(study.get_absolute_url()),
            }
            for study in rights.visible(request.user, studies)
        ]
        return list_of(shapes.Study, rows)


MOVES: dict[str, Callable[..., Stage]] = {
    "open": lifecycle.open_stage,
    "pause": lifecycle.pause_stage,
    "close": lifecycle.close_stage,
    "close-now": partial(lifecycle.close_stage, now=True),
}


class StageList(ResearcherView):
    @extend_schema(
        operation_id="stages",
        summary="List the stages of a study",
        responses={200: serializer_of(shapes.Stage)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The stages of a study with their states and counts."""
        return self._stages(self.study(slug))

    @extend_schema(
        operation_id="stage_move",
        summary="Open, pause or close a stage",
        request=StageMoveSerializer,
        responses={
            200: serializer_of(shapes.Stage)(many=True),
            **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 429),
        },
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Open, pause or close a stage, as the study page does. It needs a token with the scope run.

        `POST stages/INDEX/ACTION/` does the same and more; this address stays."""
        study = self.study(slug, Right.RUN)
        body = StageMoveSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        stage = lookup.find_stage(study, body.validated_data["stage"])
        MOVES[body.validated_data["move"]](stage, by=request.user, via="api")
        return self._stages(study)

    def _stages(self, study: Study) -> Response:
        stages = list(study.stages.order_by("index"))
        for stage in stages:
            stage.study = study
        return list_of(shapes.Stage, stage_rows(stages))


def stage_rows(stages: Sequence[Stage]) -> list[shapes.Stage]:
    """What the API says of each stage, in a fixed number of queries."""
    counts = stages_progress(stages)
    return [
        {
            "stage": stage.index,
            "state": stage.state,
            "design": stage.config.design.kind,
            "pilot": stage.is_pilot,
            "slots": counts[stage.pk].slots,
            "in_time": counts[stage.pk].in_time,
            "counted": counts[stage.pk].counted,
            "late": counts[stage.pk].late,
            "booklets": counts[stage.pk].booklets,
            "free_booklets": counts[stage.pk].free_booklets,
            "sittings": counts[stage.pk].sittings,
            "planned_at": stage.planned_at,
            "opened_at": stage.opened_at,
            "closing_at": stage.closing_at,
            "frozen_at": stage.frozen_at,
        }
        for stage in stages
    ]


class Leaderboard(ResearcherView):
    filters = ("condition",)

    @extend_schema(
        operation_id="leaderboard",
        summary="Compare the predictors",
        parameters=[
            OpenApiParameter("condition", str, description="FACTOR=LEVEL: judged only by the answers under this level.")
        ],
        responses={200: serializer_of(shapes.LeaderboardLine)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """Every training of the study's predictors, and how it did on later answers, counted in each way."""
        study = self.study(slug)
        wanted = request.query_params.get("condition")
        level = conditions.in_words(conditions.read_condition(study, [wanted] if wanted else []))
        lines: list[shapes.LeaderboardLine] = [
            {
                "predictor": line.run.name,
                "role": line.run.role,
                "params": line.run.params,
                "columns": line.columns,
                "columns_read": line.columns_read,
                "trained_after": line.trained_after,
                "training_answers": line.run.example_count,
                "evaluated_on": line.evaluated_on,
                "answers": line.answers,
                "weighting": line.weighting,
                "n": line.n,
                "figures": cast(Any, line.figures),  # Objects, whose attributes are read.
                "difference": cast(Any, line.difference),
            }
            for line in leaderboard(study, level=level)
        ]
        return list_of(shapes.LeaderboardLine, lines)


class EstimatesOfStudy(ResearcherView):
    filters = ("condition", "by")

    @extend_schema(
        operation_id="estimates",
        summary="Read the estimates",
        parameters=[
            CONDITION,
            OpenApiParameter(
                "by",
                str,
                many=True,
                description="Also inside each part of this: a division of the instrument's, a condition's factor, or a "
                "question of a form (choice, likert or number), whose groups of people each have their difference to "
                "the rest.",
            ),
        ],
        responses={200: serializer_of(shapes.Estimates), **errors(400, 401, 403, 404, 409, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """What the study's answers say about all items, as `manage.py estimate` prints it.

        The figures are stored. Where `is_current` is false, something that they rest on has changed since, and a worker
        computes them again. 409 with the code `being_computed`: there are none at the moment.
        """
        estimates = stored_estimates.shown_estimates(
            self.study(slug),
            by=request.query_params.getlist("by"),
            condition=request.query_params.getlist("condition"),
        )
        return response_of(shapes.Estimates, estimates.as_json())


class ReportList(ResearcherView):
    @extend_schema(
        operation_id="reports",
        summary="List the reports",
        responses={200: serializer_of(shapes.ReportLine)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The reports of a study: the arguments of each, and why one cannot be made now."""
        study = self.study(slug)
        lines = [
            {**line, "url": request.build_absolute_uri(reverse("api:report", args=[slug, line["name"]]))}
            for line in reports.lines_as_json(study, reader=request.user)
        ]
        return list_of(shapes.ReportLine, lines)


class ReportOfStudy(ResearcherView):
    filters = None  # Each report knows its own arguments.

    @extend_schema(
        operation_id="report",
        summary="Make a report",
        parameters=[
            OpenApiParameter(
                "arguments",
                {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
                style="form",
                explode=True,
                description="The report's arguments, by the names that the list of reports gives: `?alpha=1&alpha=19`.",
            )
        ],
        responses={200: serializer_of(shapes.Findings), **errors(400, 401, 403, 404, 409, 422, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str, name: str) -> Response:
        """One report of a study: its tables, what a reader should know, and all of it as `data`."""
        study = self.study(slug)
        arguments = {argument: request.query_params.getlist(argument) for argument in request.query_params}
        findings = reports.make_for_web(study, name, arguments, reader=request.user)
        reports.record_reading(study, name, arguments, by=request.user, via="api")
        return response_of(shapes.Findings, reports.as_json(study, name, findings))


class ReportFiles(ResearcherView):
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="report_files",
        summary="Give a report files that it takes back",
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                "required": ["files"],
            }
        },
        responses={200: serializer_of(shapes.Taken), **errors(400, 401, 403, 404, 409, 413, 415, 422, 429)},
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str, name: str) -> Response:
        """Give a report files that it takes back, such as the codes of reasons: all of them are stored, or none."""
        study = self.study(slug)
        _entry, report = reports.load(study, name)
        largest = 0 if report.intake is None else report.intake.largest
        files = [
            ReceivedFile(Path(file.name or "").name, file.read(largest + 1)) for file in request.FILES.getlist("files")
        ]
        return Response({"stored": reports.take(study, name, files, by=request.user, via="api")})


class AnswerList(ResearcherView):
    filters = ("stage", "condition", "cursor")

    @extend_schema(
        operation_id="answers",
        summary="Read the answers page by page",
        parameters=[
            STAGE,
            CONDITION,
            OpenApiParameter("cursor", str, description="From the `next` of the page before; it is signed."),
        ],
        responses={200: serializer_of(shapes.AnswerPage), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The rows of answers.csv as JSON, a few hundred a page, as JSON Lines of an export have them. Follow `next`
        until it is null.

        `weight` is over all answers that the study has when the page is read: while a stage is open, a later page can
        have others than an earlier one.
        """
        study = self.study(slug)
        stage = contents.stage_of(study, _stage(request))
        levels = conditions.read_condition(study, request.query_params.getlist("condition"))
        signer = _cursor_signer(request, study, stage, levels)
        after = _after(request, signer)
        further = {"after": list(after)} if after != (0, 0) else {}
        auditing.record(
            "export_answers", study, by=request.user, via="api", form="json", stage=stage, **_noted(levels), **further
        )
        page = next(
            answers_file.chunks(
                study,
                stage=stage,
                after=after,
                levels=levels,
                size=answers_file.PAGE,
                weighing=weights.known_weights,
            ),
            None,
        )
        following = None
        if page is not None:
            cursor = signer.sign("{}-{}".format(*page.last))
            query = f"?cursor={cursor}" + (f"&stage={stage}" if stage is not None else "")
            query += "".join(f"&condition={factor}={level}" for factor, level in levels.items())
            following = request.build_absolute_uri(reverse("api:answers", args=[slug]) + query)
        rows = formats.json_rows(columns.columns_of(study), page.rows if page is not None else ())
        return Response({"next": following, "results": list(rows)})


class WhateverIsAccepted(DefaultContentNegotiation):
    """Ignore what the client accepts. One that accepts only CSV gets it, and its errors still come as JSON."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type


class AnswerFile(ResearcherView):
    content_negotiation_class = WhateverIsAccepted
    filters = ("stage", "condition")

    @extend_schema(
        operation_id="answers_csv",
        summary="Download the answers as CSV",
        parameters=[STAGE, CONDITION],
        responses={
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, description="docs/codebook.md says what the columns mean."
            ),
            **errors(400, 401, 403, 404, 429),
        },
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Any:
        """answers.csv, streamed: the same bytes as `manage.py export` writes."""
        study = self.study(slug)
        stage = contents.stage_of(study, _stage(request))
        levels = conditions.read_condition(study, request.query_params.getlist("condition"))
        auditing.record("export_answers", study, by=request.user, via="api", form="csv", stage=stage, **_noted(levels))
        response = StreamingHttpResponse(
            written_patiently(files.answers_csv(study, stage=stage, levels=levels)),
            content_type="text/csv; charset=utf-8",
        )
        response["Content-Disposition"] = f'attachment; filename="{study.slug}-answers.csv"'
        return response


def _stage(request: Request) -> int | None:
    text = request.query_params.get("stage")
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII):
        raise ValidationError({"stage": [_("Give the stage's number, from 1.")]})
    return int(text)


def _noted(levels: Mapping[str, str]) -> dict[str, Any]:
    return {"condition": dict(levels)} if levels else {}


def _cursor_signer(
    request: Request, study: Study, stage: int | None, levels: Mapping[str, str]
) -> signing.TimestampSigner:
    """Signs the places at which pages of answers end: a cursor holds for this account, this study and these filters."""
    return signing.TimestampSigner(
        salt=json.dumps(["answers", request.user.pk, study.pk, stage, sorted(levels.items())])
    )


def _after(request: Request, signer: signing.TimestampSigner) -> tuple[int, int]:
    """The stage and the number of the slot after which a page begins."""
    cursor = request.query_params.get("cursor")
    if cursor is None:
        return (0, 0)
    try:
        stage, number = signer.unsign(cursor, max_age=CURSOR_HOLDS).split("-")
    except signing.BadSignature as exc:
        raise ValidationError(
            {
                "cursor": [
                    _(
                        "Take the whole address of `next` from the page before. It holds for a day, for the same "
                        "account and filters; else begin again without a cursor."
                    )
                ]
            }
        ) from exc
    return (int(stage), int(number))
