"""Question, task and bank. A bank is a named, versioned set that never changes once imported."""

import html

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.safestring import SafeString, mark_safe

from predictors.markup import MARKUP, plain_text, shown_letters

from .quick import QuickRows


def render_text(text: str) -> SafeString:
    """The text as HTML: `<b>`, `</b>` and `<br>` kept (and balanced), every other character escaped."""
    parts: list[str] = []
    bold = False
    for piece in MARKUP.split(text):
        if piece == "<br>":
            parts.append("<br>")
        elif piece == "<b>":
            if not bold:
                parts.append("<b>")
            bold = True
        elif piece == "</b>":
            if bold:
                parts.append("</b>")
            bold = False
        else:
            parts.append(html.escape(shown_letters(piece)))
    if bold:  # An unclosed <b> must not embolden the rest of the page.
        parts.append("</b>")
    return mark_safe("".join(parts))  # noqa: S308 - every piece is one of three literals or escaped just above


class Bank(models.Model):
    name = models.SlugField(max_length=80)
    version = models.PositiveIntegerField()
    sha256 = models.CharField("hash of the rows", max_length=64, help_text="Of the rows as imported, in their order.")
    source_file = models.CharField("file that it came from", max_length=255, blank=True)
    question_count = models.PositiveIntegerField("number of questions")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who uploaded it in the browser; empty where a command did.",
    )

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="bank_name_and_version_unique"),
            models.CheckConstraint(condition=Q(version__gte=1), name="bank_version_at_least_1"),
        ]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"


class Task(QuickRows):
    bank = models.ForeignKey(Bank, on_delete=models.PROTECT, related_name="tasks")
    name = models.CharField(max_length=120)
    domain = models.CharField(max_length=120, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["bank", "name"], name="task_name_unique_in_bank")]

    def __str__(self) -> str:
        return self.name


class Question(QuickRows):
    class Flag(models.TextChoices):
        NONE = "", "none"
        SENSITIVE = "sensitive", "sensitive"
        BROKEN = "broken", "broken"
        EXCLUDED = "excluded", "excluded"

    bank = models.ForeignKey(Bank, on_delete=models.PROTECT, related_name="questions")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="questions")
    position = models.PositiveIntegerField("place in the bank", help_text="Place in the bank's fixed order, from 0.")
    external_id = models.CharField("id in the file", max_length=200)
    text = models.TextField(
        help_text="As in the file. <b>, </b> and <br> are markup; where they are letters, &lt;br&gt; stands."
    )
    answer = models.TextField("right answer", blank=True, help_text="The key. Empty where the question has none.")
    reason = models.TextField("why the answer is right", blank=True, help_text="Why the key is right.")
    extra = models.JSONField(
        "further columns", default=dict, blank=True, help_text="Further columns of the file, for an instrument."
    )
    flag = models.CharField("mark", max_length=12, choices=Flag.choices, blank=True, default=Flag.NONE)
    flag_reason = models.CharField("why it is marked", max_length=500, blank=True)
    flagged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name="marked by",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    flagged_at = models.DateTimeField("marked at", null=True, blank=True)

    class Meta:
        ordering = ["bank", "position"]
        constraints = [
            models.UniqueConstraint(fields=["bank", "external_id"], name="question_id_unique_in_bank"),
            models.UniqueConstraint(fields=["bank", "position"], name="question_position_unique_in_bank"),
            models.CheckConstraint(condition=~Q(text=""), name="question_text_not_empty"),
            models.CheckConstraint(condition=Q(flag="") | ~Q(flag_reason=""), name="question_flag_needs_a_reason"),
            models.CheckConstraint(
                condition=Q(flag__in=["", "sensitive", "broken", "excluded"]), name="question_flag_known"
            ),
        ]

    def __str__(self) -> str:
        return self.external_id

    @property
    def html(self) -> SafeString:
        return render_text(self.text)

    @property
    def plain(self) -> str:
        return plain_text(self.text)

    @property
    def word_count(self) -> int:
        return len(self.plain.split())
