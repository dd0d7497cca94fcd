"""The times of a passage in one field, and the answer to its question."""

import re
from functools import lru_cache
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from .marks import OF_BROWSER
from .models import WordTimes

LONGEST_MS = 60_000
LONGEST_LEAD_MS = 10**9
TIME = re.compile(r"[0-9]{1,9}", re.ASCII)


class TimesForm(forms.Form):
    """A script fills it in. `times`: whole milliseconds, one a word, parted by spaces. `nonce`: that of the window.
    `marks`: why the times may not be used, as far as the browser knows."""

    words = 0

    times = forms.CharField(
        label=gettext_lazy("Reading times"),
        widget=forms.HiddenInput,
        error_messages={
            "required": gettext_lazy("The words were not read. Press Start and read the text word by word.")
        },
    )
    nonce = forms.RegexField(r"^[0-9a-f]{16,64}\Z", required=False, widget=forms.HiddenInput)
    lead_ms = forms.IntegerField(min_value=0, max_value=LONGEST_LEAD_MS, required=False, widget=forms.HiddenInput)
    means = forms.ChoiceField(choices=WordTimes.Means.choices, required=False, widget=forms.HiddenInput)
    marks = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)

    def clean_times(self) -> list[int]:
        parts = self.cleaned_data["times"].split()
        if len(parts) != self.words:
            raise forms.ValidationError(
                _("There are %(found)s times for %(words)s words. Please read the text once more from the start.")
                % {"found": len(parts), "words": self.words}
            )
        for number, part in enumerate(parts, start=1):
            if not TIME.fullmatch(part) or int(part) > LONGEST_MS:
                raise forms.ValidationError(
                    _("The time of word %(number)s is no whole number from 0 to 60000. Please read the text once more.")
                    % {"number": number}
                )
        return [int(part) for part in parts]

    def clean_marks(self) -> list[str]:
        marks = set(self.cleaned_data["marks"].split())
        return [name for name in OF_BROWSER if name in marks]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        cleaned["lead_ms"] = cleaned.get("lead_ms") or 0
        cleaned["means"] = cleaned.get("means") or WordTimes.Means.KEY
        return cleaned


@lru_cache(maxsize=2000)
def times_form(words: int) -> type[TimesForm]:
    """The form of a passage with so many words."""
    return type("TimesForm", (TimesForm,), {"words": words})


class YesNoForm(forms.Form):
    answer = forms.ChoiceField(
        label=gettext_lazy("Your answer"),
        choices=(("yes", gettext_lazy("Yes")), ("no", gettext_lazy("No"))),
        widget=forms.RadioSelect,
        error_messages=dict.fromkeys(("required", "invalid_choice"), gettext_lazy("Choose yes or no.")),
    )
