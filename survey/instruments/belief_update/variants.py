"""The form in which a person sees an item: from the conditions, and from draws for the sitting and the item.

Every draw depends only on seeds and positions. So it is fixed before anything is answered, and can be repeated.
"""

from collections.abc import Mapping
from itertools import permutations
from typing import TYPE_CHECKING

from survey.services.base.seeds import derive
from survey.study_file import AnswererConfig

from .forms import DIRECTIONS
from .options import BeliefUpdateOptions
from .screens import Setting, ShownAid

if TYPE_CHECKING:
    from survey.models import Assignment, Sitting

# A condition of this name has some of these levels and changes the words of the items.
ANSWERER = "answerer"
ANSWERERS = ("model", "ai_or_person")
SEEDS = 2**53  # `derive` gives seeds below this, all equally likely.


def of_assignment(
    assignment: "Assignment",
    options: BeliefUpdateOptions,
    levels: Mapping[str, str],
    name: AnswererConfig | None = None,
) -> Setting:
    """
    Args:
        options: already changed by the conditions' levels.
        name: what the study calls the one who answers, if it does, in the language of the sitting.
    """
    sitting, seed = assignment.sitting, assignment.slot.stage.seed
    return Setting(
        options=_framed(options, levels),
        order=order_of(sitting, seed=seed),
        language=sitting.language,
        explained=is_explained(sitting.public_id.hex, assignment.position, seed=seed, share=options.explanation_share),
        name=name,
        evidence_order=()
        if options.evidence_questions == 1
        else evidence_order(options, sitting.public_id.hex, assignment.slot.item.key, seed=seed),
        aid=_aid(assignment, options),
    )


def _aid(assignment: "Assignment", options: BeliefUpdateOptions) -> ShownAid | None:
    if options.aid == "none":
        return None
    stored = getattr(assignment.slot.item.pair, "aid", None)
    return None if stored is None else ShownAid(right=stored.right, asked=stored.asked)


def of_practice(sitting: "Sitting", options: BeliefUpdateOptions) -> Setting:
    """Like the items; reasons are practised if the study may ask for them. Nobody is paid for practice."""
    return Setting(
        options=_framed(options, sitting.levels()).model_copy(update={"pay_for_accuracy": False}),
        order=order_of(sitting, seed=sitting.stage.seed),
        language=sitting.language,
        explained=options.explanation_share > 0,
        name=sitting.shown_config.texts.answerer,
        evidence_order=() if options.evidence_questions == 1 else tuple(range(1, options.evidence_questions + 1)),
    )


def order_of(sitting: "Sitting", *, seed: int) -> tuple[str, ...]:
    """The order of the directions, drawn once per sitting: most people take the first direction that fits."""
    return order_by_id(sitting.public_id.hex, seed=seed)


def order_by_id(sitting: str, *, seed: int) -> tuple[str, ...]:
    """The same, by the sitting's public id."""
    reversed_ = derive(seed, "directions", sitting) % 2
    return DIRECTIONS[::-1] if reversed_ else DIRECTIONS


def evidence_order(options: BeliefUpdateOptions, sitting: str, item: str, *, seed: int) -> tuple[int, ...]:
    """The places of an item's evidence questions in the order in which this sitting (its public id) sees them. An item
    that comes twice in a sitting has the same order both times."""
    many, order = options.evidence_questions, options.evidence_order
    if order == "drawn":
        return tuple(range(1, many + 1))
    if order != "shuffled":
        return tuple(map(int, order.split("-")))
    every = tuple(permutations(range(1, many + 1)))
    return every[derive(seed, "evidence order", sitting, item) % len(every)]


def is_explained(sitting: str, position: int, *, seed: int, share: float) -> bool:
    """Whether reasons are asked for at the item at this position of a sitting (by its public id)."""
    return share > 0 and derive(seed, "explanation", sitting, position) < share * SEEDS


def _framed(options: BeliefUpdateOptions, levels: Mapping[str, str]) -> BeliefUpdateOptions:
    answerer = levels.get(ANSWERER)
    return options.model_copy(update={"answerer": answerer}) if answerer in ANSWERERS else options
