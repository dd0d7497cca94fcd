"""One of the offered chances, from surely A to surely B. Nothing is preselected."""

from collections.abc import Sequence

from django import forms
from django.utils.translation import gettext as _

from .analysis.rewards import UNSURE


class ChancesInRow(forms.RadioSelect):
    """Points in a row, each with how sure it is of the nearer side; the ends and the middle have words."""

    is_scale = True

    @staticmethod
    def mark(percent_left: str) -> str:
        """What stands under a point."""
        return str(max(int(percent_left), 100 - int(percent_left)))

    @classmethod
    def plain_text(cls, percent_left: str) -> str:
        """What is said of a point between the ends and the middle."""
        return f"{'A' if int(percent_left) > UNSURE else 'B'} {cls.mark(percent_left)}"


def form_for(ratios: Sequence[int]) -> type[forms.Form]:
    """The form that offers these percentages. A is shown first and on the left, so its end of the scale is on the left,
    too: what is stored is the chance of A, and it falls along the row."""
    words = {
        ratios[-1]: _("surely A"),
        UNSURE: _("I don’t know"),
        ratios[0]: _("surely B"),
    }
    choose = _("Choose one of the points. If you do not know, choose the middle one.")
    chance = forms.ChoiceField(
        label=_("Is it A or B? How sure are you, in percent?"),
        choices=[(str(ratio), words.get(ratio, ChancesInRow.plain_text(str(ratio)))) for ratio in reversed(ratios)],
        widget=ChancesInRow,
        error_messages={"required": choose, "invalid_choice": choose},
    )
    return type("ChanceForm", (forms.Form,), {"percent_left": chance})
