"""Respondents, their sittings and answers, by pseudonym; and, separately, the panel's ids of a person."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from survey.contracts import instruments
from survey.models import (
    Assignment,
    AssignmentCondition,
    AttentionAnswer,
    CheckAttempt,
    ConditionLevel,
    Consent,
    DataChoice,
    FormAnswer,
    PanelIdentity,
    PracticeAnswer,
    QuestionReport,
    QuotaPlace,
    Respondent,
    Response,
    Sitting,
    Withdrawal,
)
from survey.read_only_admin import ReadOnlyAdmin, ReadOnlyInline, link_to
from survey.services.answers.blinding import shown_values
from survey.services.answers.counting import with_answers
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.rights import Right
from survey.services.sittings.identities import unseal
from survey.services.sittings.withdrawal import plan_withdrawal, withdraw

from .filters import deferred_study, level_filter, stage_filter, study_filter
from .replay_pages import ReplayPages
from .sitting_flags import ExclusionInline, FlagFilter, ScreenTimingInline, UnfinishedScreenInline


class SittingInline(ReadOnlyInline):
    model = Sitting
    fields = ("stage", "wave", "state", "started_at", "last_seen_at", "ended_at")
    related = ("stage__study", "respondent")
    show_change_link = True


@admin.register(Respondent)
class RespondentAdmin(ReadOnlyAdmin):
    list_display = ("pseudonym", "study", "is_simulated", "created_at")
    list_filter = (study_filter(), "is_simulated")
    list_select_related = ("study",)
    deferred = deferred_study("study")
    search_fields = ("pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = ("pseudonym", "study", "is_simulated", "created_at", "came_before", "withdrawn")
    readonly_fields = ("pseudonym", "created_at", "withdrawn")
    inlines = (SittingInline,)
    change_form_template = "admin/survey/respondent/page.html"

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/withdraw/", wrap(self.withdraw_view), name="survey_respondent_withdraw"),
            *super().get_urls(),
        ]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        respondent: Respondent = kwargs["obj"]
        context["may_withdraw"] = (
            rights.may(request.user, Right.WITHDRAW, respondent.study_id)
            and not Withdrawal.objects.filter(respondent=respondent).exists()
        )
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="withdrew all answers")
    def withdrawn(self, respondent: Respondent) -> SafeString | str:
        taken_back = Withdrawal.objects.filter(respondent=respondent).first()
        return link_to(taken_back, f"{taken_back.at:%Y-%m-%d}" if taken_back else "")

    def withdraw_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Delete a person's answers at their request. GET shows what would be deleted, POST deletes it."""
        respondent: Respondent | None = self.get_queryset(request).filter(pk=pk).first()
        if respondent is None:
            raise Http404
        rights.require(request.user, Right.WITHDRAW, respondent.study_id)
        if not self.has_view_permission(request, respondent):
            raise PermissionDenied
        if request.method == "POST":
            reason = request.POST.get("reason", "").replace("\x00", "")
            done = withdraw(respondent=respondent, now=timezone.now(), reason=reason, by=request.user, via="admin")
            messages.success(request, f"{done.answers} answers of {respondent} are deleted.")
            return HttpResponseRedirect(reverse("admin:survey_respondent_change", args=[pk]))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": f"Delete what {respondent} gave?",
            "respondent": respondent,
            "plan": plan_withdrawal(respondent),
        }
        return TemplateResponse(request, "admin/survey/respondent/withdraw.html", context)


class ConditionInline(ReadOnlyInline):
    model = ConditionLevel
    fields = ("factor", "level", "probability", "seed")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(sitting__stage__study__is_blind=False)


class ItemConditionInline(ReadOnlyInline):
    model = AssignmentCondition
    fields = ("factor", "level", "probability", "seed")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(assignment__slot__stage__study__is_blind=False)


class ConsentInline(ReadOnlyInline):
    model = Consent
    fields = ("version", "language", "given_at", "text_sha256")
    related = ("sitting__respondent", "sitting__stage__study")


