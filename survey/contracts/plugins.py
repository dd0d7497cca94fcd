"""Plug-ins by name: our own by dotted string, those of installed packages by entry point. Imported on first use.

If a plug-in cannot be used, a warning names it, and all others still work. Imports nothing from survey.
"""

import logging
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)
Plugin = TypeVar("Plugin")


class Plugins(Generic[Plugin]):
    """The plug-ins of one kind. Each is a class without arguments, with the attributes `name` and `contract`.

    Args:
        kind: what one is called in messages.
        base: the class that each is a subclass of.
        contract: the version of the contract that this release has.
        group: the group of the entry points of packages.
        built_in: the dotted paths of our own, by name.
    """

    def __init__(
        self, *, kind: str, base: type[Plugin], contract: int, group: str, built_in: Mapping[str, str]
    ) -> None:
        self._kind = kind
        self._base = base
        self._contract = contract
        self._group = group
        self._built_in = dict(built_in)
        self._installed: dict[str, EntryPoint] | None = None
        # By name: the plug-in, or why it cannot be used.
        self._loaded: dict[str, Plugin | str] = {}

    def get(self, name: str) -> Plugin:
        """The plug-in of that name.

        Raises:
            LookupError: there is none, or it cannot be used. The message says why, and lists the others.
        """
        plugin = self._load(name)
        if isinstance(plugin, str):
            raise LookupError(f"{plugin}; there are: {', '.join(self.names())}")
        return plugin

    def names(self) -> list[str]:
        """The names of those that can be used."""
        every = sorted({*self._built_in, *self._entry_points()})
        return [name for name in every if not isinstance(self._load(name), str)]

    def look_again(self) -> None:
        """Forget what was found, and search again at the next use."""
        self._installed = None
        self._loaded.clear()

    def _load(self, name: str) -> Plugin | str:
        if name not in self._loaded:
            if name not in self._built_in and name not in self._entry_points():
                return f"no {self._kind} is called {name!r}"  # Not remembered: a visitor can ask for any name.
            self._loaded[name] = self._import(name)
        return self._loaded[name]

    def _import(self, name: str) -> Plugin | str:
        try:
            if name in self._built_in:
                module, _dot, attribute = self._built_in[name].rpartition(".")
                made = getattr(import_module(module), attribute)()
            else:
                made = self._entry_points()[name].load()()
        except Exception as exc:  # A package may fail in any way when it is imported.
            return self._warn(name, f"{type(exc).__name__}: {exc}", exc)
        if not isinstance(made, self._base):
            return self._warn(name, f"it is no {self._base.__name__}")
        stated = getattr(made, "contract", None)
        if stated != self._contract:
            return self._warn(name, f"it is written for contract {stated}, and this release has {self._contract}")
        called = getattr(made, "name", None)
        if called != name:
            return self._warn(name, f"it calls itself {called!r}")
        return made

    def _warn(self, name: str, why: str, exc: Exception | None = None) -> str:
        where = self._built_in.get(name) or self._entry_points()[name].value
        message = f"the {self._kind} {name!r} ({where}) cannot be used: {why}"
        logger.warning("%s", message, exc_info=exc)
        return message

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        if self._installed is None:
            self._installed = {}
            for point in entry_points(group=self._group):
                if point.name in self._built_in or point.name in self._installed:
                    logger.warning("%s %r: the name is taken; %s is not used", self._kind, point.name, point.value)
                    continue
                self._installed[point.name] = point
        return self._installed
