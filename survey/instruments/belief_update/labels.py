"""The label: did the belief change by more than the threshold. Reads only what `beliefs_of` is given."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from survey.models import Assignment


# Attribute of an assignment whose beliefs were read without its responses.
KNOWN = "_known_beliefs"
# The kinds of beliefs after evidence, in the order in which they are given.
AFTER_EVIDENCE = ("step_1", "step_2", "posterior")


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Percentage points; None where not given (yet). `steps`: in items with several evidence questions, for each that
    was shown, in that order, its place in the item and the belief after it."""

    prior: int | None
    posterior: int | None
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def change(self) -> int | None:
        if self.prior is None or self.posterior is None:
            return None
        return self.posterior - self.prior

    @property
    def after_first(self) -> "Beliefs":
        """What the first evidence question alone did; the same where items have one."""
        return Beliefs(self.prior, self.steps[0][1]) if self.steps else self

    def changed(self, threshold: int) -> bool | None:
        return None if self.change is None else abs(self.change) > threshold


def beliefs_of(assignment: "Assignment") -> Beliefs:
    known: Beliefs | None = assignment.__dict__.get(KNOWN)
    if known is not None:
        return known
    return beliefs_from(
        (response.belief.kind, response.belief.value, response.belief.place)
        for response in assignment.responses.all()
        if hasattr(response, "belief")
    )


def beliefs_from(stated: "Iterable[tuple[str, int, int | None]]") -> Beliefs:
    """From the kind, the value and the place of each belief that was given."""
    values: dict[str, int] = {}
    places: dict[str, int] = {}
    for kind, value, place in stated:
        values[kind] = value
        if place is not None:
            places[kind] = place
    steps = tuple((places[kind], values[kind]) for kind in AFTER_EVIDENCE if kind in places) if places else ()
    return Beliefs(values.get("prior"), values.get("posterior"), steps)


def further_values(assignment: "Assignment") -> list[Any]:
    """What was given besides the beliefs, for the snapshot's hash; empty if the study asks for nothing else."""
    values: list[Any] = [["step", place, value] for place, value in beliefs_of(assignment).steps]
    for response in assignment.responses.all():
        if hasattr(response, "explanation"):
            values.append(["explanation", response.explanation.text])
        if hasattr(response, "target_answer"):
            answer = response.target_answer
            values.append(["own_answer", answer.text, answer.correct, answer.confidence])
    return values
