"""A scale of eight places without a middle for each question; or that one cannot judge."""

from collections.abc import Sequence
from typing import Any

from django import forms

PLACES = range(1, 9)
ENDS = {1: "1 – reply 1 is much better", 8: "8 – reply 2 is much better"}


class JudgementForm(forms.Form):
    scales: Sequence[str] = ()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        for scale in self.scales:
            if not cleaned.get(scale) and not cleaned.get("cannot_judge") and scale not in self.errors:
                self.add_error(scale, "Choose one of the eight places.")
        return cleaned


def form_for(*, scales: Sequence[str], cannot_judge: bool, reason: bool) -> type[forms.Form]:
    fields: dict[str, Any] = {"scales": tuple(scales)}
    for scale in scales:
        fields[scale] = forms.ChoiceField(
            label=f"Which reply is more {scale}?",
            choices=[(str(place), ENDS.get(place, str(place))) for place in PLACES],
            widget=forms.RadioSelect,
            required=False,
            error_messages={"invalid_choice": "Choose one of the eight places."},
        )
        fields[scale].needed_at_times = True
    if cannot_judge:
        fields["cannot_judge"] = forms.BooleanField(label="I cannot judge this", required=False)
    if reason:
        fields["reason"] = forms.CharField(label="Why?", required=False, max_length=2000, widget=forms.Textarea)
    return type("JudgementForm", (JudgementForm,), fields)
