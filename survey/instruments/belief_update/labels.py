"""The label: did the belief change by more than the threshold. Reads only what `beliefs_of` is given."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from survey.models import Assignment


# Attribute of an assignment whose beliefs were read without its responses.
KNOWN = "_known_beliefs"


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Percentage points; None where not given (yet)."""

    prior: int | None
    posterior: int | None

    @property
    def change(self) -> int | None:
        if self.prior is None or self.posterior is None:
            return None
        return self.posterior - self.prior

    def changed(self, threshold: int) -> bool | None:
        return None if self.change is None else abs(self.change) > threshold


def beliefs_of(assignment: "Assignment") -> Beliefs:
    known: Beliefs | None = assignment.__dict__.get(KNOWN)
    if known is not None:
        return known
    values = {
        response.belief.kind: response.belief.value
        for response in assignment.responses.all()
        if hasattr(response, "belief")
    }
    return Beliefs(prior=values.get("prior"), posterior=values.get("posterior"))


def further_values(assignment: "Assignment") -> list[Any]:
    """What was given besides the beliefs, for the snapshot's hash; empty if the study asks for nothing else."""
    found: list[Any] = []
    for response in assignment.responses.all():
        if hasattr(response, "explanation"):
            found.append(["explanation", response.explanation.text])
        if hasattr(response, "target_answer"):
            answer = response.target_answer
            found.append(["own_answer", answer.text, answer.correct, answer.confidence])
    return found
