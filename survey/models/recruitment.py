"""A study at a panel: its postings, the panel's view of each submission, payments, and the panel's events.

A submission's id is stored only as a keyed hash and in encrypted form. Money is in whole cents or pence.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from survey.exceptions import StateRefused
from survey.fees import FeeRates

from .sitting import Respondent
from .study import Stage, Study


class Posting(models.Model):
    """One study at a panel. The row is written before the panel is called; its internal name finds the study there.

    `pending` is stored before a call that may cost money, and cleared by the answer. Where it stays, nobody knows
    whether the panel did it: what it may cost counts as spent until a later reading of the panel says what happened.
    """

    class Pending(models.TextChoices):
        DRAFT = "draft", "make the draft"
        PUBLISH = "publish", "publish it"
        PLACES = "places", "offer more places"

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="postings")
    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="postings")
    wave = models.PositiveSmallIntegerField(default=1)
    panel = models.CharField(max_length=40)
    internal_name = models.CharField(
        "name at the panel", max_length=120, unique=True, help_text="How it is found at the panel again."
    )
    external_id = models.CharField(
        "id at the panel", max_length=64, blank=True, help_text="The panel's id; empty until it answered."
    )
    state = models.CharField(max_length=40, blank=True, help_text="As the panel says it.")
    reward = models.PositiveIntegerField("pay in cents")
    currency = models.CharField(max_length=3)
    places = models.PositiveIntegerField()
    expected_minutes = models.PositiveSmallIntegerField("minutes that it should take")
    screen_outs = models.PositiveIntegerField(
        "cost of those screened out", default=0, help_text="What all who are screened out may cost, in cents."
    )
    fee_rate = models.PositiveIntegerField(
        "panel's fee", default=0, help_text="The panel's fee on what people get, in hundredths of a percent."
    )
    vat_rate = models.PositiveIntegerField(
        "VAT on the fee", default=0, help_text="VAT on the fee, in hundredths of a percent."
    )
    fixed_fee = models.PositiveIntegerField(
        "fixed fee in cents",
        default=0,
        help_text="What the panel takes beside that, VAT included, in cents: for a representative sample.",
    )
    group = models.CharField(
        "group of those who began",
        max_length=64,
        blank=True,
        help_text="The panel's id of the group of those who have begun here.",
    )
    panel_facts = models.JSONField(
        "what the panel last said", default=dict, help_text="What the panel last said of money and time."
    )
    publish_at = models.DateTimeField(
        "to be published at", null=True, blank=True, help_text="When the panel is to show it by itself."
    )
    invited_group = models.CharField(
        "group of those invited",
        max_length=64,
        blank=True,
        help_text="Of a later wave: the panel's group of those who are invited.",
    )
    draft = models.JSONField(
        "what the panel was sent", default=dict, help_text="What the panel was sent, filters and codes among it."
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True, help_text="When publishing was asked for first.")
    pending = models.CharField(
        "asked of the panel, without an answer",
        max_length=8,
        blank=True,
        choices=Pending.choices,
        help_text="What the panel was asked and has not answered.",
    )
    pending_at = models.DateTimeField(
        "asked of the panel at", null=True, blank=True, help_text="When it was asked for that."
    )
    changed_at = models.DateTimeField(null=True, blank=True, help_text="When the panel last answered a change of ours.")
    paused_at = models.DateTimeField(null=True, blank=True, help_text="When it was paused from here.")
    read_at = models.DateTimeField(
        "read at the panel at", null=True, blank=True, help_text="When its submissions were last read whole."
    )
    error = models.TextField(blank=True, help_text="Why they could not be read the last time.")

    class Meta:
        ordering = ["-created_at", "-id"]
        permissions = [
            ("recruit", "Can publish at a panel, approve, ask for returns and reject"),
            ("pay_people", "Can pay bonuses"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["panel", "external_id"], condition=~Q(external_id=""), name="posting_once_a_panel_study"
            ),
            models.CheckConstraint(condition=Q(reward__gte=1), name="posting_reward_at_least_1"),
            models.CheckConstraint(condition=Q(places__gte=1), name="posting_places_at_least_1"),
            models.CheckConstraint(
                condition=Q(pending__in=["", "draft", "publish", "places"]), name="posting_pending_known"
            ),
            models.CheckConstraint(
                condition=Q(pending="", pending_at__isnull=True) | ~Q(pending="") & Q(pending_at__isnull=False),
                name="posting_pending_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stage} at {self.panel}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding and self.study.is_test:
            raise StateRefused(f"{self.study.slug} is a test copy and is never posted: post the study itself")
        super().save(*args, **kwargs)

    @property
    def committed(self) -> int:
        """How many cents its places and screen-outs may cost, fees and VAT included; 0 before it was published."""
        return self.cost if self.published_at else 0

    @property
    def people_cost(self) -> int:
        """What people may get for its places and screen-outs, in cents."""
        return self.reward * self.places + self.screen_outs

    @property
    def fees(self) -> FeeRates:
        return FeeRates(self.fee_rate, self.vat_rate, self.fixed_fee)

    @property
    def cost(self) -> int:
        """In cents, with the panel's fee and VAT, without bonuses."""
        return self.cost_with(self.fees)

    def cost_with(self, fees: FeeRates, *, more: int = 0) -> int:
        """The same with these fees, and with so many places more."""
        people = self.people_cost + self.reward * more
        return people + fees.on(people) + fees.fixed