class CheckAttemptInline(ReadOnlyInline):
    model = CheckAttempt
    fields = ("attempt", "answers", "shown", "passed", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class PracticeAnswerInline(ReadOnlyInline):
    model = PracticeAnswer
    fields = ("number", "screen", "data", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class AttentionAnswerInline(ReadOnlyInline):
    model = AttentionAnswer
    fields = ("name", "position", "answer", "shown", "passed", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class QuestionReportInline(ReadOnlyInline):
    model = QuestionReport
    fields = ("assignment", "screen", "text", "at")
    related = (
        "assignment__slot__stage__study",
        "assignment__sitting__respondent",
        "assignment__sitting__stage__study",
        "sitting__respondent",
        "sitting__stage__study",
    )


class DataChoiceInline(ReadOnlyInline):
    model = DataChoice
    fields = ("may_use", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class FormAnswerInline(ReadOnlyInline):
    model = FormAnswer
    fields = ("block", "version", "answers", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class QuotaPlaceInline(ReadOnlyInline):
    model = QuotaPlace
    fields = ("quota", "cell", "state", "answers", "at")
    related = ("sitting__respondent", "sitting__stage__study")


class AssignmentInline(ReadOnlyInline):
    model = Assignment
    fields = ("position", "slot", "state", "assigned_at", "completed_at")
    related = ("slot__stage__study", "sitting__respondent", "sitting__stage__study")
    show_change_link = True


@admin.register(Sitting)
class SittingAdmin(ReplayPages):
    change_form_template = "admin/survey/sitting/page.html"
    list_display = ("respondent", "stage", "state", "flags", "step", "started_at", "last_seen_at")
    list_filter = (
        study_filter("stage__study"),
        stage_filter(),
        "state",
        level_filter("conditions"),
        FlagFilter,
        ("respondent__is_simulated", admin.BooleanFieldListFilter),
    )
    list_select_related = ("respondent", "stage__study")
    search_fields = ("respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = (
        "respondent",
        "stage",
        "wave",
        "booklet",
        "state",
        "flags",
        "language",
        "step",
        "block",
        "started_at",
        "last_seen_at",
        "expired_at",
        "ended_at",
        "withdrawn_at",
        "study_sha256",
    )
    readonly_fields = ("flags",)
    inlines = (
        ExclusionInline,
        ConditionInline,
        ConsentInline,
        PracticeAnswerInline,
        CheckAttemptInline,
        AssignmentInline,
        AttentionAnswerInline,
        FormAnswerInline,
        QuotaPlaceInline,
        QuestionReportInline,
        DataChoiceInline,
        ScreenTimingInline,
        UnfinishedScreenInline,
    )


class ResponseInline(ReadOnlyInline):
    model = Response
    fields = ("number", "screen", "answered_at", "server_ms", "client")
    related = (
        "assignment__slot__stage__study",
        "assignment__sitting__respondent",
        "assignment__sitting__stage__study",
    )


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    """An answer, with what the study's instrument exports of it."""

    list_display = ("respondent", "stage", "slot_number", "position", "state", "assigned_at", "completed_at")
    list_filter = (
        study_filter("slot__stage__study"),
        stage_filter("slot__stage"),
        "state",
        "slot__role",
        level_filter("conditions", "sitting__conditions"),
    )
    list_select_related = ("sitting__respondent", "slot__stage__study")
    deferred = deferred_study("slot__stage__study")
    search_fields = ("sitting__respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = ("sitting", "slot", "position", "state", "assigned_at", "completed_at", "content")
    readonly_fields = ("content",)
    inlines = (ItemConditionInline, ResponseInline)

    @admin.display(ordering="sitting__respondent__pseudonym")
    def respondent(self, assignment: Assignment) -> str:
        return assignment.sitting.respondent.pseudonym

    @admin.display(ordering="slot__stage")
    def stage(self, assignment: Assignment) -> str:
        return str(assignment.slot.stage)

    @admin.display(description="slot", ordering="slot__number")
    def slot_number(self, assignment: Assignment) -> int:
        return assignment.slot.number

    @admin.display(description="item and answer")
    def content(self, assignment: Assignment) -> SafeString:
        study = assignment.slot.stage.study
        if problem := instruments.problem_with(study.instrument):
            return format_html_join("", "{}", [(problem,)])
        (full,) = with_answers(Assignment.objects.filter(pk=assignment.pk), study)
        export = instruments.of_study(study).export
        names = [column.name for column in export.columns]
        values = shown_values(study, names, export.values(full), export.columns_revealing_condition)
        rows = zip(export.columns, values, strict=True)
        return format_html_join(
            "",
            '<div class="hunch-pair"><span title="{}">{}</span> <span>{}</span></div>',
            (
                (column.description, column.name.replace("_", " "), "–" if value is None else value)
                for column, value in rows
            ),
        )


@admin.register(PanelIdentity)
class PanelIdentityAdmin(ReadOnlyAdmin):
    """The only place that shows the panel's ids of a person. The audit records each look."""

    right = Right.SEE_IDENTITIES
    list_display = ("respondent", "study", "panel", "created_at")
    list_filter = (study_filter(), "panel")
    list_select_related = ("respondent", "study")
    deferred = (*deferred_study("study"), "ids_encrypted")
    search_fields = ("respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = ("respondent", "study", "panel", "person", "panel_study", "submission", "created_at")
    readonly_fields = ("person", "panel_study", "submission", "created_at")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Not the model's view permission: people who may see everything else may not see this.
        return bool(request.user.has_perm("survey.see_panel_identity"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        identity = self.get_object(request, object_id)
        if identity is not None and self.has_view_permission(request, identity):
            record("see_panel_identity", identity.respondent, by=request.user, via="admin", study=identity.study.slug)
        return super().change_view(request, object_id, form_url, extra_context)

    def _ids(self, identity: PanelIdentity, name: str) -> str:
        ids = unseal(bytes(identity.ids_encrypted).decode())
        if not identity.ids_encrypted:
            return "removed (purge_identities)"
        return "cannot be read: the identity key has changed" if ids is None else getattr(ids, name) or "–"

    @admin.display(description="person's id")
    def person(self, identity: PanelIdentity) -> str:
        return self._ids(identity, "person")

    @admin.display(description="the panel's study id")
    def panel_study(self, identity: PanelIdentity) -> str:
        return self._ids(identity, "study")

    @admin.display(description="submission id")
    def submission(self, identity: PanelIdentity) -> str:
        return self._ids(identity, "submission")
