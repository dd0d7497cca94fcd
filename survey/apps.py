"""The core app, and the admin's. Their `ready` may import checks and contracts only: it runs in every process, before
any request.

Celery's app comes with them, so that each process with tasks has it; health checks and `hunch --help` load none of it.
"""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks

from survey.celery import app as celery_app

__all__ = ["AdminConfig", "SurveyConfig", "celery_app"]


class SurveyConfig(AppConfig):
    name = "survey"
    label = "survey"
    verbose_name = "Survey"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey import system_checks  # noqa: F401  (registers the system checks)
        from survey.contracts import instruments

        for name, reason in settings.HUNCH_BROKEN_INSTRUMENTS.items():
            instruments.report_broken(name, reason)
        if settings.SENTRY_DSN:
            from survey.logs import error_reports

            error_reports.start()


class AdminConfig(SimpleAdminConfig):
    """Django's admin. Its pages are loaded when somebody first asks the site for them: in a web process at its start,
    in most commands never."""

    default_site = "survey.admin_base.admin_site.HunchAdminSite"

    def ready(self) -> None:
        # As Django's does, but for the second check, which would find no pages.
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(**options: Any) -> list[checks.CheckMessage]:
    from django.contrib.admin import site

    site.get_model_admin  # noqa: B018 (makes the site, which loads its pages when the check asks for them)
    return list(check_admin_app(**options))
