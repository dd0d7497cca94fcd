"""Banks, tasks and questions. An imported bank never changes, except that questions can be flagged with a reason."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.admin_base.read_only_admin import AdminPage, HunchAdmin, ReadOnlyAdmin, admin_page, link, shortened
from survey.exceptions import FieldErrors, HunchError, StateRefused
from survey.models import Bank, Question, Study, Task
from survey.services.banks import judging_again, question_flags
from survey.services.base import rights
from survey.services.base.rights import Right

from .bank_upload import look_at_bank, send_bank
from .filters import TaskFilter

QUESTIONS_SHOWN = 5  # of a bank, on its own page
TASKS_SHOWN = 30
MAX_JUDGED_HERE = 5000  # Replies; judging one takes up to 4 ms, and a request must end.
DIFFERENCES_SHOWN = 200


def may_judge_again(user: Any, bank: Bank) -> bool:
    """It changes what reports of every study of the bank say, as flags do: the same people may."""
    visible = rights.visible_banks(user, Right.RUN).filter(pk=bank.pk)
    return user.has_perm("survey.change_question") and visible.exists()


def judge_again_page(request: HttpRequest, bank: Bank) -> HttpResponse:
    """Judge stored replies by the present rules. GET shows what would change, POST stores that and nothing else."""
    again, wrong = None, ""
    waiting = judging_again.waiting_answers(bank).count()
    if waiting <= MAX_JUDGED_HERE:
        if request.method == "POST":
            try:
                judging_again.judge_again(
                    bank, write=True, seen=request.POST.get("seen") or "-", by=request.user, via="admin"
                )
            except StateRefused as refusal:
                wrong = refusal.message
            else:
                messages.success(request, "The replies are judged by the present rules.")
                return HttpResponseRedirect(reverse("admin:survey_bank_change", args=[bank.pk]))
        again = judging_again.judge_again(bank, write=False)
    context: dict[str, Any] = {
        "title": f"Judge the replies to {bank} again?",
        "bank": bank,
        "waiting": waiting,
        "again": again,
        "wrong": wrong,
        "command": f"`hunch judge_again --bank {bank.name}@{bank.version}`",
    }
    if again is not None:
        lines = [
            str(replace(difference, studies=_seen_by(request.user, difference.studies)))
            for difference in again.differences
        ]
        lines += [line for scores in again.scores.values() for line in scores.differences]
        context |= {
            "changed": sum(not difference.studies for difference in again.differences),
            "lines": lines[:DIFFERENCES_SHOWN],
            "more": max(len(lines) - DIFFERENCES_SHOWN, 0),
            "resting": _seen_by(request.user, again.resting),
            "studies": _seen_by(request.user, again.studies),
        }
    return admin_page(request, "bank/judge_again.html", **context)


@admin.register(Bank)
class BankAdmin(ReadOnlyAdmin):
    help = "tour.md#banks"
    pages = (
        AdminPage("add", "add/", send_bank, help="tour.md#a-new-bank"),
        AdminPage("look", "upload/<int:pk>/", look_at_bank, help="tour.md#a-new-bank"),
        AdminPage(
            "judge_again",
            "<int:pk>/judge-again/",
            judge_again_page,
            may_open=may_judge_again,
            group="tools",
            links=link("Judge replies again"),
        ),
    )
    change_form_template = "admin/survey/bank/bank.html"
    list_display = ("name", "version", "question_count", "source_file", "created_at")
    search_fields = ("name",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rights.may_make_banks(request.user)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """With the bank's first questions, its largest tasks, and the way on to a study."""
        bank = kwargs.get("obj")
        if bank is not None:
            tasks = bank.tasks.annotate(count=Count("questions")).order_by("-count", "name")
            context |= {
                "questions": bank.questions.select_related("task").order_by("position")[:QUESTIONS_SHOWN],
                "tasks": tasks[:TASKS_SHOWN],
                "more_tasks": max(0, tasks.count() - TASKS_SHOWN),
                "may_make_studies": rights.may_make_studies(request.user),
            }
        return super().render_change_form(request, context, *args, **kwargs)


