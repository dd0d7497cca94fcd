"""The panels there are, by the name a study file gives. Imports nothing of survey: services reach panels through it."""

from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Protocol

PANELS = {"prolific": "survey.panels.prolific.entry.Prolific"}


class Verdict(Enum):
    """What a panel says of somebody who stands at the door."""

    SENT = "sent"
    NOT_SENT = "not sent"
    NOT_KNOWN = "not known"  # Nobody could be asked, or nobody answered in time.


class Panel(Protocol):
    # The least that an hour may be paid, in cents, by currency.
    minimum_an_hour: Mapping[str, int]

    def verdict(
        self, *, person: str, study: str, submission: str, given: Mapping[str, str], host: str, signed: bool
    ) -> Verdict:
        """Whether the panel sent this person in this submission to this host.

        Args:
            given: all parameters of the address that the person came with.
            signed: the study takes only what the panel signed.
        """
        ...


def get(kind: str) -> Panel | None:
    """The panel of that name; None for an open study, which has none."""
    dotted = PANELS.get(kind)
    if dotted is None:
        return None
    module, _dot, name = dotted.rpartition(".")
    panel: Panel = getattr(import_module(module), name)()
    return panel
