"""Banks, tasks and questions. A bank never changes once imported; only a question's flag does, with a reason."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.models import Bank, CandidateSet, Question, Stage, Task
from survey.read_only_admin import HunchAdmin, ReadOnlyAdmin, shortened
from survey.services.auditing import record

from .filters import TaskFilter


@admin.register(Bank)
class BankAdmin(ReadOnlyAdmin):
    list_display = ("name", "version", "question_count", "source_file", "created_at")
    search_fields = ("name",)


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("name", "domain", "bank")
    list_filter = ("bank",)
    list_select_related = ("bank",)
    search_fields = ("name", "domain")


class FlagForm(forms.ModelForm):
    class Meta:
        model = Question
        fields = ("flag", "flag_reason")
        labels = {"flag_reason": "Reason"}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        reason = (cleaned.get("flag_reason") or "").strip()
        if not cleaned.get("flag"):
            cleaned["flag_reason"] = ""
        elif not reason:
            self.add_error("flag_reason", "Say why: the reason is kept with the flag.")
        waiting = self._waiting_stage()
        if waiting is not None and "flag" in self.changed_data:
            self.add_error(
                "flag",
                f"The candidates of {waiting} are drawn and its plan is not: plan it first, so that both are of the "
                "same questions.",
            )
        return cleaned

    def _waiting_stage(self) -> Stage | None:
        """A stage between its candidates and its plan, which names questions by their place among the unflagged."""
        waiting = CandidateSet.objects.filter(
            stage__study__bank=self.instance.bank_id, stage__state=Stage.State.DRAFT
        ).select_related("stage__study")
        found = waiting.first()
        return found.stage if found else None


@admin.register(Question)
class QuestionAdmin(HunchAdmin):
    """Text and key are as imported. A flagged question is left out of the plans that are drawn from now on."""

    form = FlagForm
    list_display = ("external_id", "task", "bank", "text_in_short", "has_key", "flag")
    list_filter = ("bank", "flag", TaskFilter)
    list_select_related = ("bank", "task")
    search_fields = ("external_id", "text")
    search_help_text = "By id or words of the text."
    fieldsets = (
        (None, {"fields": ("bank", "task", "position", "external_id", "shown", "answer_text", "reason_text")}),
        ("As stored", {"fields": ("stored",), "classes": ("collapse",)}),
        (
            "Flag",
            {
                "fields": ("flag", "flag_reason"),
                "description": "A flagged question is not drawn any more. Stages that are planned keep it.",
            },
        ),
    )
    readonly_fields = ("bank", "task", "position", "external_id", "shown", "stored", "answer_text", "reason_text")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="text")
    def text_in_short(self, question: Question) -> str:
        return shortened(question.plain)

    @admin.display(description="key", boolean=True)
    def has_key(self, question: Question) -> bool:
        return bool(question.answer.strip())

    @admin.display(description="text")
    def shown(self, question: Question) -> SafeString:
        return format_html('<div class="hunch-question">{}</div>', question.html)

    @admin.display(description="text as in the file")
    def stored(self, question: Question) -> SafeString:
        return format_html('<pre class="hunch-text">{}</pre>', question.text)

    @admin.display(description="key")
    def answer_text(self, question: Question) -> str:
        return question.answer or "–"

    @admin.display(description="why the key is right")
    def reason_text(self, question: Question) -> str:
        return question.reason or "–"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not form.changed_data:
            return
        obj.save(update_fields=["flag", "flag_reason"])
        record(
            "flag_question",
            f"{obj.bank} question {obj.external_id}",
            by=request.user,
            via="admin",
            flag=obj.flag,
            before=form.initial.get("flag", ""),
            reason=obj.flag_reason,
        )
