"""A study at its panel: the reconciliation page with its actions, and the rows behind it.

People are shown only by pseudonym: the panel's ids are in no list, page or search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from survey.contracts import panels
from survey.contracts.panels import PostingState
from survey.exceptions import HunchError
from survey.models import Payment, PaymentBatch, Posting, Submission, WebhookEvent
from survey.panels import money, postings, reconciliation, submissions
from survey.panels.asking import can_ask, state_of
from survey.panels.postings import Move
from survey.panels.reconciliation import Action, Reconciliation
from survey.read_only_admin import ReadOnlyAdmin, ReadOnlyInline, shortened
from survey.services.sittings.hourly_pay import hourly_pay

from .filters import deferred_study, study_filter

RECRUIT, PAY = "survey.recruit", "survey.pay_people"


@dataclass(frozen=True)
class PostingAction:
    """Something a researcher can do to a posting: who may do it, which call of the panel it needs, when it is offered,
    the question that is asked first, and the function that does it."""

    name: str
    label: str
    explanation: str
    permission: str
    needs: str
    is_offered: Callable[[Posting, Reconciliation], bool]
    run: Callable[[Posting, Any], str]
    is_final: bool = False


def _read(posting: Posting, user: Any) -> str:
    return f"{submissions.read_posting(posting)} submissions read."


def _publish(posting: Posting, user: Any) -> str:
    postings.publish(posting, by=user, via="admin")
    return "Published: the panel shows it to people now."


def _change(move: Move) -> Callable[[Posting, Any], str]:
    def run(posting: Posting, user: Any) -> str:
        return f"The panel says {postings.change(posting, move, by=user, via='admin').state} now."

    return run


def _approve(posting: Posting, user: Any) -> str:
    return f"{reconciliation.approve_finished(posting, by=user, via='admin')} submissions approved."


def _ask_back(posting: Posting, user: Any) -> str:
    return f"{reconciliation.ask_back(posting, by=user, via='admin')} people asked to return."


def _pay(posting: Posting, user: Any) -> str:
    people = sum(batch.payments.count() for batch in money.pay_owed(posting, by=user, via="admin"))
    return f"{people} bonuses paid."


ACTIONS = (
    PostingAction(
        "read",
        "Read the panel now",
        "Asks the panel for every submission. The workers do so every five minutes by themselves.",
        RECRUIT,
        "submissions",
        lambda posting, _found: True,
        _read,
    ),
    PostingAction(
        "publish",
        "Publish",
        "The panel shows the study to people, and its places may cost their reward from now on.",
        RECRUIT,
        "publish",
        lambda posting, _found: posting.published_at is None,
        _publish,
        is_final=True,
    ),
    PostingAction(
        "pause",
        "Pause",
        "The panel sends nobody else. Those inside finish.",
        RECRUIT,
        "pause",
        lambda posting, _found: state_of(posting) == PostingState.ACTIVE,
        _change(Move.PAUSE),
    ),
    PostingAction(
        "start",
        "Start",
        "The panel goes on sending people.",
        RECRUIT,
        "start",
        lambda posting, _found: state_of(posting) in (PostingState.PAUSED, PostingState.AWAITING_REVIEW),
        _change(Move.START),
    ),
    PostingAction(
        "approve",
        "Approve those who finished",
        "Everybody who finished here and waits for review is approved and gets the reward.",
        RECRUIT,
        "approve",
        lambda _posting, found: bool(found.to(Action.APPROVE)),
        _approve,
        is_final=True,
    ),
    PostingAction(
        "ask-back",
        "Ask for returns",
        "Everybody who handed in without finishing is asked to return the submission, each person once.",
        RECRUIT,
        "ask_to_return",
        lambda _posting, found: bool(found.to(Action.ASK_BACK)),
        _ask_back,
    ),
    PostingAction(
        "pay",
        "Pay what is owed",
        "Bonuses to everybody who is owed one. They are sent once, and cannot be taken back.",
        PAY,
        "pay_bonuses",
        lambda _posting, found: found.owed_cents > 0,
        _pay,
        is_final=True,
    ),
)
ACTION_BY_NAME = {action.name: action for action in ACTIONS}


@admin.register(Posting)
class PostingAdmin(ReadOnlyAdmin):
    """A posting's page is its reconciliation."""

    list_display = ("name", "study", "state", "places", "pay", "published_at", "read_at", "problem")
    list_filter = (study_filter(), "state")
    list_select_related = ("study", "stage__study")
    deferred = (*deferred_study("study"), *deferred_study("stage__study"), "draft")
    search_fields = ("internal_name",)

    @admin.display(description="posting", ordering="pk")
    def name(self, posting: Posting) -> str:
        return str(posting)

    @admin.display(description="reward", ordering="reward")
    def pay(self, posting: Posting) -> str:
        return f"{posting.reward / 100:.2f} {posting.currency}"

    @admin.display(description="could not be read")
    def problem(self, posting: Posting) -> str:
        return shortened(posting.error) or "–"

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/do/<slug:name>/", wrap(self.action_view), name="survey_posting_action"),
            path("<int:pk>/settle/<int:row>/", wrap(self.settle_view), name="survey_posting_settle"),
            path("<int:pk>/payment/<int:batch>/", wrap(self.payment_view), name="survey_posting_payment"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        posting = self._posting(object_id)
        if posting is None:
            return super().change_view(
                request, object_id, form_url, extra_context
            )  # Shows a message and goes to the list.
        if not self.has_view_permission(request, posting) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        found = reconciliation.reconcile(posting)
        batches = posting.payment_batches.annotate(cents=Sum("payments__amount"), people=Count("payments"))
        return self._page(
            request,
            "page.html",
            title=str(posting),
            posting=posting,
            found=found,
            waiting=len(found.to(Action.WAIT)),
            differences=[one for one in found.differences if one.judgement.action != Action.WAIT],
            owed=[one for finding in found.findings for one in finding.owed],
            batches=batches,
            committed=money.committed(posting.study),
            cap=posting.study.config.panel.spending_cap,
            pay=hourly_pay(posting.study),
            problem=panels.find(posting.panel).problem,
            leads_to_a_closed_door=postings.leads_to_a_closed_door(posting),
            actions=[action for action in ACTIONS if self._may(request, action, posting, found)],
            may_recruit=request.user.has_perm(RECRUIT),
            may_pay=request.user.has_perm(PAY),
        )

    def action_view(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """GET asks first, POST acts."""
        action, posting = ACTION_BY_NAME.get(name), self._posting(pk)
        if action is None or posting is None:
            raise Http404
        if not request.user.has_perm(action.permission) or not self.has_view_permission(request, posting):
            raise PermissionDenied
        if request.method == "POST":
            return self._act(request, posting, action.label, lambda: action.run(posting, request.user))
        return self._page(
            request,
            "action.html",
            title=f"{action.label}: {posting}?",
            posting=posting,
            action=action,
            found=reconciliation.reconcile(posting),
        )

    def settle_view(self, request: HttpRequest, pk: int, row: int) -> HttpResponse:
        """Store what somebody decided about one difference."""
        posting = self._posting(pk)
        submission = Submission.objects.filter(posting=posting, pk=row).first() if posting else None
        if posting is None or submission is None:
            raise Http404
        if not request.user.has_perm(RECRUIT):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])

        def settle() -> str:
            text = request.POST.get("resolution", "")
            reconciliation.settle_difference(submission, text, by=request.user, via="admin")
            return "Settled."

        return self._act(request, posting, "Settle", settle)

    def payment_view(self, request: HttpRequest, pk: int, batch: int) -> HttpResponse:
        """Store what somebody saw at the panel about a payment whose outcome is unknown."""
        posting = self._posting(pk)
        found = PaymentBatch.objects.filter(posting=posting, pk=batch).first() if posting else None
        if posting is None or found is None:
            raise Http404
        if not request.user.has_perm(PAY):
            raise PermissionDenied
        if request.method != "POST" or request.POST.get("said") not in ("paid", "not-paid"):
            return HttpResponseNotAllowed(["POST"])

        def settle() -> str:
            money.settle(found, was_paid=request.POST["said"] == "paid", by=request.user, via="admin")
            return "Written down."

        return self._act(request, posting, "Payment", settle)

    def _act(self, request: HttpRequest, posting: Posting, label: str, act: Callable[[], str]) -> HttpResponse:
        try:
            messages.success(request, act())
        except HunchError as exc:
            messages.error(request, f"{label}: {exc.message}")
        return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[posting.pk]))

    def _may(self, request: HttpRequest, action: PostingAction, posting: Posting, found: Reconciliation) -> bool:
        client = panels.find(posting.panel).client
        return (
            bool(posting.external_id)
            and client is not None
            and can_ask(posting.panel)
            and client.can(action.needs)
            and request.user.has_perm(action.permission)
            and action.is_offered(posting, found)
        )

    @staticmethod
    def _posting(pk: Any) -> Posting | None:
        if not str(pk).isdecimal():
            return None
        return Posting.objects.select_related("study__bank", "stage__study").filter(pk=pk).first()

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return TemplateResponse(
            request,
            f"admin/survey/posting/{template}",
            {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media, **context},
        )


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    list_display = ("number", "posting", "respondent", "status", "seconds", "started_at", "completed_at", "resolution")
    list_filter = (study_filter("posting__study"), "status")
    list_select_related = ("posting__stage__study", "respondent")
    deferred = ("ids_encrypted", "submission_hash", *deferred_study("posting__stage__study"))
    search_fields = ("respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = (
        *("posting", "respondent", "status", "started_at", "completed_at", "seconds", "read_at"),
        *("approved_at", "asked_back_at", "rejected_at", "resolution", "resolved_at"),
    )

    @admin.display(description="submission", ordering="pk")
    def number(self, submission: Submission) -> str:
        return f"number {submission.pk}"


