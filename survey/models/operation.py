"""What the operation itself must remember: which keys this database belongs to, what was erased, restores."""

from django.db import models
from django.db.models import Q


class KeyFingerprint(models.Model):
    """A keyed hash of a fixed label: it shows whether a key is the one that was used here, and not what the key is."""

    name = models.CharField(max_length=40, unique=True, help_text="The setting: HUNCH_IDENTITY_KEY or SECRET_KEY.")
    fingerprint = models.CharField("fingerprint of the key", max_length=64)
    since = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"fingerprint of {self.name}"


class Erasure(models.Model):
    """What was deleted at a person's wish or because it was no longer needed. The same is written to a file.

    After a restore the file says what must be deleted again. `refs` are keyed hashes; no pseudonym and no id of a panel
    stands here.
    """

    class What(models.TextChoices):
        ANSWERS = "answers", "all that a person gave"
        IDS = "ids", "the panel's ids"
        HASHES = "hashes", "the panel's ids and the hashes that bar a second participation"

    public_id = models.UUIDField("random id", unique=True, editable=False)
    what = models.CharField("what is erased", max_length=8, choices=What.choices)
    refs = models.JSONField("whose data", help_text="Whose: keyed hashes of pseudonyms and submissions.")
    at = models.DateTimeField("time")
    listed_at = models.DateTimeField(
        "written to the file at", null=True, blank=True, help_text="When it was written to the file."
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(what__in=["answers", "ids", "hashes"]), name="erasure_what_known"),
        ]
        indexes = [models.Index(fields=["id"], condition=Q(listed_at__isnull=True), name="erasure_to_be_listed")]

    def __str__(self) -> str:
        return f"{self.get_what_display()}, erased {self.at:%Y-%m-%d %H:%M}"


class Restore(models.Model):
    """A filling of this database from a backup. Until `finished_at`, erasures may be missing, and nothing starts."""

    backup_at = models.DateTimeField("backup made at", help_text="When the backup was made.")
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"restore of the backup of {self.backup_at:%Y-%m-%d %H:%M}"
