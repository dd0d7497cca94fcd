"""A stored judgement, and its rating towards A."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import ReplyJudgement

# Attribute of an answer whose judgement was read without its responses.
KNOWN = "_known_judgement"


def judgement_of(assignment: "Assignment") -> "ReplyJudgement | None":
    """The stored judgement; None if it was not given (yet)."""
    if KNOWN in assignment.__dict__:
        known: ReplyJudgement | None = assignment.__dict__[KNOWN]
        return known
    judgements = (response.judgement for response in assignment.responses.all() if hasattr(response, "judgement"))
    return next(judgements, None)


def rating_of(assignment: "Assignment", scale: str = "") -> float | None:
    """The rating towards A on one question, by default the first; None where there is none."""
    judgement = judgement_of(assignment)
    if judgement is None or judgement.place is None:
        return None
    place = judgement.places.get(scale) if scale else judgement.place
    return None if place is None else judgement.towards_a(place)
