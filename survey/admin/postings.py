"""A study at its panel: the reconciliation page with its actions, and the rows behind it.

People are shown only by pseudonym: the panel's ids are in no list, page or search.
"""

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from survey.admin_base.read_only_admin import AdminPage, ReadOnlyAdmin, ReadOnlyInline, admin_page, shortened
from survey.contracts import panels
from survey.exceptions import HunchError
from survey.figures import words
from survey.models import Payment, PaymentBatch, Posting, Submission, WebhookEvent
from survey.panels import accounts, posting_checks, postings, reconciliation
from survey.panels.reconciliation import Action
from survey.services.base import rights
from survey.services.base.rights import Right
from survey.services.sittings.hourly_pay import hourly_pay

from . import drafting, posting_actions
from .drafting import may_draft
from .filters import deferred_study, study_filter
from .posting_actions import OUTCOMES, PLACES, SCHEDULE, PostingFacts, confirm_for


def _settle(request: HttpRequest, posting: Posting, row: int) -> HttpResponse:
    """Store what somebody decided about one difference."""
    submission = Submission.objects.filter(posting=posting, pk=row).first()
    if submission is None:
        raise Http404
    try:
        reconciliation.settle_difference(submission, request.POST.get("resolution", ""), by=request.user, via="admin")
        messages.success(request, "Settled.")
    except HunchError as exc:
        messages.error(request, f"Settle: {exc.message}")
    return HttpResponseRedirect(reverse("admin:survey_posting_change", args=[posting.pk]))


@admin.register(Posting)
class PostingAdmin(ReadOnlyAdmin):
    """A posting's page is its reconciliation."""

    help = "tour.md#payments"
    pages = (
        AdminPage("draft", "draft/<int:study>/", drafting.draft, help="prolific.md#from-draft-to-zero-differences"),
        AdminPage("adopt", "adopt/<int:study>/", drafting.adopt, help="prolific.md#from-draft-to-zero-differences"),
        AdminPage("rehearse", "rehearse/<int:study>/", drafting.rehearse, help="prolific.md#a-rehearsal-at-prolific"),
        AdminPage("places", "<int:pk>/places/", partial(confirm_for, action=PLACES)),
        AdminPage("schedule", "<int:pk>/schedule/", partial(confirm_for, action=SCHEDULE)),
        AdminPage("action", "<int:pk>/do/<slug:name>/", posting_actions.posting_action),
        AdminPage(
            "settle",
            "<int:pk>/settle/<int:row>/",
            _settle,
            Right.RECRUIT,
            by_post=True,
            help="prolific.md#comparing-our-state-with-the-panels",
        ),
        AdminPage(
            "payment",
            "<int:pk>/payment/<int:batch>/",
            posting_actions.payment,
            Right.PAY,
            help="prolific.md#bonuses-are-paid-once",
        ),
    )
    page_related = ("study__bank", "stage__study")
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

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        posting = self.readable_row(request, int(object_id) if object_id.isdecimal() else 0)
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        facts = PostingFacts(posting)
        reconciled = facts.reconciled
        batches = posting.payment_batches.annotate(cents=Sum("payments__amount"), people=Count("payments"))
        return admin_page(
            request,
            "posting/page.html",
            title=str(posting),
            posting=posting,
            found=reconciled,
            waiting=len(reconciled.to(Action.WAIT)),
            differences=[
                difference for difference in reconciled.differences if difference.judgement.action != Action.WAIT
            ],
            owed=[debt for finding in reconciled.findings for debt in finding.owed],
            batches=batches,
            committed=posting_actions.committed_in_words(posting),
            pay=hourly_pay(posting.study),
            account=accounts.account_of(posting) if posting.published_at else None,
            advice=accounts.advice_of(posting) if posting.published_at is None else None,
            problem=panels.find(posting.panel).problem,
            checks=_checks_of(posting),
            may_draft_again=not posting.external_id and may_draft(request.user, posting.study),
            leads_to_a_closed_door=postings.leads_to_a_closed_door(posting),
            actions=posting_actions.offered(request.user, facts),
            may_recruit=rights.may(request.user, Right.RECRUIT, posting.study_id),
            outcomes=OUTCOMES if rights.may(request.user, Right.PAY, posting.study_id) else (),
        )


def _checks_of(posting: Posting) -> list[posting_checks.PostingCheck]:
    """What stands between a draft and its publishing; nothing once it was published."""
    if posting.published_at is not None:
        return []
    return posting_checks.checks(posting.stage, places=posting.places, reward=posting.reward, posting=posting)


@admin.register(Submission)
class SubmissionAdmin(ReadOnlyAdmin):
    help = "tour.md#payments"
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
    help = "prolific.md#bonuses-are-paid-once"
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

    help = "prolific.md#what-you-set"
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