class PostingPart(models.Model):
    """A part that the panel has made of a posting, such as one cell of its quotas. People come with the part's id."""

    posting = models.ForeignKey(Posting, on_delete=models.PROTECT, related_name="parts")
    panel = models.CharField(max_length=40)
    external_id = models.CharField("id at the panel", max_length=64, help_text="The panel's id of the part.")
    found_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["posting", "id"]
        constraints = [models.UniqueConstraint(fields=["panel", "external_id"], name="posting_part_once_a_panel")]

    def __str__(self) -> str:
        return f"part {self.pk} of {self.posting}"


class Submission(models.Model):
    """What the panel said about one participation when it was last read.

    `pending` is as a posting's: stored before the call, and cleared by the answer.
    """

    class Pending(models.TextChoices):
        ASK_BACK = "ask_back", "ask for a return"
        REJECT = "reject", "reject it"

    posting = models.ForeignKey(Posting, on_delete=models.PROTECT, related_name="submissions")
    respondent = models.ForeignKey(
        Respondent, on_delete=models.SET_NULL, null=True, blank=True, related_name="submissions"
    )
    submission_hash = models.CharField(
        "keyed hash of the submission", max_length=64, help_text="The same as the panel identity's."
    )
    ids_encrypted = models.BinaryField(
        "ids at the panel, encrypted", help_text="Person, study and submission ids, encrypted with the identity key."
    )
    status = models.CharField("status at the panel", max_length=40, help_text="As the panel says it.")
    entered_code = models.CharField("code entered", max_length=100, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    seconds = models.PositiveIntegerField(
        "seconds by the panel's count", null=True, blank=True, help_text="Time taken, as the panel counts it."
    )
    read_at = models.DateTimeField("read at the panel at", help_text="When the panel was asked for what stands here.")
    approved_at = models.DateTimeField(null=True, blank=True, help_text="When we approved it.")
    asked_back_at = models.DateTimeField(
        "asked to return at", null=True, blank=True, help_text="When we asked for a return."
    )
    rejected_at = models.DateTimeField(null=True, blank=True, help_text="When we rejected it.")
    rejection_category = models.CharField(
        "reason of the rejection", max_length=80, blank=True, help_text="The panel's category of our rejection."
    )
    rejection_message = models.TextField(
        "message of the rejection", blank=True, help_text="What the person was to read with it."
    )
    pending = models.CharField(
        "asked of the panel, without an answer",
        max_length=8,
        blank=True,
        choices=Pending.choices,
        help_text="What the panel was asked and has not answered.",
    )
    pending_at = models.DateTimeField(
        "asked of the panel at", null=True, blank=True, help_text="When it was asked for that."
    )
    resolution = models.CharField(
        "what was decided", max_length=300, blank=True, help_text="What a person decided where the two differ."
    )
    resolved_status = models.CharField(
        "status when it was decided", max_length=40, blank=True, help_text="The panel's status at that time."
    )
    resolved_at = models.DateTimeField("decided at", null=True, blank=True)
    grouped_at = models.DateTimeField(
        "put into the group at", null=True, blank=True, help_text="When the person was put into the group."
    )

    class Meta:
        ordering = ["posting", "id"]
        constraints = [
            models.UniqueConstraint(fields=["posting", "submission_hash"], name="submission_once_a_posting"),
            models.CheckConstraint(
                condition=Q(resolution="") | Q(resolved_at__isnull=False), name="submission_resolution_has_a_time"
            ),
            models.CheckConstraint(
                condition=Q(pending__in=["", "ask_back", "reject"]), name="submission_pending_known"
            ),
            models.CheckConstraint(
                condition=Q(pending="", pending_at__isnull=True) | ~Q(pending="") & Q(pending_at__isnull=False),
                name="submission_pending_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        who = self.respondent.pseudonym if self.respondent else f"number {self.pk}"
        return f"submission of {who}"


class PaymentBatch(models.Model):
    """Bonuses paid by one call. A panel that is called twice pays twice, so each state is written before the call.

    A batch that stays `sent` means that the process died in between: the result is unknown, as in `unknown`. A person
    must look at the panel and record what happened.
    """

    class State(models.TextChoices):
        PREPARED = "prepared", "prepared"
        SENT = "sent", "sent, no answer yet"
        PAID = "paid", "paid"
        REFUSED = "refused", "not paid"
        UNKNOWN = "unknown", "unknown: look at the panel"

    posting = models.ForeignKey(Posting, on_delete=models.PROTECT, related_name="payment_batches")
    state = models.CharField(max_length=8, choices=State.choices, default=State.PREPARED)
    external_id = models.CharField("id at the panel", max_length=64, blank=True)
    fees = models.PositiveIntegerField(
        "fees in cents", default=0, help_text="What these bonuses cost beside themselves, VAT included, in cents."
    )
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField("all done at", null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "payment batches"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["prepared", "sent", "paid", "refused", "unknown"]),
                name="payment_batch_state_known",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["prepared", "refused"]) | Q(sent_at__isnull=False),
                name="payment_batch_paid_was_sent",
            ),
        ]

    def __str__(self) -> str:
        return f"payment {self.pk} of {self.posting}"

    @property
    def needs_a_person(self) -> bool:
        return self.state in (self.State.SENT, self.State.UNKNOWN)


