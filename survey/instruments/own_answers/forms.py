"""The form of one question: radio buttons if it lists options, else a short text. Nothing is preselected."""

from django import forms
from django.utils.translation import gettext_lazy as _

from survey.instruments.number_input import SURE, NumberInput, PercentField, Scale
from survey.services.banks.answer_checking import kind_of, options_of

LONGEST = 200
CHOOSE = _("Choose one of the answers.")
LABELS = {
    "number": _("Your answer, a number"),
    "yes/no": _("Your answer, yes or no"),
    "valid/invalid": _("Your answer, valid or invalid"),
    "true/false": _("Your answer, true or false"),
}


def confidence_field() -> PercentField:
    return PercentField(
        label=_("How sure are you that this is right? In percent, from 0 to 100"),
        optional=True,
        widget=NumberInput(scale=Scale(*SURE)),
        error_messages={
            "invalid": _("Enter a whole number from 0 to 100, or nothing."),
            "min_value": _("The lowest number is 0. Enter a number from 0 to 100, or nothing."),
            "max_value": _("The highest number is 100. Enter a number from 0 to 100, or nothing."),
        },
    )


def answer_field(question: str, key: str) -> forms.Field:
    """The field for a question's text. It reveals nothing about the key except what kind of answer is asked for."""
    options = options_of(question)
    if len(options) > 1:
        return forms.ChoiceField(
            label=_("Your answer"),
            choices=[(letter, f"({letter}) {words}") for letter, words in options.items()],
            widget=forms.RadioSelect,
            error_messages={"required": CHOOSE, "invalid_choice": CHOOSE},
        )
    return forms.CharField(
        label=LABELS.get(kind_of(key), _("Your answer")),
        max_length=LONGEST,
        error_messages={
            "required": _("Enter your answer. If you do not know it, enter your best guess."),
            "max_length": _("Please keep it short: one word or number is enough."),
        },
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": "24"}),
    )


def form_for(*, question: str, key: str, confidence: bool) -> type[forms.Form]:
    """The form of a question with this text and key."""
    fields: dict[str, object] = {"answer": answer_field(question, key)}
    if confidence:
        fields["confidence"] = confidence_field()
    return type("OwnAnswerForm", (forms.Form,), fields)
