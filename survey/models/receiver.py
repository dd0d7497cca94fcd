"""Where a study's alerts are sent, and each message. No row names a person who takes part."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from .alert import Alert
from .leased import Leased
from .study import Study


class Receiver(models.Model):
    """A webhook or an e-mail address that gets a study's alerts. Address and secret are encrypted: an address may hold
    a token."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", "webhook"
        EMAIL = "email", "e-mail"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="receivers")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    shown = models.CharField(
        "address as pages show it",
        max_length=254,
        help_text="What pages show: the host of a webhook, or the e-mail address.",
    )
    sealed = models.BinaryField(
        "address and secret, encrypted", help_text="The address and the secret that signs, encrypted."
    )
    causes = models.JSONField("alerts that it gets", default=list, help_text="The alerts that it gets.")
    is_active = models.BooleanField("switched on", default=True)
    off_because = models.CharField("why it is off", max_length=200, blank=True, help_text="Why it was switched off.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    since = models.DateTimeField(help_text="It gets what happens from then on.")

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=["webhook", "email"]), name="receiver_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} to {self.shown}"


class Delivery(Leased):
    """One event for one receiver, until it was taken or given up. The event's id is the same at every try."""

    class State(models.TextChoices):
        QUEUED = "queued", "waiting"
        RUNNING = "running", "being sent"
        DONE = "done", "taken"
        FAILED = "failed", "given up"

    receiver = models.ForeignKey(Receiver, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, on_delete=models.SET_NULL, null=True, blank=True, related_name="deliveries")
    event_id = models.CharField("id of the event", max_length=40)
    event = models.CharField(max_length=20, help_text="An alert's cause, or test.")
    body = models.JSONField("what is sent", help_text="What is sent.")
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField("next try at")
    answer = models.CharField(
        "answer to the last try", max_length=300, blank=True, help_text="What the last try brought."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["receiver", "event_id"], name="delivery_once_an_event"),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running", "done", "failed"]), name="delivery_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False), name="delivery_running_has_a_lease"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state__in=["queued", "running"]), name="delivery_due"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.receiver}"
