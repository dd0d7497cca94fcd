"""A study at its panel: the reconciliation page with its actions, and the rows behind it.

People are shown only by pseudonym: the panel's ids are in no list, page or search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, path

from survey.contracts import panels
from survey.contracts.panels import PostingState
from survey.figures import words
from survey.models import Payment, PaymentBatch, Posting, Submission, WebhookEvent
from survey.panels import accounts, money, posting_checks, postings, reconciliation, submissions
from survey.panels.asking import can_ask, state_of
from survey.panels.postings import Move
from survey.panels.reconciliation import Action, Reconciliation
from survey.read_only_admin import ReadOnlyAdmin, ReadOnlyInline, shortened
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings.hourly_pay import hourly_pay

from .drafting import DraftingPages, may_draft
from .filters import deferred_study, study_filter
from .sums import sum_error


@dataclass(frozen=True)
class PostingAction:
    """Something a researcher can do to a posting: who may do it, which call of the panel it needs, when it is offered,
    the question that is asked first, and the function that does it. What costs money says how many cents: anyone who
    does it types the sum, and the function does it for no other one."""

    name: str
    label: str
    explanation: str
    right: Right
    needs: str
    is_offered: Callable[[Posting, Reconciliation], bool]
    run: Callable[[Posting, Any, int | None], str]
    costs: Callable[[Posting, Reconciliation], int] | None = None
    is_for_good: bool = False

    @property
    def is_final(self) -> bool:
        return self.costs is not None or self.is_for_good


def _read(posting: Posting, user: Any, cents: int | None) -> str:
    return f"{submissions.read_posting(posting)} submissions read."


def _publish(posting: Posting, user: Any, cents: int | None) -> str:
    postings.publish(posting, cents=cents, by=user, via="admin")
    return "Published: the panel shows it to people now."


def _unschedule(posting: Posting, user: Any, cents: int | None) -> str:
    return f"The panel says {postings.unschedule(posting, by=user, via='admin').state} now."


def _change(move: Move) -> Callable[[Posting, Any, int | None], str]:
    def run(posting: Posting, user: Any, cents: int | None) -> str:
        return f"The panel says {postings.change(posting, move, by=user, via='admin').state} now."

    return run


def _approve(posting: Posting, user: Any, cents: int | None) -> str:
    return f"{reconciliation.approve_finished(posting, cents=cents, by=user, via='admin')} submissions approved."


def _ask_back(posting: Posting, user: Any, cents: int | None) -> str:
    return f"{reconciliation.ask_back(posting, by=user, via='admin')} people asked to return."


def _pay(posting: Posting, user: Any, cents: int | None) -> str:
    people = sum(batch.payments.count() for batch in money.pay_owed(posting, cents=cents, by=user, via="admin"))
    return f"{people} bonuses paid."


ACTIONS = (
    PostingAction(
        "read",
        "Read the panel now",
        "Asks the panel for every submission. The workers do so every five minutes by themselves.",
        Right.RECRUIT,
        "submissions",
        lambda posting, _found: True,
        _read,
    ),
    PostingAction(
        "publish",
        "Publish",
        "The panel shows the study to people, and its places may cost their reward from now on.",
        Right.SPEND,
        "publish",
        lambda posting, _found: posting.published_at is None,
        _publish,
        costs=lambda posting, _found: posting.cost,
    ),
    PostingAction(
        "unschedule",
        "Take the schedule back",
        "The posting is a draft again: the panel does not show it by itself, and it costs nothing.",
        Right.RECRUIT,
        "unschedule",
        lambda posting, _found: state_of(posting) == PostingState.SCHEDULED,
        _unschedule,
    ),
    PostingAction(
        "pause",
        "Pause",
        "The panel sends nobody else. Those inside finish.",
        Right.RECRUIT,
        "pause",
        lambda posting, _found: state_of(posting) == PostingState.ACTIVE,
        _change(Move.PAUSE),
    ),
    PostingAction(
        "start",
        "Start",
        "The panel goes on sending people.",
        Right.RECRUIT,
        "start",
        lambda posting, _found: state_of(posting) == PostingState.PAUSED,
        _change(Move.START),
    ),
    PostingAction(
        "stop",
        "Stop",
        "The panel ends the study for good: it sends nobody else, and cannot be started again.",
        Right.RECRUIT,
        "stop",
        lambda posting, _found: (
            posting.published_at is not None and state_of(posting) not in (PostingState.COMPLETED, PostingState.UNKNOWN)
        ),
        _change(Move.STOP),
        is_for_good=True,
    ),
    PostingAction(
        "approve",
        "Approve those who finished",
        "Everybody who finished here and waits for review is approved and gets the reward. The panel's fee comes on "
        "top.",
        Right.SPEND,
        "approve",
        lambda _posting, reconciled: bool(reconciled.to(Action.APPROVE)),
        _approve,
        costs=lambda posting, reconciled: reconciliation.cost_of_approving(reconciled),
    ),
    PostingAction(
        "ask-back",
        "Ask for returns",
        "Everybody who handed in without finishing is asked to return the submission, each person once.",
        Right.RECRUIT,
        "ask_to_return",
        lambda _posting, reconciled: bool(reconciled.to(Action.ASK_BACK)),
        _ask_back,
    ),
    PostingAction(
        "pay",
        "Pay what is owed",
        "Bonuses to everybody who is owed one. They are sent once, and cannot be taken back. The panel's fee comes on "
        "top.",
        Right.PAY,
        "pay_bonuses",
        lambda _posting, reconciled: reconciled.owed_cents > 0,
        _pay,
        costs=lambda _posting, reconciled: reconciled.owed_cents,
    ),
)
ACTION_BY_NAME = {action.name: action for action in ACTIONS}
# What somebody saw at the panel about a payment whose outcome is unknown.
OUTCOMES = {"paid": "It was paid", "not-paid": "It was not paid"}


@admin.register(Posting)
class PostingAdmin(DraftingPages):
    """A posting's page is its reconciliation."""

    right = Right.SEE_POSTINGS
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
        return words.money(posting.reward, posting.currency)

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
        posting = self._posting(request, object_id)
        if not self.has_view_permission(request, posting) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        reconciled = reconciliation.reconcile(posting)
        batches = posting.payment_batches.annotate(cents=Sum("payments__amount"), people=Count("payments"))
        return self._page(
            request,
            "page.html",
            title=str(posting),
            posting=posting,
            found=reconciled,
            waiting=len(reconciled.to(Action.WAIT)),
            differences=[
                difference for difference in reconciled.differences if difference.judgement.action != Action.WAIT
            ],
            owed=[debt for finding in reconciled.findings for debt in finding.owed],
            batches=batches,
            committed=money.committed(posting.study),
            cap=posting.study.config.panel.spending_cap,
            pay=hourly_pay(posting.study),
            account=accounts.account_of(posting) if posting.published_at else None,
            advice=accounts.advice_of(posting) if posting.published_at is None else None,
            problem=panels.find(posting.panel).problem,
            checks=_checks_of(posting),
            may_add_places=self._may_add_places(request, posting),
            may_schedule=self._may_schedule(request, posting),
            may_draft_again=not posting.external_id and may_draft(request.user, posting.study),
            leads_to_a_closed_door=postings.leads_to_a_closed_door(posting),
            actions=[action for action in ACTIONS if self._may(request, action, posting, reconciled)],
            may_recruit=rights.may(request.user, Right.RECRUIT, posting.study_id),
            outcomes=OUTCOMES if rights.may(request.user, Right.PAY, posting.study_id) else {},
        )

    def action_view(self, request: HttpRequest, pk: int, name: str) -> HttpResponse:
        """GET asks first, POST acts. What costs money is done only by a person who has typed the sum."""
        action, posting = ACTION_BY_NAME.get(name), self._posting(request, pk)
        if action is None:
            raise Http404
        self._require(request, action.right, posting)
        reconciled, cents, error = None, None, ""
        if action.costs is not None or request.method != "POST":
            reconciled = reconciliation.reconcile(posting)
        if action.costs is not None and reconciled is not None:
            cents = action.costs(posting, reconciled)
        if request.method == "POST":
            error = "" if cents is None else sum_error(request, cents, posting.currency)
            if not error:
                return self._act(request, posting, action.label, lambda: action.run(posting, request.user, cents))
        return self._page(
            request,
            "action.html",
            title=f"{action.label}: {posting}?",
            posting=posting,
            action=action,
            found=reconciled,
            cents=cents,
            error=error,
        )

    def settle_view(self, request: HttpRequest, pk: int, row: int) -> HttpResponse:
        """Store what somebody decided about one difference."""
        posting = self._posting(request, pk)
        submission = Submission.objects.filter(posting=posting, pk=row).first()
        if submission is None:
            raise Http404
        self._require(request, Right.RECRUIT, posting)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])

        def settle() -> str:
            text = request.POST.get("resolution", "")
            reconciliation.settle_difference(submission, text, by=request.user, via="admin")
            return "Settled."

        return self._act(request, posting, "Settle", settle)

    def payment_view(self, request: HttpRequest, pk: int, batch: int) -> HttpResponse:
        """Store what somebody saw at the panel about a payment whose outcome is unknown. GET asks first: what was not
        paid is owed again, and then paid again."""
        posting = self._posting(request, pk)
        payment_batch = PaymentBatch.objects.filter(posting=posting, pk=batch).first()
        if payment_batch is None:
            raise Http404
        self._require(request, Right.PAY, posting)
        said = (request.POST if request.method == "POST" else request.GET).get("said", "")
        if said not in OUTCOMES:
            raise Http404
        cents = payment_batch.payments.aggregate(sum=Sum("amount"))["sum"] or 0
        error = sum_error(request, cents, posting.currency) if request.method == "POST" else ""

        def settle() -> str:
            money.settle(payment_batch, was_paid=said == "paid", by=request.user, via="admin")
            return "Written down."

        if request.method == "POST" and not error:
            return self._act(request, posting, "Payment", settle)
        return self._page(
            request,
            "payment.html",
            title=f"{OUTCOMES[said]}: {payment_batch}?",
            posting=posting,
            batch=payment_batch,
            said=said,
            label=OUTCOMES[said],
            cents=cents,
            error=error,
        )

    def _may_schedule(self, request: HttpRequest, posting: Posting) -> bool:
        client = panels.find(posting.panel).client
        return (
            bool(posting.external_id)
            and posting.published_at is None
            and client is not None
            and can_ask(posting.panel)
            and client.can("schedule")
            and rights.may(request.user, Right.SPEND, posting.study_id)
        )

    def _may_add_places(self, request: HttpRequest, posting: Posting) -> bool:
        client = panels.find(posting.panel).client
        return (
            bool(posting.external_id)
            and client is not None
            and can_ask(posting.panel)
            and client.can("set_places")
            and state_of(posting) != PostingState.COMPLETED
            and rights.may(request.user, Right.SPEND, posting.study_id)
        )

    def _may(self, request: HttpRequest, action: PostingAction, posting: Posting, reconciled: Reconciliation) -> bool:
        client = panels.find(posting.panel).client
        return (
            bool(posting.external_id)
            and client is not None
            and can_ask(posting.panel)
            and client.can(action.needs)
            and rights.may(request.user, action.right, posting.study_id)
            and action.is_offered(posting, reconciled)
        )


