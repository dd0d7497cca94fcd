"""What counts of a person's answer to a comparison."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from survey.models import Assignment

    from .models import StatedChance


def stated_of(assignment: "Assignment") -> "StatedChance | None":
    """What the person said; None if nothing (yet)."""
    for response in assignment.responses.all():
        if hasattr(response, "stated_chance"):
            stated_chance: StatedChance = response.stated_chance
            return stated_chance
    return None
