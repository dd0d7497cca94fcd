"""What the three reports share: their arguments, how figures are written, and notes in a figure's place."""

import math
from collections.abc import Sequence
from datetime import date

from survey.contracts.expectations import ComparedEvent
from survey.contracts.reports import Argument, Given
from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.results.reports import CONDITION

from .errors import Bounded
from .reading import Asked, events_of

NOTHING = "–"


def event_names(study: Study) -> list[str]:
    return [event.name for event in events_of(study)]


ARGUMENTS = (
    Argument("event", "only this event; all without it", choices=event_names),
    Argument("reader", "only this model, judge or predictor; all without it", many=True),
    Argument("texts_from", "YYYY-MM-DD: the day by which the items’ texts existed, if earlier than their import"),
    Argument("trained", "NAME=YYYY-MM-DD: the last day of what a model may have learnt", many=True),
    CONDITION,
)


def asked_of(given: Given) -> Asked:
    """
    Raises:
        HunchError: a day cannot be read.
    """
    trained = []
    for text in given["trained"]:
        name, equals, day = text.rpartition("=")
        if not equals or not name:
            raise HunchError(f"trained: {text!r} is not NAME=YYYY-MM-DD")
        trained.append((name, _day("trained", day)))
    return Asked(
        event=given.one("event"),
        readers=given["reader"],
        condition=given["condition"],
        written=_day("texts_from", given.one("texts_from")) if given["texts_from"] else None,
        trained=trained,
    )


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise HunchError(f"{name}: {text!r} is not a day such as 2024-05-31") from exc


def with_interval(figure: Bounded, *, digits: int = 2, percent: bool = False) -> str:
    """0.71 [0.60, 0.79], or 71 % [60, 79]; a dash where there is none."""
    if not figure.is_defined:
        return NOTHING
    factor, unit = (100, " %") if percent else (1, "")
    text = f"{_signless(factor * figure.value, digits)}{unit}"
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{_signless(factor * figure.low, digits)}, {_signless(factor * figure.high, digits)}]"


def _signless(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def cells(figure: Bounded) -> list[float | None]:
    """Value, low and high for a file; None where there is none."""
    return [figure.value if math.isfinite(figure.value) else None, figure.low, figure.high]


def columns_of(name: str, kind: str, meaning: str) -> tuple[Column, ...]:
    """The three columns of a figure with its interval."""
    return (
        Column(name, kind, meaning),
        Column(f"{name}_low", kind, "Lower end of its 95 % interval by person and item; empty without one."),
        Column(f"{name}_high", kind, "Its upper end."),
    )


def in_words(events: Sequence[ComparedEvent]) -> list[str]:
    """A sentence an event: what is compared."""
    return [
        f"{event.name}: {event.title}. Compared are {event.human}, and {event.machine}."
        + (" People forecast it." if event.people_forecast else "")
        for event in events
    ]