def _checks_of(posting: Posting) -> list[posting_checks.PostingCheck]:
    """What stands between a draft and its publishing; nothing once it was published."""
    if posting.published_at is not None:
        return []
    return posting_checks.checks(posting.stage, places=posting.places, reward=posting.reward, posting=posting)


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    right = Right.SEE_POSTINGS
    list_display = ("number", "posting", "respondent", "status", "seconds", "started_at", "completed_at", "resolution")
    list_filter = (study_filter("posting__study"), "status")
    list_select_related = ("posting__stage__study", "respondent")
    deferred = ("ids_encrypted", "submission_hash", *deferred_study("posting__stage__study"))
    search_fields = ("respondent__pseudonym__startswith",)
    search_help_text = "By the beginning of the pseudonym."
    fields = (
        *("posting", "respondent", "status", "started_at", "completed_at", "seconds", "read_at"),
        *("approved_at", "asked_back_at", "rejected_at", "rejection_category", "rejection_message"),
        *("pending", "pending_at", "resolution", "resolved_at"),
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
    right = Right.SEE_POSTINGS
    list_display = ("number", "posting", "state", "cents", "created_by", "created_at", "sent_at", "settled_at")
    list_filter = (study_filter("posting__study"), "state")
    list_select_related = ("posting__stage__study", "created_by")
    deferred = deferred_study("posting__stage__study")
    fields = ("posting", "state", "fees", "external_id", "error", "created_by", "created_at", "sent_at", "settled_at")
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
    """An event names a submission only in its encrypted body, so that it belongs to no study: for superusers."""

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
