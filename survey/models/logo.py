"""The logo of an institution, which study files name and respondents' pages show."""

from django.conf import settings
from django.db import models


class Logo(models.Model):
    """A picture under a name that it keeps: another picture has another name, so that what people saw stays known."""

    name = models.SlugField(max_length=60, unique=True, help_text="As study files name it.")
    sha256 = models.CharField("hash of the picture", max_length=64, help_text="Of the content.")
    content = models.BinaryField("picture", help_text="A PNG without anything but the picture.")
    width = models.PositiveIntegerField(help_text="In pixels.")
    height = models.PositiveIntegerField(help_text="In pixels.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Who uploaded it in the browser; empty where a command did.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
