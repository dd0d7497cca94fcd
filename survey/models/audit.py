"""Who did what, in rows that are added and never changed; and the tokens that researchers use for the API."""

import hashlib
import secrets
from typing import Any

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    via = models.CharField(max_length=20, default="command", help_text="admin, api, command, worker")
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("An audit entry is appended once and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An audit entry is never deleted.")


class ApiToken(models.Model):
    """A token for the API. Only its hash is kept, so that a copy of the table does not open the API."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80, blank=True)
    prefix = models.CharField(max_length=8, help_text="The token's first characters, to tell tokens apart.")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"

    @staticmethod
    def hashed(secret: str) -> str:
        # 32 random bytes cannot be guessed, so a fast hash is enough.
        return hashlib.sha256(secret.encode()).hexdigest()

    @classmethod
    def issue(cls, *, user: Any, name: str = "") -> tuple["ApiToken", str]:
        secret = secrets.token_urlsafe(32)
        return cls.objects.create(user=user, name=name, prefix=secret[:8], digest=cls.hashed(secret)), secret
