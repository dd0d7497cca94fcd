"""Jobs: ask for one, see how far it is, cancel it, and download what it made."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.urls import reverse

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, admin_page
from survey.exceptions import HunchError, NotFound
from survey.models import Job, Study
from survey.services.base import job_kinds, jobs, rights
from survey.services.base.job_kinds import JobKind
from survey.web.ranged_files import file_response

from .report_pages import fields_of, in_labels, kind_of

ON_A_PAGE = 25


@dataclass(frozen=True)
class ShownJob:
    """A job as pages show it. `files` are empty where the reader did not ask for it."""

    job: Job
    title: str
    time_left: str
    files: Sequence[dict[str, Any]]
    may_cancel: bool


def ask_for_job(request: HttpRequest, study: int, kind: str) -> HttpResponse:
    """GET shows the arguments, POST asks."""
    visible_study = rights.visible(request.user, Study.objects.all()).filter(pk=study).first()
    try:
        wanted = job_kinds.find_kind(kind)
    except NotFound as exc:
        raise Http404(exc.message) from exc
    if visible_study is None:
        raise Http404
    rights.require(request.user, wanted.right, visible_study.pk)
    arguments = {name: request.POST.getlist(name) for name in request.POST if name != "csrfmiddlewaretoken"}
    problem = ""
    errors: dict[str, list[str]] = {}
    if request.method == "POST":
        try:
            job, is_new = jobs.ask(visible_study, kind, arguments, by=request.user, via="admin")
        except HunchError as exc:
            errors = getattr(exc, "errors", {})
            problem = in_labels(exc.message, wanted.arguments)
        else:
            if not is_new:
                messages.info(request, "This was asked for before and is not over yet: here it is.")
            return HttpResponseRedirect(reverse("admin:survey_job_change", args=[job.pk]))
    return admin_page(
        request,
        "job/ask.html",
        title=f"{wanted.title} of {visible_study}",
        study=visible_study,
        kind=wanted,
        fields=fields_of(wanted.arguments, arguments, lambda argument: argument.choices_in(visible_study), errors),
        problem=problem,
    )


def cancel_job(request: HttpRequest, job: Job) -> HttpResponse:
    if jobs.cancel(job, by=request.user, via="admin"):
        messages.success(request, f"Job {job.pk} is cancelled.")
    else:
        messages.info(request, f"Job {job.pk} was over already.")
    return HttpResponseRedirect(reverse("admin:survey_job_changelist"))


def job_file(request: HttpRequest, job: Job, name: str) -> HttpResponseBase:
    """One result file. By GET, so that browsers can go on with a download that stopped; it changes nothing but the
    audit."""
    try:
        file = jobs.file_of(job, name, by=request.user)
        response = file_response(
            request,
            lambda: jobs.opened(job, name),
            name=name,
            size=file["bytes"],
            sha256=file["sha256"],
            content_type=kind_of(name),
        )
    except jobs.NotAllowed as exc:
        raise PermissionDenied(exc.message) from exc
    except HunchError as exc:
        messages.error(request, exc.message)
        return HttpResponseRedirect(reverse("admin:survey_job_change", args=[job.pk]))
    jobs.record_download(job, name, by=request.user, via="admin", span=response.headers.get("Content-Range", ""))
    return response


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Everybody's own jobs. Their pages change nothing but the job itself, so no permission of the account is asked."""

    help = "tour.md#jobs"
    pages = (
        AdminPage("ask", "ask/<int:study>/<slug:kind>/", ask_for_job),
        AdminPage("cancel", "<int:pk>/cancel/", cancel_job, by_post=True),
        AdminPage("file", "<int:pk>/files/<str:name>", job_file),
    )
    page_related = list_select_related = ("study", "asked_by")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def visible_to(self, user: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(pk__in=jobs.jobs_of(user).order_by().values("pk"))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The user's jobs, the newest first. A page that is open asks for the table alone, again and again."""
        rows = jobs.jobs_of(request.user).defer("study__source_text", "study__stored_config").order_by("-pk")
        slug = request.GET.get("study", "")
        page = Paginator(rows.filter(study__slug=slug) if slug else rows, ON_A_PAGE).get_page(request.GET.get("p"))
        shown_jobs = [_shown(job, request.user) for job in page.object_list]
        context: dict[str, Any] = {
            "shown": shown_jobs,
            "page": page,
            "slug": slug,
            "is_waiting": any(shown_job.job.is_waiting for shown_job in shown_jobs),
        }
        template = "table.html" if "HX-Request" in request.headers else "list.html"
        return admin_page(request, f"job/{template}", title="Jobs", **context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Where other pages link to."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        job = self.readable_row(request, int(object_id) if object_id.isdecimal() else 0)
        shown_job = _shown(job, request.user)
        context = {"shown": [shown_job], "is_waiting": job.is_waiting}
        template = "table.html" if "HX-Request" in request.headers else "list.html"
        return admin_page(request, f"job/{template}", title=f"{shown_job.title} of {job.study}", one=job, **context)


def kinds_for(study: Study, user: Any) -> list[JobKind]:
    """What the user may ask for in the study, of what means anything there."""
    return [kind for kind in job_kinds.all_kinds() if rights.may(user, kind.right, study.pk) and kind.suits(study)]


def _shown(job: Job, user: Any) -> ShownJob:
    try:
        title = job_kinds.find_kind(job.kind).title
    except NotFound:  # An older version made it.
        title = job.kind
    left = job.time_left()
    return ShownJob(
        job,
        title,
        "" if left is None else in_words(left),
        job.files if job.asked_by_id == user.pk else [],
        job.is_waiting,
    )


def in_words(left: timedelta) -> str:
    seconds = int(left.total_seconds())
    if seconds < 60:
        return "less than a minute left"
    minutes = seconds // 60 + 1
    return f"about {minutes} minutes left" if minutes < 90 else f"about {round(minutes / 60)} hours left"
