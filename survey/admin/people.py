"""Respondents, their sittings and answers, by pseudonym; and, separately, the panel's ids of a person."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, ReadOnlyInline, inline_of, link, link_to
from survey.contracts import instruments
from survey.figures.words import date_and_time
from survey.models import (
    Assignment,
    AssignmentCondition,
    AttentionAnswer,
    CheckAttempt,
    ConditionLevel,
    Consent,
    DataChoice,
    Exclusion,
    FormAnswer,
    PanelIdentity,
    PracticeAnswer,
    QuestionReport,
    QuotaPlace,
    Respondent,
    Response,
    ScreenTiming,
    Sitting,
    UnfinishedScreen,
    Withdrawal,
)
from survey.services.base.auditing import record
from survey.services.base.rights import Right
from survey.services.results.export.answers_file import instrument_values
from survey.services.sittings.identities import unseal
from survey.services.sittings.withdrawal import Plan, plan_withdrawal, withdraw

from .confirming import ConfirmedAction, WordsField, about, confirm, offers
from .filters import deferred_study, level_filter, stage_filter, study_filter
from .replay_pages import person_action, replay_page
from .sitting_flags import FlagFilter, FlaggedSittings

OF_SITTING = ("sitting__respondent", "sitting__stage__study")
OF_ASSIGNMENT = (
    "assignment__slot__stage__study",
    "assignment__sitting__respondent",
    "assignment__sitting__stage__study",
)


class WithdrawalForm(forms.Form):
    reason = WordsField(
        label="How you came to know",
        widget=forms.TextInput(attrs={"maxlength": "300", "placeholder": "A letter of 3 May"}),
    )


def _withdraw(respondent: Respondent, **by: Any) -> str:
    done = withdraw(respondent=respondent, now=timezone.now(), **by)
    return f"{done.answers} answers of {respondent} are deleted."


WITHDRAW = ConfirmedAction(
    "withdraw",
    "Withdraw",
    "Everything that the person gave is deleted, as the person wished. What stays is the shape of the plan, that "
    "consent was given and taken back, and what a payment needs.",
    _withdraw,
    Right.WITHDRAW,
    is_offered=lambda respondent: not Withdrawal.objects.filter(respondent=respondent).exists(),
    form=WithdrawalForm,
    is_final=True,
    button="Delete the answers",
)


def withdraw_page(request: HttpRequest, respondent: Respondent) -> HttpResponse:
    """Delete a person's answers at their request. GET shows what would be deleted, POST deletes it."""
    plan = plan_withdrawal(respondent) if request.method != "POST" else None
    confirmation = about(
        respondent,
        f"Delete what {respondent} gave?",
        facts=lambda: _to_be_deleted(plan) if plan else (),
        notes=_what_follows(plan) if plan else (),
    )
    return confirm(request, WITHDRAW, respondent, confirmation)


def _to_be_deleted(plan: Plan) -> list[tuple[str, int]]:
    return [("Complete answers", plan.answers), *((capfirst(table), rows) for table, rows in plan.removed.items())]


def _what_follows(plan: Plan) -> list[str]:
    notes = []
    for part in plan.stages:
        stay = f"frozen. {part['answers']} keyed hashes stay and are marked as withdrawn."
        notes.append(
            f"Stage {part['stage']}: {stay if part['frozen'] else 'its slots are dealt again while it is open.'}"
        )
    for run in plan.runs:
        notes.append(f"{run} had learnt from the answers and keeps what it learnt: train it again where that matters.")
    return [*notes, "The panel's ids go once the payment is settled."]


@admin.register(Respondent)
class RespondentAdmin(ReadOnlyAdmin):
    help = "tour.md#people"
    pages = (
        AdminPage(
            "withdraw", "<int:pk>/withdraw/", withdraw_page, Right.WITHDRAW, group="tools", links=offers(WITHDRAW)
        ),
    )
    list_display = ("pseudonym", "study", "is_simulated", "created_at")
    list_filter = (study_filter(), "is_simulated")
    list_select_related = ("study",)
    deferred = deferred_study("study")
    search_fields = ("pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = ("pseudonym", "study", "is_simulated", "created_at", "came_before", "withdrawn")
    readonly_fields = ("pseudonym", "created_at", "withdrawn")
    inlines = (
        inline_of(
            Sitting,
            *("stage", "wave", "state", "started_at", "last_seen_at", "ended_at"),
            related=("stage__study", "respondent"),
            show_change_link=True,
        ),
    )

    @admin.display(description="withdrew all answers")
    def withdrawn(self, respondent: Respondent) -> SafeString | str:
        taken_back = Withdrawal.objects.filter(respondent=respondent).first()
        return link_to(taken_back, date_and_time(taken_back.at) if taken_back else "")


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


@admin.register(Sitting)
class SittingAdmin(FlaggedSittings):
    help = "tour.md#people"
    pages = (
        AdminPage(
            "replay",
            "<int:pk>/replay/",
            replay_page,
            group="tools",
            links=link("Replay"),
            help="how-a-study-runs.md#watching-it",
        ),
        AdminPage("action", "<int:pk>/do/<slug:name>/", person_action),
    )
    page_related = ("stage__study__bank", "respondent")
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
        inline_of(Exclusion, "flags", "decided_at", "stage", related=(*OF_SITTING, "stage__study")),
        ConditionInline,
        inline_of(Consent, "version", "language", "given_at", "text_sha256", related=OF_SITTING),
        inline_of(PracticeAnswer, "number", "screen", "data", "at", related=OF_SITTING),
        inline_of(CheckAttempt, "attempt", "answers", "shown", "passed", "at", related=OF_SITTING),
        inline_of(
            Assignment,
            *("position", "slot", "state", "assigned_at", "completed_at"),
            related=("slot__stage__study", *OF_SITTING),
            show_change_link=True,
        ),
        inline_of(AttentionAnswer, "name", "position", "answer", "shown", "passed", "at", related=OF_SITTING),
        inline_of(FormAnswer, "block", "version", "answers", "at", related=OF_SITTING),
        inline_of(QuotaPlace, "quota", "cell", "state", "answers", "at", related=OF_SITTING),
        inline_of(QuestionReport, "assignment", "screen", "text", "at", related=(*OF_ASSIGNMENT, *OF_SITTING)),
        inline_of(DataChoice, "may_use", "at", related=OF_SITTING),
        inline_of(ScreenTiming, "step", "kind", "name", "taken_at", "server_ms", "client", related=OF_SITTING),
        inline_of(UnfinishedScreen, "step", "number", "kind", "name", "left_at", "client", related=OF_SITTING),
    )


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    """An answer, with what the study's instrument exports of it."""

    help = "tour.md#answers"
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
    inlines = (
        ItemConditionInline,
        inline_of(Response, "number", "screen", "answered_at", "server_ms", "client", related=OF_ASSIGNMENT),
    )

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
        rows = zip(instruments.of_study(study).export.columns, instrument_values(assignment), strict=True)
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

    help = "prolific.md#where-the-ids-are"
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
            return "removed, as was promised"
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
