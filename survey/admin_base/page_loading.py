"""Loads the admin's pages when somebody first asks for them: in a web process at its start, in most commands never."""

import logging
from importlib import import_module
from typing import Any

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from survey.admin_base.read_only_admin import ByRights
from survey.contracts.apps import InstrumentApp

logger = logging.getLogger(__name__)


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
    for model, page in site._registry.items():
        if model not in known and not isinstance(page, ByRights):
            site._registry[model] = type(type(page).__name__, (ByRights, type(page)), {})(model, site)
