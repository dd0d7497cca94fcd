"""One word."""

from django import forms


class WordForm(forms.Form):
    word = forms.CharField(
        label="What is the next word? Write one word.",
        max_length=40,
        error_messages={
            "required": "Write the word that you expect. If you do not know, write your best guess.",
            "max_length": "Write one word of at most 40 characters.",
        },
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false", "size": "20"}
        ),
    )
