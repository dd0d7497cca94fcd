"""What a respondent is shown of an item, and what a simulated person answers. Imports only the exceptions."""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.forms import Form

from survey.exceptions import FieldErrors


def normal_of(*name: str) -> float:
    """A number from the standard normal distribution, always the same for a name: what simulated people agree about."""
    seed = int.from_bytes(hashlib.sha256("\n".join(name).encode()).digest()[:8], "big")
    return random.Random(seed).gauss(0, 1)  # noqa: S311 - reproducible on purpose


@dataclass(frozen=True)
class Screen:
    """One screen of an item: what it shows and what may be answered.

    `parts` is everything that pages and API may show, by name: `{"kind": ..., "value": ...}`. The core shows "question"
    as a bank's text with its markup, and every other kind as plain text. An instrument may add kinds that its template
    shows. `words` are the sentences around the parts. The part `variant` says in readable words in which form the
    screen is shown.

    `form` is None on a screen that asks nothing, such as feedback: "Continue" leaves it, and is stored as a response
    without an answer. `scripts` are static files (paths as in `{% static %}`) that the page loads with `defer`; a
    screen must work without them, unless its instrument `needs` scripts.

    `stop_field` names a yes or no of the form of an item's last screen: whoever says yes wants no more items. What
    follows of the sitting's items then goes to others, and the blocks behind them come; attention checks that are due
    by then are asked first.
    """

    name: str
    title: str
    template: str
    form: type[Form] | None
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    scripts: Sequence[str] = ()
    stop_field: str = ""

    def fields(self, data: Mapping[str, Any] | None = None) -> Form | None:
        """Its form, empty or with what was sent; None if it asks nothing."""
        if self.form is None:
            return None
        return self.form() if data is None else self.form(data)

    def accepted(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What was sent, cleaned by its form; empty if it asks nothing.

        Raises:
            FieldErrors: the form did not accept it.
        """
        form = self.fields(data)
        if form is None:
            return {}
        if not form.is_valid():
            raise FieldErrors({name: [str(message) for message in messages] for name, messages in form.errors.items()})
        return dict(form.cleaned_data)

    def content(self) -> dict[str, Any]:
        """The content that the screen's hash is made from."""
        return {"screen": self.name, "title": str(self.title), "parts": self.parts, "words": dict(self.words)}


@dataclass(frozen=True)
class Points:
    """A response's points, and the rule that gave them."""

    value: Decimal
    rule: str
    version: str


class SimulatedPerson(ABC):
    """Answers an instrument's screens from what they show."""

    def opening(self, *, screen: str) -> str:
        """What its browser sends before the answer to say that the screen was begun (`Instrument.opened`); empty if it
        sends nothing."""
        return ""

    @abstractmethod
    def answer(self, *, screen: str, parts: Mapping[str, str]) -> dict[str, str]:
        """Form data for a screen, from the texts of its parts as a reader sees them."""
