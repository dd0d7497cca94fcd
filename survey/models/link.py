"""Links that each admit one person. A link itself is shown once; only its keyed hash is stored here."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from .study import Study


class EntryLink(models.Model):
    """A link with which one person may begin. Which answers came from it is not stored here."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="entry_links")
    number = models.PositiveIntegerField(help_text="As in the file that the links were written into.")
    wave = models.PositiveSmallIntegerField(default=1, help_text="The wave that it invites to.")
    first = models.ForeignKey(
        "self",
        verbose_name="link of the first wave",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="later",
        help_text="Of a later wave: the link with which its person began.",
    )
    token_hash = models.CharField("hash of the link's secret", max_length=64, unique=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True, help_text="When somebody consented who came by it.")

    class Meta:
        ordering = ["study", "number"]
        permissions = [("make_links", "Can make entry links")]
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="entry_link_number_once_a_study"),
            models.UniqueConstraint(fields=["first", "wave"], name="entry_link_one_a_person_and_wave"),
            models.CheckConstraint(
                condition=Q(wave=1, first__isnull=True) | Q(wave__gte=2, first__isnull=False),
                name="entry_link_of_a_later_wave_has_a_first",
            ),
            models.CheckConstraint(condition=Q(number__gte=1), name="entry_link_number_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"link {self.number} of {self.study}"
