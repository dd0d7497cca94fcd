"""The core app. Its `ready` may import checks only: it runs in every process, before any request."""

from django.apps import AppConfig


class SurveyConfig(AppConfig):
    name = "survey"
    label = "survey"
    verbose_name = "Survey"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey import checks  # noqa: F401  (registers the system checks)
