"""The address that makes the first account of an empty server. It is shown once; only its hash is stored."""

from django.db import models


class FirstAccountLink(models.Model):
    token_hash = models.CharField("hash of the link's secret", max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"first account's link {self.pk}"
