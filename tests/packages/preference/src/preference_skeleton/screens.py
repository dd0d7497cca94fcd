"""The prompt and its two replies. Which model wrote which is on no page."""

from typing import TYPE_CHECKING

from survey.contracts.screens import Screen
from survey.services.base.seeds import generator

from .forms import form_for
from .models import Comparison

if TYPE_CHECKING:
    from survey.models import Assignment

    from .instrument import PreferenceOptions

CUT = " […]"


def a_is_first(assignment: "Assignment") -> bool:
    """Drawn from the stage's seed for each assignment. When an item is asked again its replies change sides."""
    slot = assignment.slot
    asked = slot if slot.repeat_of_id is None else slot.repeat_of
    rng = generator(slot.stage.seed, "side", asked.number, assignment.sitting.public_id.hex)
    return bool(rng.integers(2)) is (slot.repeat_of_id is None)


def next_screen(assignment: "Assignment", options: "PreferenceOptions") -> Screen | None:
    if assignment.responses.exists():
        return None
    comparison = Comparison.objects.select_related("question", "a", "b").get(item_id=assignment.slot.item_id)
    replies = [comparison.a.response, comparison.b.response]
    if not a_is_first(assignment):
        replies.reverse()
    first, second = (cut(reply, options.max_reply_characters) for reply in replies)
    return Screen(
        name="judgement",
        title="Which reply is better?",
        template="preference_skeleton/judgement.html",
        form=form_for(scales=options.questions, cannot_judge=options.cannot_judge, reason=options.reason),
        parts={
            "prompt": {"kind": "prompt", "value": comparison.question.plain},
            "reply_1": {"kind": "reply", "value": first},
            "reply_2": {"kind": "reply", "value": second},
        },
    )


def cut(reply: str, characters: int) -> str:
    return reply if len(reply) <= characters else reply[:characters].rstrip() + CUT
