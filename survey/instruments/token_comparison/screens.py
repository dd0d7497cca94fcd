"""The two screens of a comparison: the context with two tokens, and after the answer which was true and its reward.

Nothing of the first one differs between the true and the other token, and no probability stands on it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db.models import Sum
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from survey.contracts.screens import Screen
from survey.services.base.seeds import derive

from .forms import form_for
from .labels import stated_of
from .models import StatedChance
from .options import ComparisonOptions

if TYPE_CHECKING:
    from survey.models import Assignment

COMPARE, REVEALED = "compare", "revealed"
TEMPLATE = "token_comparison/comparison.html"
SPACE = "·"


def shown_token(token: str) -> str:
    """A token for people: spaces as raised dots."""
    return token.replace(" ", SPACE)


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
        percent_true=stated.percent_true,
        reward=float(stated.reward),
        total=options.endowment + points_so_far(assignment),
    )


def points_so_far(assignment: "Assignment") -> float:
    """The rewards of the sitting, without the endowment."""
    own = StatedChance.objects.filter(response__assignment__sitting=assignment.sitting_id)
    return float(own.order_by().aggregate(sum=Sum("reward"))["sum"] or 0)


def comparison_screen(*, context: str, tokens: tuple[str, str], ratios: Sequence[int]) -> Screen:
    """The screen of any context with two tokens, the left one first."""
    return Screen(
        name=COMPARE,
        title=_("Which one comes next?"),
        template=TEMPLATE,
        form=form_for(ratios),
        parts={
            "context": {"kind": "context", "value": context},
            "left": {"kind": "token", "value": shown_token(tokens[0])},
            "right": {"kind": "token", "value": shown_token(tokens[1])},
        },
        words={
            "left": _("left"),
            "right": _("right"),
            "hint": _("One of the two is how the text really goes on. The dot · stands for a space."),
        },
    )


def revealed_screen(
    *, context: str, true: str, percent_true: int, reward: float, total: float | None, practice: bool = False
) -> Screen:
    """Which was true, and what that gave. `total`: the points so far; None: they do not count."""
    words = {
        "true": _("True is: %(token)s") % {"token": shown_token(true)},
        "given": _("You gave it %(percent)s %%.") % {"percent": percent_true},
        "reward": _("Your reward: %(points)s points.") % {"points": signed(reward)},
    }
    if total is not None:
        words["total"] = _("So far you have %(points)s points.") % {"points": grouped(total)}
    if practice:
        words["total"] = _("This was for practice, so these points do not count.")
    return Screen(
        name=REVEALED,
        title=_("How the text goes on"),
        template=TEMPLATE,
        form=None,
        parts={
            "context": {"kind": "context", "value": context},
            "true": {"kind": "token", "value": shown_token(true)},
        },
        words=words,
    )


def grouped(points: float) -> str:
    return str(number_format(round(points), decimal_pos=0, use_l10n=True, force_grouping=True))


def signed(points: float) -> str:
    sign = "+" if points > 0 else "−" if points < 0 else ""
    return f"{sign}{number_format(abs(points), decimal_pos=1, use_l10n=True, force_grouping=True)}"
