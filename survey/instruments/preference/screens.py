"""The prompt and its two replies. Which model wrote which stands on no page."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from survey.contracts.screens import Screen
from survey.services.base.seeds import derive

from .forms import form_for
from .options import PreferenceOptions

if TYPE_CHECKING:
    from survey.models import Assignment

JUDGEMENT = "judgement"
TEMPLATE = "preference/judgement.html"
SEEDS = 2**53  # `derive` gives seeds below this, all equally likely.


def a_is_first(assignment: "Assignment") -> bool:
    """Drawn from the stage's seed for each person and item. When an item is asked again its replies change sides."""
    slot = assignment.slot
    again = slot.repeat_of_id is not None
    asked = slot.repeat_of if slot.repeat_of is not None else slot
    drawn = derive(slot.stage.seed, "side", asked.number, assignment.sitting.public_id.hex)
    return bool(drawn % 2) is not again


def next_screen(assignment: "Assignment", options: PreferenceOptions) -> Screen | None:
    if assignment.responses.exists():
        return None
    comparison = assignment.slot.item.comparison
    replies = [comparison.a.response, comparison.b.response]
    if not a_is_first(assignment):
        replies.reverse()
    seed = derive(assignment.slot.stage.seed, "reason", assignment.sitting.public_id.hex, assignment.position)
    return screen_of(
        prompt=comparison.question.plain, replies=replies, options=options, reason=seed < options.reason_share * SEEDS
    )


def screen_of(*, prompt: str, replies: list[str], options: PreferenceOptions, reason: bool) -> Screen:
    """The screen of any prompt with two replies, in the order in which they are shown."""
    parts = {"prompt": {"kind": "prompt", "value": prompt}}
    words = {"prompt": _("The prompt"), "reply_1": _("Reply 1"), "reply_2": _("Reply 2")}
    for number, reply in enumerate(replies, start=1):
        cut_reply = cut(reply, options.max_reply_characters)
        parts[f"reply_{number}"] = {"kind": "reply", "value": cut_reply}
        if options.replies_as == "markdown":
            parts[f"reply_{number}"]["format"] = "markdown"
        if cut_reply != reply:
            words[f"cut_{number}"] = _("This reply was longer. It is cut here.")
    return Screen(
        name=JUDGEMENT,
        title=_("Which reply is better?"),
        template=TEMPLATE,
        form=form_for(scales=options.questions, cannot_judge=options.cannot_judge, reason=reason),
        parts=parts,
        words=words,
    )


def cut(reply: str, characters: int) -> str:
    """The reply, or its beginning with a mark."""
    return reply if len(reply) <= characters else f"{reply[:characters].rstrip()} […]"
