"""Changes of a study file that is in use. A row is added for each change and never edited."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from .study import Study


class Amendment(models.Model):
    """What was changed, by whom and why, with the file as it was before, so that older answers can be understood."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="amendments")
    at = models.DateTimeField("time")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name="who did it",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    via = models.CharField("where it was done", max_length=20, default="command", help_text="admin, command")
    reason = models.CharField(max_length=1000)
    was_locked = models.BooleanField(
        "after the study began", help_text="Whether the first main stage had been opened by then."
    )
    old_sha256 = models.CharField("hash of the earlier file", max_length=64)
    new_sha256 = models.CharField("hash of the new file", max_length=64)
    changes = models.JSONField(
        "what changed", default=list, help_text="Key, old value and new value of everything that changed."
    )
    old_text = models.TextField("earlier file", help_text="The study file as it was before.")
    old_config = models.JSONField(
        "earlier settings", help_text="The same, checked: sittings that had begun with it go on with it."
    )

    class Meta:
        ordering = ["study", "id"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="amendment_has_a_reason"),
            models.CheckConstraint(condition=~Q(old_sha256=F("new_sha256")), name="amendment_changes_the_file"),
        ]

    def __str__(self) -> str:
        return f"amendment {self.pk} of {self.study}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("An amendment is appended once and never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An amendment is never deleted.")
