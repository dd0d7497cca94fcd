"""Until when a study's personal data is kept. Imports only models and exceptions."""

from datetime import date

from django.utils import timezone

from survey.exceptions import Problem, StateRefused
from survey.models import Study


def retention_problem(until: date | None, *, today: date) -> Problem | None:
    """Why no stage may open with this date; None if one may."""
    if until is None:
        message = "is missing: say until when personal data is kept, for example 2036-12-31"
    elif until < today:
        message = (
            f"{until} is past: nobody may be asked any more; stop here, or set a later date if nobody has agreed yet"
        )
    else:
        return None
    return Problem("", None, "data.retention_until", message)


def refuse_without_retention(study: Study) -> None:
    """
    Raises:
        StateRefused: the study file does not say until when data is kept, or that day is past.
    """
    problem = retention_problem(study.config.data.retention_until, today=timezone.now().date())
    if problem:
        raise StateRefused(f"{problem} (`hunch amend_study FILE`)")


def is_over(study: Study, *, today: date | None = None) -> bool:
    """Whether the date has passed: all ids of people should be removed by then."""
    until = study.config.data.retention_until
    return until is not None and until < (today or timezone.now().date())