class PaymentInline(ReadOnlyInline):
    model = Payment
    fields = ("submission", "kind", "amount", "is_void")
    related = ("submission__respondent",)


@admin.register(PaymentBatch)
class PaymentBatchAdmin(ReadOnlyAdmin):
    list_display = ("number", "posting", "state", "cents", "created_by", "created_at", "sent_at", "settled_at")
    list_filter = (study_filter("posting__study"), "state")
    list_select_related = ("posting__stage__study", "created_by")
    deferred = deferred_study("posting__stage__study")
    fields = ("posting", "state", "external_id", "error", "created_by", "created_at", "sent_at", "settled_at")
    inlines = (PaymentInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).annotate(sum=Sum("payments__amount"))

    @admin.display(description="payment", ordering="pk")
    def number(self, batch: PaymentBatch) -> str:
        return f"payment {batch.pk}"

    @admin.display(description="cents", ordering="sum")
    def cents(self, batch: Any) -> int:
        return int(batch.sum or 0)


@admin.register(WebhookEvent)
class WebhookEventAdmin(ReadOnlyAdmin):
    list_display = ("number", "event_type", "state", "tries", "received_at", "done_at", "said")
    list_filter = ("state", "event_type")
    deferred = ("body_encrypted",)
    fields = ("panel", "event_type", "state", "tries", "due_at", "error", "received_at", "done_at")

    @admin.display(description="event", ordering="pk")
    def number(self, event: WebhookEvent) -> str:
        return f"event {event.pk}"

    @admin.display(description="message")
    def said(self, event: WebhookEvent) -> str:
        return shortened(event.error) or "–"
