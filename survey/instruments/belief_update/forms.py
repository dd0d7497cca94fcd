"""One number from 0 to 100, empty at the start. Nothing is prefilled: an untouched answer is refused."""

from django import forms
from django.utils.translation import gettext_lazy as _


class BeliefForm(forms.Form):
    value = forms.IntegerField(
        label=_("Your answer in percent, from 0 to 100"),
        min_value=0,
        max_value=100,
        error_messages={
            "required": _("Enter a number from 0 to 100."),
            "invalid": _("Enter a whole number from 0 to 100, for example 62."),
            "min_value": _("The lowest answer is 0. Enter a number from 0 to 100."),
            "max_value": _("The highest answer is 100. Enter a number from 0 to 100."),
        },
        widget=forms.TextInput(
            attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "6", "size": "5", "data-unit": "%"}
        ),
    )