def _seen_by(user: Any, slugs: Sequence[str]) -> list[str]:
    """The studies that the user may see by their names, and how many others there are."""
    names = list(
        rights.visible(user, Study.objects.filter(slug__in=slugs)).order_by("slug").values_list("slug", flat=True)
    )
    others = len(slugs) - len(names)
    return names + ([f"{others} of other people"] if others else [])


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    help = "tour.md#banks"
    list_display = ("name", "domain", "bank")
    list_filter = ("bank",)
    list_select_related = ("bank",)
    search_fields = ("name", "domain")


class FlagForm(forms.ModelForm):
    user: Any = None

    class Meta:
        model = Question
        fields = ("flag", "flag_reason")
        labels = {"flag_reason": "Reason"}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            reason = question_flags.checked_reason(cleaned.get("flag") or "", cleaned.get("flag_reason") or "")
            cleaned["flag_reason"] = reason
        except FieldErrors as exc:
            for name, words in exc.errors.items():
                self.add_error(name, words)
        waiting = question_flags.waiting_stage(self.instance.bank_id)
        if waiting is not None and "flag" in self.changed_data:
            self.add_error(
                "flag",
                question_flags.while_waiting(waiting, self.user),
            )
        return cleaned


class FlagActionForm(ActionForm):
    """Fields next to the list's actions: which flag, and why."""

    flag = forms.ChoiceField(choices=Question.Flag.choices, required=False)
    reason = forms.CharField(max_length=question_flags.LONGEST_REASON, required=False)


@admin.register(Question)
class QuestionAdmin(HunchAdmin):
    """Text and key are as imported. A flagged question is left out of the plans that are drawn from now on."""

    help = "tour.md#banks"
    form = FlagForm
    actions = ("flag_selected",)
    action_form = FlagActionForm
    list_display = ("external_id", "task", "bank", "text_in_short", "has_key", "flag", "flag_reason")
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
                "fields": ("flag", "flag_reason", "flagged_by", "flagged_at"),
                "description": "A flagged question is not drawn any more. Stages that are planned keep it.",
            },
        ),
    )
    readonly_fields = (
        *("bank", "task", "position", "external_id", "shown", "stored", "answer_text", "reason_text", "extra"),
        *("flagged_by", "flagged_at"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A flag holds for every study of the bank. Anyone who runs one of them may set it."""
        if not super().has_change_permission(request, obj):
            return False
        if obj is None:
            return rights.studies_with(request.user, Right.RUN) != frozenset()
        return rights.visible_banks(request.user, Right.RUN).filter(pk=obj.bank_id).exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"user": request.user})

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
        question_flags.flag_questions(
            bank=obj.bank,
            external_ids=[obj.external_id],
            kind=obj.flag,
            reason=obj.flag_reason,
            by=request.user,
            via="admin",
        )

    @admin.action(description="Flag the selected questions", permissions=["change"])
    def flag_selected(self, request: HttpRequest, queryset: QuerySet[Question]) -> None:
        """With the flag and the reason next to the action; without a flag, theirs are taken away."""
        kind, reason = request.POST.get("flag", ""), request.POST.get("reason", "")
        by_bank: dict[Bank, list[str]] = {}
        for question in rights.visible(request.user, queryset.select_related("bank"), Right.RUN):
            by_bank.setdefault(question.bank, []).append(question.external_id)
        try:
            with transaction.atomic():
                changed = [
                    question
                    for bank, ids in by_bank.items()
                    for question in question_flags.flag_questions(
                        bank=bank, external_ids=ids, kind=kind, reason=reason, by=request.user, via="admin"
                    )
                ]
        except HunchError as refusal:
            self.message_user(request, refusal.message, messages.ERROR)
        else:
            self.message_user(request, f"{len(changed)} questions changed.", messages.SUCCESS)