class Payment(models.Model):
    """What one person is paid on top of the reward. `is_void`: it was not paid, and a later batch may pay it."""

    class Kind(models.TextChoices):
        LATE = "late", "finished after the panel's time was over"
        TURNED_AWAY = "turned_away", "consented, and found all places taken"
        SCORE = "score", "points"

    batch = models.ForeignKey(PaymentBatch, on_delete=models.PROTECT, related_name="payments")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="payments")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    amount = models.PositiveIntegerField("amount in cents")
    is_void = models.BooleanField("cancelled", default=False)

    class Meta:
        ordering = ["batch", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "kind"], condition=Q(is_void=False), name="payment_once_a_submission_and_kind"
            ),
            models.CheckConstraint(condition=Q(kind__in=["late", "turned_away", "score"]), name="payment_kind_known"),
            models.CheckConstraint(condition=Q(amount__gte=1), name="payment_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.amount}"


class Rehearsal(models.Model):
    """A trial of a study at its panel, which leads into the study's test copy. Nothing of it counts or costs."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="rehearsals")
    copy = models.BigIntegerField(
        "test copy", help_text="The key of the test copy that it leads into. The copy may be gone."
    )
    panel = models.CharField(max_length=40)
    external_id = models.CharField(
        "id of the trial at the panel", max_length=64, help_text="The panel's id of the trial."
    )
    address = models.TextField(blank=True, help_text="Where the test participant takes part.")
    steps = models.JSONField(
        "what was found", default=list, help_text="What was found in the last look: title, done, sentence."
    )
    is_over = models.BooleanField("finished", default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(
        "read at the panel at", null=True, blank=True, help_text="When the panel was last asked about it."
    )

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"rehearsal {self.pk} of {self.study.slug}"


class WebhookEvent(models.Model):
    """One event that a panel sent. It names a submission, encrypted until the event is processed and deleted then."""

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        DONE = "done", "done"
        IGNORED = "ignored", "ignored"
        FAILED = "failed", "failed"

    panel = models.CharField(max_length=40)
    event_id = models.CharField(
        "id of the event", max_length=100, help_text="The same whenever the panel sends the event again."
    )
    signed_sha256 = models.CharField(
        "hash of what the panel signed", max_length=64, blank=True, help_text="Of the bytes that the panel signed."
    )
    event_type = models.CharField(max_length=80)
    body_encrypted = models.BinaryField("message, encrypted")
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField("next try at")
    error = models.TextField(blank=True)
    received_at = models.DateTimeField(auto_now_add=True)
    done_at = models.DateTimeField("dealt with at", null=True, blank=True)

    class Meta:
        ordering = ["-received_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["panel", "event_id"], name="webhook_event_once"),
            models.UniqueConstraint(
                fields=["panel", "signed_sha256"], condition=~Q(signed_sha256=""), name="webhook_event_signed_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "done", "ignored", "failed"]), name="webhook_event_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="webhook_event_due"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.pk}"
