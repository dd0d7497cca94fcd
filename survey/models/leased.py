"""Rows that workers claim. Imports Django alone."""

from datetime import datetime

from django.db import models
from django.db.models import Q


class Leased(models.Model):
    """Work that one worker at a time does. A worker claims it with a lease; if the lease runs out, another may claim
    it.

    Every claim raises `attempt`. A worker may write only while its attempt is still the row's. A subclass has the
    states "queued" and "running" and the states in which its work can end. `services.leases` claims and renews.
    """

    QUEUED = "queued"
    RUNNING = "running"

    state = models.CharField(max_length=8, default=QUEUED)
    attempt = models.PositiveIntegerField("number of the try", default=0)
    lease_until = models.DateTimeField("kept for its worker until", null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    @classmethod
    def is_free(cls, now: datetime) -> Q:
        """What a worker may claim: queued rows, and running ones whose lease is over."""
        return Q(state=cls.QUEUED) | Q(state=cls.RUNNING, lease_until__lt=now)
