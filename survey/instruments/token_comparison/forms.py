"""One of the offered chances for the left token. Nothing is preselected."""

from collections.abc import Sequence

from django import forms
from django.utils.translation import gettext as _

from .analysis.rewards import UNSURE


class ChancesInRow(forms.RadioSelect):
    """Points in a row; the ends and the middle have words."""

    is_scale = True


def form_for(ratios: Sequence[int]) -> type[forms.Form]:
    """The form that offers these percentages."""
    words = {
        ratios[0]: _("very surely the right one"),
        UNSURE: _("I don’t know"),
        ratios[-1]: _("very surely the left one"),
    }
    chance = forms.ChoiceField(
        label=_("How likely is it that the left one is the true one, in percent?"),
        choices=[(str(ratio), words.get(ratio, str(ratio))) for ratio in ratios],
        widget=ChancesInRow,
        error_messages={
            "required": _("Choose one of the percentages. If you do not know, choose 50."),
            "invalid_choice": _("Choose one of the percentages. If you do not know, choose 50."),
        },
    )
    return type("ChanceForm", (forms.Form,), {"percent_left": chance})
