"""One word. The browser neither completes nor corrects it."""

from django import forms
from django.utils.translation import gettext_lazy as _

from .analysis.normalising import LONGEST


class WordForm(forms.Form):
    word = forms.CharField(
        label=_("What is the next word? Write one word."),
        max_length=LONGEST,
        error_messages={
            "required": _("Write the word that you expect. If you do not know, write your best guess."),
            "max_length": _("This is too long for one word. Write one word of at most 40 characters."),
        },
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "autocorrect": "off",
                "autocapitalize": "off",
                "spellcheck": "false",
                "size": "20",
            }
        ),
    )
