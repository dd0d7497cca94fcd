"""Who did what, in rows that are added and never changed; and the tokens that researchers use for the API."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from .study import Study

TOKEN_DAYS, MAX_TOKEN_DAYS = 90, 366


def end_of_new_tokens() -> datetime:
    return timezone.now() + timedelta(days=TOKEN_DAYS)


def new_salt() -> str:
    return secrets.token_hex(16)


class AuditEntry(models.Model):
    """One thing that somebody did. Triggers of the database refuse every change and every deletion.

    It names nobody: `actor` is a keyed pseudonym, without a foreign key, so that an entry outlives the account.
    """

    at = models.DateTimeField("time", auto_now_add=True)
    actor = models.CharField(
        "who did it", max_length=24, blank=True, help_text="The user's audit name; empty for nobody or a worker."
    )
    via = models.CharField(
        "where it was done", max_length=20, default="command", help_text="admin, api, web, command, worker"
    )
    action = models.CharField(max_length=60)
    subject = models.CharField("what it was done to", max_length=200)
    study = models.CharField(max_length=80, blank=True, help_text="Short name of the study that it is about.")
    detail = models.JSONField("details", default=dict, blank=True)
    salt = models.CharField(
        "random number",
        max_length=32,
        default=new_salt,
        blank=True,
        editable=False,
        help_text="Random: from the hash alone, nobody can guess the entry.",
    )

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["action", "subject"], name="audit_entry_by_action"),
            models.Index(fields=["study"], name="audit_entry_by_study"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("An audit entry is appended once and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An audit entry is never deleted.")


class AuditSeal(models.Model):
    """The link of the audit's chain for one entry. Written once, by one task; the same triggers guard it.

    Its key is the place in the chain, from 1. It has no foreign key: an entry that is gone must leave its seal behind.
    """

    number = models.BigIntegerField(primary_key=True)
    entry_id = models.BigIntegerField("number of the entry", unique=True)
    entry_sha256 = models.CharField("hash of the entry", max_length=64)
    sealed_at = models.DateTimeField()
    sha256 = models.CharField(
        "hash of the seal", max_length=64, help_text="Of the seal before, and of this one's other columns."
    )

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"seal {self.number}"


class ApiToken(models.Model):
    """A token for the API. Only its hash is kept, so that a copy of the table does not open the API.

    It may never do more than its user may at that time (`survey/services/base/rights.py`).
    """

    class Scope(models.TextChoices):
        READ = "read", "read"
        RUN = "run", "read and run"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80, blank=True)
    prefix = models.CharField(
        "first characters", max_length=8, help_text="The token's first characters, to tell tokens apart."
    )
    digest = models.CharField("hash of the token", max_length=64, unique=True)
    scope = models.CharField("what it may do", max_length=4, choices=Scope.choices, default=Scope.READ)
    for_all_studies = models.BooleanField(default=True, help_text="All of its user's studies, later ones as well.")
    studies = models.ManyToManyField(
        Study, verbose_name="studies that it is for", blank=True, related_name="+", help_text="Otherwise these alone."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(default=end_of_new_tokens)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=["read", "run"]), name="api_token_scope_known"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"

    @property
    def name_in_audit(self) -> str:
        """Without the user, whom entries do not name."""
        return f"token {self.prefix}"

    @staticmethod
    def hashed(secret: str) -> str:
        # 32 random bytes cannot be guessed, so a fast hash is enough.
        return hashlib.sha256(secret.encode()).hexdigest()

    @classmethod
    def issue(
        cls,
        *,
        user: Any,
        name: str = "",
        scope: str = Scope.READ,
        studies: Iterable[Study] | None = None,
        days: int = TOKEN_DAYS,
    ) -> tuple["ApiToken", str]:
        """A new token and its secret. `studies`: these alone; None: all of the user's. Call it in a transaction."""
        secret = secrets.token_hex(32)  # No sign that a command line or an address takes for something else.
        token = cls.objects.create(
            user=user,
            name=name,
            prefix=secret[:8],
            digest=cls.hashed(secret),
            scope=scope,
            for_all_studies=studies is None,
            expires_at=timezone.now() + timedelta(days=days),
        )
        if studies is not None:
            token.studies.set(studies)
        return token, secret
