"""What the three reports share: their arguments, columns and pictures."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from survey.contracts.expectations import ComparedEvent
from survey.contracts.reports import Argument, ReportArguments
from survey.exceptions import HunchError
from survey.figures import FigureColumn
from survey.models import Study
from survey.services.results.reports import CONDITION

from .load import Selection, events_of


def event_names(study: Study) -> dict[str, str]:
    return {event.name: event.title for event in events_of(study)}


ARGUMENTS = (
    Argument("event", "only this event; all without it", choices=event_names, label="Only the event"),
    Argument(
        "reader",
        "a model, judge or predictor by its name in the tables; all without it",
        many=True,
        label="Only the model, judge or predictor",
    ),
    Argument(
        "texts_from",
        "the day by which the items’ texts existed, if earlier than their import",
        label="Texts existed on",
        example="2024-05-31",
    ),
    Argument(
        "trained",
        "a model's name, an equals sign, and the last day of what it may have learnt",
        many=True,
        label="Models learnt until",
        example="gpt-4=2024-05-31",
    ),
    CONDITION,
)


def asked_of(arguments: ReportArguments) -> Selection:
    """
    Raises:
        HunchError: a day cannot be read.
    """
    trained = []
    for text in arguments["trained"]:
        name, equals, day = text.rpartition("=")
        if not equals or not name:
            raise HunchError(f"trained: {text!r} is not NAME=YYYY-MM-DD")
        trained.append((name, _day("trained", day)))
    return Selection(
        event=arguments.one("event"),
        readers=arguments["reader"],
        condition=arguments["condition"],
        written=_day("texts_from", arguments.one("texts_from")) if arguments["texts_from"] else None,
        trained=trained,
    )


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise HunchError(f"{name}: {text!r} is not a day such as 2024-05-31") from exc


def figure_column(name: str, kind: str, meaning: str, **more: Any) -> FigureColumn:
    """A figure with its interval by person and item."""
    low = "Lower end of its 95 % interval by person and item; empty without one."
    return FigureColumn(name, kind, meaning, low=low, **more)


def in_words(events: Sequence[ComparedEvent]) -> list[str]:
    """A sentence an event: what is compared."""
    return [
        f"{event.name}: {event.title}. Compared are {event.human}, and {event.machine}."
        + (" People forecast it." if event.people_forecast else "")
        for event in events
    ]
