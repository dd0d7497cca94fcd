"""Three guesses an item, then a page that asks nothing. Each says what the guess before was worth."""

from typing import TYPE_CHECKING, Any

from survey.contracts.screens import Screen

from .forms import GuessForm
from .labels import GUESSES, total_of
from .models import Guess, Passage

if TYPE_CHECKING:
    from survey.models import Assignment

FEEDBACK = "feedback"


def next_screen(assignment: "Assignment") -> Screen | None:
    guess_count = assignment.responses.count()
    if guess_count > GUESSES:
        return None
    if guess_count == GUESSES:
        return feedback_screen(assignment)
    passage = Passage.objects.select_related("question").get(item_id=assignment.slot.item_id)
    parts: dict[str, dict[str, Any]] = {"opening": {"kind": "text", "value": passage.question.plain.split()[0]}}
    earlier = Guess.objects.filter(response__assignment=assignment.pk)
    if last := earlier.select_related("response__score").order_by("response_id").last():
        parts["last_guess"] = {"kind": "text", "value": last.text}
        parts["points"] = {"kind": "number", "value": int(last.response.score.value)}
    return Screen(
        name=f"guess_{guess_count + 1}",
        title="How does it go on?",
        template="toy_instrument/guess.html",
        form=GuessForm,
        parts=parts,
    )


def feedback_screen(assignment: "Assignment") -> Screen:
    passage = Passage.objects.select_related("question").get(item_id=assignment.slot.item_id)
    return Screen(
        name=FEEDBACK,
        title="How it goes on",
        template="toy_instrument/feedback.html",
        form=None,
        parts={
            "question": {"kind": "question", "value": passage.question.text},
            "points": {"kind": "number", "value": int(total_of(assignment))},
        },
    )
