"""The studies with all their pages, and the lists of studies and stages."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, link, link_to, pretty_json
from survey.figures.words import spaced
from survey.models import Stage, Study
from survey.services.base import rights
from survey.services.base.rights import Right

from . import (
    answers,
    builder,
    estimates,
    exports,
    home,
    leaderboard,
    members,
    receivers,
    report_pages,
    stage_actions,
    study_actions,
    study_file,
    study_making,
    study_page,
    test_copies,
    waves,
)
from .confirming import offers
from .filters import TestCopyFilter, deferred_study, study_filter

RECEIVER = "<int:pk>/receivers/<int:receiver>/"
REPORT = "<int:pk>/reports/<slug:name>/"
PAGES = (
    # How it goes and what came out
    AdminPage("live", "<int:pk>/live/", study_page.live_part, help="tour.md#run"),
    AdminPage(
        "estimates",
        "<int:pk>/estimates/",
        estimates.page,
        group="results",
        links=link("Estimates"),
        help="tour.md#estimates",
    ),
    AdminPage(
        "leaderboard",
        "<int:pk>/leaderboard/",
        leaderboard.page,
        group="results",
        links=link("Leaderboard"),
        help="predictors.md",
    ),
    AdminPage("report", REPORT, report_pages.report_page, help=report_pages.help_of_report),
    AdminPage(
        "report_take",
        f"{REPORT}files/",
        report_pages.take_files,
        Right.EXPORT,
        by_post=True,
        help=report_pages.help_of_report,
    ),
    AdminPage(
        "report_file",
        f"{REPORT}<str:file>",
        report_pages.report_file,
        Right.EXPORT,
        by_post=True,
        help=report_pages.help_of_report,
    ),
    AdminPage(
        "answers",
        "<int:pk>/answers/",
        answers.page,
        Right.READ_ANSWERS,
        group="data",
        links=link("Answers"),
        help="tour.md#answers",
    ),
    AdminPage(
        "answers_file", "<int:pk>/answers/file/", answers.take, Right.EXPORT, by_post=True, help="tour.md#answers"
    ),
    AdminPage("export", "<int:pk>/export/<str:name>", exports.export_file, help="how-a-study-runs.md#the-data"),
    # Running it
    AdminPage("try", "<int:pk>/try/", test_copies.try_page, group="run", links=link("Try out"), help="trying-out.md"),
    AdminPage(
        "test_copy",
        "<int:pk>/try/copy/<slug:what>/",
        test_copies.copy_page,
        Right.RUN,
        help="trying-out.md#the-test-copy",
    ),
    AdminPage("action", "<int:pk>/stages/<int:index>/<slug:name>/", stage_actions.page, Right.RUN, help="tour.md#run"),
    AdminPage(
        "wave", "<int:pk>/waves/<int:wave>/", waves.page, group="run", links=waves.links, help="study-file.md#waves"
    ),
    # Its members. Who is not logged in is led to the login first, and comes back to the invitation. The secret is in
    # the query, which no log line holds.
    AdminPage(
        "members",
        "<int:pk>/members/",
        members.members_page,
        group="settings",
        links=link("Members"),
        help="rights.md#members",
    ),
    AdminPage("invite", "<int:pk>/members/invite/", members.invite, Right.MANAGE_MEMBERS, help="rights.md#members"),
    AdminPage("member", "<int:pk>/members/<int:member>/", members.member_page, help="rights.md#members"),
    AdminPage(
        "revoke_invitation",
        "<int:pk>/invitations/<int:invitation>/revoke/",
        members.revoke,
        Right.MANAGE_MEMBERS,
        help="rights.md#members",
    ),
    AdminPage("invitation", "invitation/", members.accept, help="rights.md#members"),
    # Where its alerts go
    AdminPage(
        "receivers",
        "<int:pk>/receivers/",
        receivers.page,
        Right.RUN,
        group="settings",
        links=link("Who gets alerts"),
        help="tour.md#alerts",
    ),
    AdminPage("receiver", RECEIVER, receivers.receiver_page, Right.RUN, help="tour.md#alerts"),
    AdminPage(
        "receiver_action",
        f"{RECEIVER}<slug:name>/",
        receivers.receiver_action,
        Right.RUN,
        by_post=True,
        help="tour.md#alerts",
    ),
    # Its file
    AdminPage("add", "add/", study_making.new_study, help="tour.md#a-new-study"),
    AdminPage(
        "build",
        "<int:pk>/build/",
        builder.build_page,
        may_open=study_file.may_change,
        group="file",
        links=lambda user, study: [] if study.is_test else [("Open the builder", ())],
        help="tour.md#the-builder",
    ),
    AdminPage("check", "check-file/", study_making.check_text, by_post=True, help="study-file.md"),
    AdminPage(
        "amend",
        "<int:pk>/amend/",
        study_file.amend_page,
        may_open=study_file.may_change,
        group="file",
        links=study_file.amend_links,
        help="study-file.md#changing-a-study",
    ),
    AdminPage(
        "duplicate",
        "<int:pk>/duplicate/",
        study_making.duplicate,
        may_open=study_making.may_duplicate,
        by_post=True,
        help="tour.md#a-new-study",
    ),
    AdminPage(
        "archive",
        "<int:pk>/archive/",
        study_actions.archive_page,
        Right.EDIT,
        group="file",
        links=study_actions.archive_links,
        help="tour.md#settings",
    ),
    AdminPage(
        "remove_ids",
        "<int:pk>/remove-ids/",
        study_actions.remove_ids_page,
        Right.WITHDRAW,
        group="settings",
        links=lambda user, study: [] if study.is_test else [(study_actions.REMOVE_IDS.label, ())],
        help="prolific.md#where-the-ids-are",
    ),
    AdminPage(
        "unblind",
        "<int:pk>/unblind/",
        study_actions.unblind_page,
        Right.UNBLIND,
        group="unblind",
        links=offers(study_actions.UNBLIND),
        help="study-file.md#blind-studies",
    ),
)


@admin.register(Study)
class StudyAdmin(ReadOnlyAdmin):
    """Studies come from study files. A study's page shows how it goes, and runs it."""

    help = "tour.md#the-page-of-a-study"
    pages = PAGES
    page_related = ("bank", "test_of")
    list_display = ("slug", "title", "bank", "kind", "states", "created_by", "created_at")
    list_filter = (TestCopyFilter,)
    list_select_related = ("bank", "created_by")
    deferred = ("source_text", "stored_config")
    search_fields = ("slug", "title")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights.may_make_studies(request.user)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("stages")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        study = study_page.whole_study(request.user, object_id)
        if study is None:
            raise Http404
        if not self.has_view_permission(request, study):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        return study_page.page(request, study, links=self.links_of(request.user, study))

    cards = staticmethod(home.cards)

    @admin.display(description="instrument", ordering="instrument")
    def kind(self, study: Study) -> str:
        return spaced(study.instrument)

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


@admin.register(Stage)
class StageAdmin(ReadOnlyAdmin):
    help = "how-a-study-runs.md"
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
