"""What the two screens show. The evidence and its outcome are read only once the prior is stored."""

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from survey.instruments.registry import Screen

from .forms import BeliefForm
from .models import Pair

if TYPE_CHECKING:
    from survey.models import Assignment


def next_screen(assignment: "Assignment", *, answerer: str = "model", show_answer: bool = False) -> Screen | None:
    """
    Args:
        answerer: "ai_or_person" where the pages leave open whether an AI system or a person answers.
        show_answer: whether what the model really wrote is shown with the evidence.
    """
    given = list(assignment.responses.select_related("belief").order_by("number"))
    pair = Pair.objects.select_related("target", "evidence", "answer").get(item_id=assignment.slot.item_id)
    # What pages always said is in no part, so that the screens of older studies keep their hashes.
    framing = {} if answerer == "model" else {"answerer": {"kind": "text", "value": answerer}}
    if not given:
        return Screen(
            name="prior",
            title=_("How likely is a correct answer?"),
            template="belief_update/prior.html",
            form=BeliefForm,
            parts={"target": {"kind": "question", "value": pair.target.text}, **framing},
        )
    if len(given) > 1:
        return None
    parts: dict[str, dict[str, Any]] = {
        "target": {"kind": "question", "value": pair.target.text},
        "prior": {"kind": "number", "value": given[0].belief.value},
        **framing,
    }
    if pair.evidence is not None:
        parts["evidence"] = {"kind": "question", "value": pair.evidence.text}
        parts["outcome"] = {"kind": "text", "value": "correct" if pair.outcome else "incorrect"}
        if show_answer and pair.answer is not None:
            written = pair.answer.response if pair.answer.response.strip() else pair.answer.stated
            parts["given_answer"] = {"kind": "text", "value": written or _("(an empty reply)")}
    return Screen(
        name="posterior",
        title=_("And now?"),
        template="belief_update/posterior.html",
        form=BeliefForm,
        parts=parts,
    )
