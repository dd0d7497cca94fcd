"""The list of alerts."""

from django.contrib import admin

from survey.admin_base.read_only_admin import ReadOnlyAdmin, shortened
from survey.models import Alert


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    help = "operation.md#the-watch"
    list_display = ("opened_at", "cause", "subject", "in_short", "sent_at", "resolved_at")
    list_filter = ("cause", ("resolved_at", admin.EmptyFieldListFilter))
    search_fields = ("subject", "study__slug")
    search_help_text = "By what it is about, or by study."
    fields = ("cause", "subject", "study", "message", "opened_at", "seen_at", "sent_at", "resolved_at", "over_sent_at")

    @admin.display(description="message")
    def in_short(self, alert: Alert) -> str:
        return shortened(alert.message)
