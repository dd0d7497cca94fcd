"""The core app, and the admin's. Their `ready` may import checks and contracts only: it runs in every process, before
any request.

Celery's app comes with them, so that each process with tasks has it; health checks and `hunch --help` load none of it.
"""

import logging
from importlib import import_module
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.utils.module_loading import module_has_submodule

from survey.celery import app as celery_app
from survey.contracts.apps import InstrumentApp

__all__ = ["AdminConfig", "SurveyConfig", "celery_app", "load_admin_pages"]

logger = logging.getLogger(__name__)


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
            from survey import error_reports

            error_reports.start()


class AdminConfig(SimpleAdminConfig):
    """Django's admin. Its pages are loaded when somebody first asks the site for them: in a web process at its start,
    in most commands never."""

    default_site = "survey.admin_site.HunchAdminSite"

    def ready(self) -> None:
        # As Django's does, but for the second check, which would find no pages.
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(**options: Any) -> list[checks.CheckMessage]:
    from django.contrib.admin import site

    site.get_model_admin  # noqa: B018 (makes the site, which loads its pages when the check asks for them)
    return list(check_admin_app(**options))


def load_admin_pages(site: Any) -> None:
    """Import the `admin.py` of each app. An instrument's that fails leaves it without admin pages; all else runs on."""
    for app in apps.get_app_configs():
        if app.module is None or not module_has_submodule(app.module, "admin"):
            continue
        before = dict(site._registry)
        try:
            import_module(f"{app.name}.admin")
            if isinstance(app, InstrumentApp):
                _show_by_rights(site, known=before)
        except Exception as exc:
            if not isinstance(app, InstrumentApp):
                raise
            site._registry = before
            logger.warning(
                "the instrument %s has no admin pages: %s.admin cannot be loaded (%s: %s); repair the package or "
                "install another version of it",
                app.label,
                app.name,
                type(exc).__name__,
                exc,
            )


def _show_by_rights(site: Any, known: Any) -> None:
    """An instrument's admin page that is not built on ours would show the rows of every study."""
    from survey.read_only_admin import ByRights

    for model, page in site._registry.items():
        if model not in known and not isinstance(page, ByRights):
            site._registry[model] = type(type(page).__name__, (ByRights, type(page)), {})(model, site)
