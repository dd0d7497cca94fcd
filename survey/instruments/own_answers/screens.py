"""What the one screen shows: the question. The key stays on the server."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen

from .forms import form_for

if TYPE_CHECKING:
    from survey.models import Assignment


# The script that joins a number's field to a track; without it only the field is shown.
SCRIPTS = ("frontend/number.js",)


def next_screen(assignment: "Assignment", *, confidence: bool) -> Screen | None:
    if assignment.responses.exists():
        return None
    question = assignment.slot.item.asked_question.question
    return Screen(
        name="answer",
        title=_("What is the answer?"),
        template="own_answers/answer.html",
        scripts=SCRIPTS,
        form=form_for(question=question.text, key=question.answer, confidence=confidence),
        parts={"question": {"kind": "question", "value": question.text}},
    )
