"""A scale of eight places without a middle for each question; or that one cannot judge. Nothing is preselected."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

PLACES = range(1, 9)
CHOOSE = gettext_lazy("Choose one of the eight places, from 1 to 8.")
LONGEST_REASON = 1000
# The questions that have sentences of their own in every language of ours.
ASKED = {
    "helpful": gettext_lazy("Which reply is more helpful?"),
    "truthful": gettext_lazy("Which reply is more truthful?"),
    "harmless": gettext_lazy("Which reply is more harmless?"),
    "clear": gettext_lazy("Which reply is clearer?"),
    "polite": gettext_lazy("Which reply is more polite?"),
}


class PlacesInRow(forms.RadioSelect):
    """Points in a row; only the ends have words."""

    is_scale = True


class ScaleField(forms.ChoiceField):
    needed_at_times = True  # Also checked where it is not required: unless one cannot judge.


class JudgementForm(forms.Form):
    scales: Sequence[str] = ()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        for scale in self.scales:
            if not cleaned.get(scale) and not cleaned.get("cannot_judge") and scale not in self.errors:
                self.add_error(scale, CHOOSE)
        return cleaned


def question_of(scale: str) -> str:
    """The sentence that asks it."""
    if scale in ASKED:
        return str(ASKED[scale])
    return _("Which reply is more %(word)s?") % {"word": scale.replace("_", " ")}


def form_for(*, scales: Sequence[str], cannot_judge: bool, reason: bool) -> type[forms.Form]:
    ends = {1: _("reply 1 is much better"), 8: _("reply 2 is much better")}
    fields: dict[str, Any] = {"scales": tuple(scales)}
    for scale in scales:
        fields[scale] = ScaleField(
            label=question_of(scale),
            choices=[(str(place), ends.get(place, str(place))) for place in PLACES],
            widget=PlacesInRow,
            required=False,
            error_messages={"invalid_choice": CHOOSE},
        )
    if cannot_judge:
        fields["cannot_judge"] = forms.BooleanField(label=_("I cannot judge this"), required=False)
    if reason:
        fields["reason"] = forms.CharField(
            label=_("Why? A few words are enough."),
            required=False,
            max_length=LONGEST_REASON,
            widget=forms.Textarea(attrs={"rows": "3"}),
            error_messages={"max_length": _("Please keep it below 1,000 characters.")},
        )
    return type("JudgementForm", (JudgementForm,), fields)
