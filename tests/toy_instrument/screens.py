"""Three screens an item; each tells what the guess before was worth, be it of this item or the one before."""

from typing import TYPE_CHECKING, Any

from survey.contracts.screens import Screen

from .forms import GuessForm
from .labels import GUESSES
from .models import Guess, Passage

if TYPE_CHECKING:
    from survey.models import Assignment


def next_screen(assignment: "Assignment") -> Screen | None:
    given = assignment.responses.count()
    if given >= GUESSES:
        return None
    passage = Passage.objects.select_related("question").get(item_id=assignment.slot.item_id)
    parts: dict[str, dict[str, Any]] = {"opening": {"kind": "text", "value": passage.question.plain.split()[0]}}
    earlier = Guess.objects.filter(response__assignment__sitting=assignment.sitting_id)
    if last := earlier.select_related("response__score").order_by("response_id").last():
        parts["last_guess"] = {"kind": "text", "value": last.text}
        parts["points"] = {"kind": "number", "value": int(last.response.score.value)}
    return Screen(
        name=f"guess_{given + 1}",
        title="How does it go on?",
        template="toy_instrument/guess.html",
        form=GuessForm,
        parts=parts,
    )
