"""The two screens of a comparison: the context with two tokens, and after the answer which was true and its reward.

Nothing of the first one differs between the true and the other token, and no probability stands on it.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db.models import Sum
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from survey.contracts.screens import Screen
from survey.services.base.seeds import derive

from .analysis.rewards import UNSURE
from .forms import form_for
from .labels import stated_of
from .models import StatedChance
from .options import ComparisonOptions

if TYPE_CHECKING:
    from survey.models import Assignment

COMPARE, REVEALED = "compare", "revealed"
TEMPLATE = "token_comparison/comparison.html"
WORDS_BEFORE = 4
"""So many words of the context stand in front of each token, so that people see whether a new word begins."""


def end_of(context: str) -> str:
    """The last words of a context, with the blanks behind them."""
    begins = [match.start() for match in re.finditer(r"\S+", context)]
    return context[begins[-WORDS_BEFORE] :] if len(begins) > WORDS_BEFORE else context


def true_is_left(assignment: "Assignment") -> bool:
    """Drawn from the stage's seed for each person and item."""
    slot = assignment.slot
    drawn = derive(slot.stage.seed, "side of the true token", slot.number, assignment.sitting.public_id.hex)
    return bool(drawn % 2)


def next_screen(assignment: "Assignment", options: ComparisonOptions) -> Screen | None:
    """The comparison; which was true; then nothing."""
    stated = stated_of(assignment)
    pair = assignment.slot.item.token_pair
    if stated is None:
        left = true_is_left(assignment)
        tokens = (pair.context.true_text, pair.other_text)
        return comparison_screen(context=pair.shown, tokens=tokens if left else tokens[::-1], ratios=options.ratios)
    if len(assignment.responses.all()) > 1:
        return None
    return revealed_screen(
        context=pair.shown,
        true=pair.context.true_text,
        true_is_left=stated.true_is_left,
        percent_left=stated.percent_left,
        reward=float(stated.reward),
        total=options.endowment + points_so_far(assignment),
    )


def points_so_far(assignment: "Assignment") -> float:
    """The rewards of the sitting, without the endowment."""
    own = StatedChance.objects.filter(response__assignment__sitting=assignment.sitting_id)
    return float(own.order_by().aggregate(sum=Sum("reward"))["sum"] or 0)


def comparison_screen(*, context: str, tokens: tuple[str, str], ratios: Sequence[int]) -> Screen:
    """The screen of any context with two tokens. The first one is the part `left`, which people know as A."""
    return Screen(
        name=COMPARE,
        title=_("Which one comes next?"),
        template=TEMPLATE,
        form=form_for(ratios),
        parts={
            "context": {"kind": "context", "value": context},
            "end": {"kind": "context", "value": end_of(context)},
            "left": {"kind": "token", "value": tokens[0]},
            "right": {"kind": "token", "value": tokens[1]},
        },
        words={
            "left": _("A"),
            "right": _("B"),
            "blank": _("(only a space)"),
            "hint": _("One of the two, A or B, is how the text really goes on."),
        },
    )


def revealed_screen(
    *, context: str, true: str, true_is_left: bool, percent_left: int, reward: float, total: float | None
) -> Screen:
    """Which was true, and what that gave. `total`: the points so far; None: a practice item, whose points do not
    count."""
    points = round(reward)
    words = {
        "true": _("A was right.") if true_is_left else _("B was right."),
        "given": choice_in_words(percent_left),
        "blank": _("(only a space)"),
    }
    if total is not None:
        words["reward"] = points_in_words(points)
        words["total"] = _("You now have %(points)s points.") % {"points": grouped(total)}
    elif points < 0:
        words["reward"] = _("In the study this would cost %(points)s points.") % {"points": grouped(-points)}
        words["total"] = _(
            "This was practice: you have lost nothing. If you are not sure, choose a point near the middle. Then a "
            "wrong answer costs little."
        )
    else:
        words["reward"] = _("In the study this would give %(points)s points.") % {"points": grouped(points)}
    return Screen(
        name=REVEALED,
        title=_("How the text goes on"),
        template=TEMPLATE,
        form=None,
        parts={
            "context": {"kind": "context", "value": context},
            "true": {"kind": "token", "value": true},
        },
        words=words,
    )


def choice_in_words(percent_left: int) -> str:
    """What a person chose, as the scale shows it."""
    if percent_left == UNSURE:
        return _("You said that you do not know.")
    if percent_left > UNSURE:
        return _("You chose A, %(percent)s %% sure.") % {"percent": percent_left}
    return _("You chose B, %(percent)s %% sure.") % {"percent": 100 - percent_left}


def points_in_words(points: int) -> str:
    if points < 0:
        return _("You lose %(points)s points.") % {"points": grouped(-points)}
    return _("You win %(points)s points.") % {"points": grouped(points)}


def grouped(points: float) -> str:
    """Whole points."""
    return str(number_format(round(points), decimal_pos=0, use_l10n=True, force_grouping=True))
