"""How instruments come into Hunch: the AppConfig that each of them has, and those that other packages bring.

Read by the settings, so it imports Django's AppConfig alone.
"""

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import ClassVar

from django.apps import AppConfig
from django.utils.module_loading import import_string

# The group of entry points under which packages name the InstrumentApp of each instrument they bring:
# `NAME = "package.apps.Config"`, where NAME is the instrument's name.
ENTRY_POINTS = "hunch.instruments"


class InstrumentApp(AppConfig):
    """The Django app of one instrument. Its `label` is the instrument's name; `instrument` is the dotted path of its
    class. An instrument that cannot be imported is reported and left out; everything else runs on."""

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
            kind = import_string(self.instrument)
            if kind.name != self.label:
                raise TypeError(f"its app is labelled {self.label!r} and it is called {kind.name!r}: use one name")
            instruments.register(kind)
        except Exception as exc:
            self._broken(exc)

    def _broken(self, exc: Exception) -> None:
        from survey.contracts import instruments

        instruments.report_broken(self.label, f"{type(exc).__name__}: {exc}")


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
