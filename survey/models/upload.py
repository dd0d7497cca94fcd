"""A file between two steps of a page: what somebody sent and has not confirmed yet. It is never part of a backup."""

from django.conf import settings
from django.db import models


class Upload(models.Model):
    """Seen by who sent it alone, and gone after a while."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=255, help_text="As the file is called on the sender's machine.")
    sha256 = models.CharField("hash", max_length=64, help_text="Of the content.")
    content = models.BinaryField("file")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "sha256", "name"], name="upload_once_a_user_and_file"),
        ]

    def __str__(self) -> str:
        return f"upload {self.pk}"
