"""The core app. Its `ready` may import checks and contracts only: it runs in every process, before any request."""

from django.apps import AppConfig
from django.conf import settings


class SurveyConfig(AppConfig):
    name = "survey"
    label = "survey"
    verbose_name = "Survey"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey import checks  # noqa: F401  (registers the system checks)
        from survey.contracts import instruments

        for name, reason in settings.HUNCH_BROKEN_INSTRUMENTS.items():
            instruments.report_broken(name, reason)
