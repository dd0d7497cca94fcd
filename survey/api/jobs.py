"""Jobs over the API: ask for one, see how far it is, cancel it, and download what it made. Each user's own."""

from django.http import HttpResponseBase
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from survey.models import Job
from survey.services.base import job_kinds, jobs
from survey.services.base.rights import Right
from survey.web.ranged_files import file_response

from . import shapes
from .researchers import ResearcherView, WhateverIsAccepted
from .respondents import REFUSED_BODIES, errors
from .serializers import JobAskSerializer, list_of, response_of, serializer_of

MAX_JOBS = 100
RANGE = OpenApiParameter(
    "Range", str, OpenApiParameter.HEADER, description="`bytes=1000-`: go on with a download that stopped."
)


class JobList(ResearcherView):
    @extend_schema(
        operation_id="jobs",
        summary="Your jobs in a study",
        responses={200: serializer_of(shapes.Job)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The newest hundred of your jobs in this study."""
        rows = jobs.jobs_of(request.user).filter(study=self.study(slug, Right.SEE)).order_by("-pk")[:MAX_JOBS]
        return list_of(shapes.Job, [as_json(request, job) for job in rows])

    @extend_schema(
        operation_id="job_ask",
        summary="Ask for a job",
        request=JobAskSerializer,
        responses={202: serializer_of(shapes.Job), **errors(400, 401, 403, 404, 409, *REFUSED_BODIES, 422, 429)},
        tags=["researchers"],
    )
    def post(self, request: Request, slug: str) -> Response:
        """A worker does it. Who asks the same again while it is not over gets the same job. The list of kinds says
        which arguments each has. It needs a token with the scope run."""
        study = self.study(slug, Right.SEE)
        body = JobAskSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        job, _is_new = jobs.ask(study, asked["kind"], asked["arguments"], by=request.user, via="api")
        return response_of(shapes.Job, as_json(request, job), status=202)


class JobKinds(ResearcherView):
    @extend_schema(
        operation_id="job_kinds",
        summary="What can be asked for",
        responses={200: serializer_of(shapes.JobKind)(many=True), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, slug: str) -> Response:
        """The kinds of jobs that mean anything in this study, with the arguments that each has there."""
        study = self.study(slug, Right.SEE)
        lines: list[shapes.JobKind] = [
            {
                "kind": kind.name,
                "title": kind.title,
                "summary": kind.summary,
                "arguments": [
                    {
                        "name": argument.name,
                        "help": argument.help,
                        "many": argument.many,
                        "required": argument.required,
                        "default": argument.default,
                        "choices": list(argument.choices_in(study)),
                    }
                    for argument in kind.arguments
                ],
            }
            for kind in job_kinds.all_kinds()
            if kind.suits(study)
        ]
        return list_of(shapes.JobKind, lines)


class JobOne(ResearcherView):
    @extend_schema(
        operation_id="job",
        summary="How far a job is",
        responses={200: serializer_of(shapes.Job), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def get(self, request: Request, number: int) -> Response:
        """One of your jobs. When it is done, `files` says where each result file is."""
        return response_of(shapes.Job, as_json(request, jobs.find_job(number, request.user)))

    @extend_schema(
        operation_id="job_cancel",
        summary="Cancel a job",
        responses={200: serializer_of(shapes.Job), **errors(400, 401, 403, 404, 429)},
        tags=["researchers"],
    )
    def delete(self, request: Request, number: int) -> Response:
        """End a job that is not over; one that is over stays as it is. It needs a token with the scope run."""
        jobs.cancel(jobs.find_job(number, request.user), by=request.user, via="api")
        return response_of(shapes.Job, as_json(request, jobs.find_job(number, request.user)))


class JobFile(ResearcherView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        operation_id="job_file",
        summary="Download a result file",
        parameters=[RANGE],
        responses={
            (200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY, description="The file."),
            (206, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY, description="The bytes asked for."),
            (416, "text/plain"): OpenApiResponse(OpenApiTypes.STR, description="The file has no such bytes."),
            **errors(400, 401, 403, 404, 409, 410, 429),
        },
        tags=["researchers"],
    )
    def get(self, request: Request, number: int, name: str) -> HttpResponseBase:
        """One result file of a job that you asked for. With `Range`, a download that stopped goes on; the `ETag` is the
        file's sha256."""
        job = jobs.find_job(number, request.user)
        file = jobs.file_of(job, name, by=request.user)
        response = file_response(
            request,
            lambda: jobs.opened(job, name),
            name=name,
            size=file["bytes"],
            sha256=file["sha256"],
            content_type="application/octet-stream",
        )
        jobs.record_download(job, name, by=request.user, via="api", span=response.headers.get("Content-Range", ""))
        return response


def as_json(request: Request, job: Job) -> shapes.Job:
    left = job.time_left()
    is_theirs = job.asked_by_id == request.user.pk
    return {
        "number": job.pk,
        "kind": job.kind,
        "study": job.study.slug,
        "arguments": job.arguments,
        "state": job.state,
        "percent": job.percent,
        "progress": job.progress_text,
        "seconds_left": None if left is None else round(left.total_seconds()),
        "error": job.error,
        "result": job.result if is_theirs else {},
        "files": [
            {
                "name": file["name"],
                "bytes": file["bytes"],
                "sha256": file["sha256"],
                "url": request.build_absolute_uri(reverse("api:job-file", args=[job.pk, file["name"]])),
            }
            for file in (job.files if is_theirs else [])
        ],
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "expires_at": job.expires_at,
        "url": request.build_absolute_uri(reverse("api:job", args=[job.pk])),
    }
