"""Alerts for operators, and when the watch last looked. No row names a person."""

from django.db import models
from django.db.models import Q

from .study import Study


class Alert(models.Model):
    """One thing that is wrong. There is one open row for a cause and what it is about, until it is over."""

    class Cause(models.TextChoices):
        UNHEALTHY = "unhealthy", "part of the site does not work"
        WORKER_SILENT = "worker_silent", "worker silent"
        WATCH_SILENT = "watch_silent", "beat silent"
        DISK_LOW = "disk_low", "disk nearly full"
        POSTING_PAUSED = "posting_paused", "posting paused"
        NOT_PAUSED = "not_paused", "recruitment not paused"
        STEP_FAILED = "step_failed", "step failed"
        STAGE_FULL = "stage_full", "stage full"
        NO_ARRIVALS = "no_arrivals", "no arrivals"
        CAP_NEAR = "cap_near", "spending cap near"
        RETURNS_HIGH = "returns_high", "many returns"

    cause = models.CharField(max_length=20, choices=Cause.choices)
    subject = models.CharField(
        "what it is about", max_length=120, help_text="What it is about, such as a stage or a queue."
    )
    study = models.ForeignKey(Study, on_delete=models.CASCADE, null=True, blank=True, related_name="alerts")
    message = models.TextField()
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField("last seen at", help_text="When it was last found.")
    sending_at = models.DateTimeField(
        "message begun at", null=True, blank=True, help_text="When a message about it began to be sent."
    )
    sent_at = models.DateTimeField(null=True, blank=True, help_text="When a message about it was last sent.")
    resolved_at = models.DateTimeField(null=True, blank=True)
    over_sent_at = models.DateTimeField(
        "end told at", null=True, blank=True, help_text="When a message that it is over was sent."
    )

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cause", "subject"], condition=Q(resolved_at__isnull=True), name="alert_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_cause_display()}: {self.subject}"


class WatchRecord(models.Model):
    """When beat's watch last looked, and since when it finds the site unhealthy. There is one row."""

    looked_at = models.DateTimeField("last looked at")
    unhealthy_since = models.DateTimeField("not well since", null=True, blank=True)

    def __str__(self) -> str:
        return f"looked at {self.looked_at:%Y-%m-%d %H:%M:%S}"
