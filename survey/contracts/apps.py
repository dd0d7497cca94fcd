"""How instruments come into Hunch: the AppConfig that each of them has, and those that other packages bring.

Read by the settings, so it imports only what Django offers before the settings are there.
"""

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any, ClassVar

from django.apps import AppConfig, apps
from django.conf import settings
from django.utils.module_loading import import_string, module_has_submodule

# The group of entry points under which packages name the InstrumentApp of each instrument they bring:
# `NAME = "package.apps.Config"`, where NAME is the instrument's name.
ENTRY_POINTS = "hunch.instruments"
REPAIR = "repair the package or install another version of it"


class InstrumentApp(AppConfig):
    """The Django app of one instrument. Its `label` is the instrument's name; `instrument` is the dotted path of its
    class. An instrument that cannot be imported, or whose migrations cannot be used, is reported and left out;
    everything else runs on. `survey.admin_base.page_loading` does the same for its admin pages."""

    instrument: ClassVar[str]
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        try:
            super().import_models()
        except Exception as exc:
            # Without its models the app can bring nothing, and Django must not look for its admin pages either.
            self.models.clear()
            self.module = None
            self._broken(exc)

    def ready(self) -> None:
        from survey.contracts import instruments

        if self.module is None:
            return
        try:
            check_migrations(self)
        except Exception as exc:
            # Django then leaves the app out when it reads the migrations of all apps, and `migrate` works for the rest.
            settings.MIGRATION_MODULES = {**settings.MIGRATION_MODULES, self.label: None}
            self._broken(exc)
            return
        try:
            kind = import_string(self.instrument)
            if kind.name != self.label:
                raise TypeError(f"its app is labelled {self.label!r} and it is called {kind.name!r}: use one name")
            instruments.register(kind)
        except Exception as exc:
            self._broken(exc)

    def _broken(self, exc: Exception) -> None:
        from survey.contracts import instruments

        instruments.report_broken(self.label, f"{type(exc).__name__}: {exc}")


class MigrationBroken(Exception):
    """A migration of an instrument cannot be used. Django would then refuse to run any migration of any app."""


def check_migrations(app: AppConfig) -> None:
    """Import the app's migrations, and see that what they follow is there and that they end in one.

    Raises:
        MigrationBroken: names the migration and what to do.
    """
    if not module_has_submodule(app.module, "migrations"):
        return
    package = f"{app.name}.migrations"
    migrations: dict[str, Any] = {}
    for name in _names_in(package):
        try:
            migrations[name] = import_module(f"{package}.{name}").Migration
        except Exception as exc:
            raise MigrationBroken(f"{package}.{name} cannot be loaded ({type(exc).__name__}: {exc}); {REPAIR}") from exc
    replaced = {name for migration in migrations.values() for label, name in migration.replaces if label == app.label}
    followed = set()
    for name, migration in migrations.items():
        for label, before in migration.dependencies:
            own = label == app.label
            if own:
                followed.add(before)
            if before.startswith("__"):  # Its first or latest, whatever that is.
                continue
            if before not in ({*migrations, *replaced} if own else _names_of(label)):
                raise MigrationBroken(f"{package}.{name} follows {label}.{before}, which is not installed; {REPAIR}")
    last = sorted(set(migrations) - followed - replaced)
    if len(last) > 1:
        raise MigrationBroken(f"{package} ends in {' and in '.join(last)}; {REPAIR}")


def _names_of(label: str) -> list[str]:
    """The migrations of another app; none if it is not installed."""
    if label not in apps.app_configs:
        return []
    return _names_in(settings.MIGRATION_MODULES.get(label) or f"{apps.get_app_config(label).name}.migrations")


def _names_in(package: str) -> list[str]:
    return [
        iter_module.name
        for iter_module in iter_modules(import_module(package).__path__)
        if iter_module.name[0] not in "_~"
    ]


def brought_apps(built_in: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The apps of the instruments that installed packages bring.

    Args:
        built_in: the apps that are installed anyway; none of their labels can be used twice.

    Returns:
        Entries for INSTALLED_APPS; and, by name, why an instrument cannot be used.
    """
    taken = {app.split(".apps.")[0].rpartition(".")[2] for app in built_in}
    apps: list[str] = []
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)):
        try:
            config = point.load()
            if not (isinstance(config, type) and issubclass(config, InstrumentApp)):
                raise TypeError(f"{point.value} is no InstrumentApp of survey.contracts.apps")
            label = vars(config).get("label") or config.name.rpartition(".")[2]
            if label != point.name:
                raise TypeError(f"its app is labelled {label!r}, and its entry point is called {point.name!r}")
            if label in taken:
                raise TypeError("another installed app has this name: rename one of the two")
        except Exception as exc:
            broken.setdefault(point.name, f"{type(exc).__name__}: {exc}")
            continue
        taken.add(label)
        apps.append(f"{config.__module__}.{config.__qualname__}")
    return apps, broken
