"""What the screens ask for. Nothing is prefilled unless the study asks for it: an untouched answer is refused."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.instruments.number_input import FACTS, SURE, NumberInput, PercentField, Scale, whole
from survey.services.banks.answer_checking import options_of

from .models import Belief

LONGEST_ANSWER = 200
DIRECTIONS = ("lower", "same", "higher")
KEEP = "yes"
MAX_CHANGES = 10_000
TYPED = {str(entry) for entry in Belief.Entry} - {"", str(Belief.Entry.BUTTON)}


LIKELY = (gettext_lazy("certainly not"), gettext_lazy("certainly"))


class KeepButton(forms.Widget):
    """A second button that sends the form; pages show it next to the first one."""

    is_button = True


class BeliefForm(forms.Form):
    """One number, the field `value`. `earlier` is the one given before, where there is one."""

    earlier: ClassVar[int] = -1

    def clean(self) -> dict[str, Any]:
        cleaned = {"direction": "", **(super().clean() or {})}
        facts = {fact: str(self.data.get(f"value_{fact}", "")) for fact in FACTS}
        cleaned["entered_by"] = facts["by"] if facts["by"] in TYPED else ""
        cleaned["first_value"] = whole(facts["first"], most=100)
        cleaned["value_changes"] = whole(facts["changes"], most=MAX_CHANGES)
        self.settle(cleaned)
        return cleaned

    def settle(self, cleaned: dict[str, Any]) -> None:
        """Combine what was given into one value, or say what contradicts it."""

    def keeps(self, cleaned: dict[str, Any], contradiction: str) -> None:
        """The earlier number stays, unless another one was entered."""
        if cleaned.get("value") not in (None, self.earlier):
            self.add_error("value", contradiction)
        cleaned |= {"value": self.earlier, "entered_by": str(Belief.Entry.BUTTON)}


class DirectionForm(BeliefForm):
    """Lower, the same or higher; and a number unless it is the same."""

    field_order = ("direction", "value")

    def settle(self, cleaned: dict[str, Any]) -> None:
        direction, value = cleaned.get("direction"), cleaned.get("value")
        if not direction:
            return
        if direction == "same":
            self.keeps(
                cleaned,
                _("You chose “the same”, and this is another number. Choose lower or higher, or empty this field."),
            )
        elif value is None:
            if "value" not in self.errors:
                self.add_error("value", _("Enter your new number, from 0 to 100."))
        elif direction == "lower" and value >= self.earlier:
            self.add_error("value", self._not(_("You chose “lower”, and %(new)d is not lower than %(old)d."), value))
        elif direction == "higher" and value <= self.earlier:
            self.add_error("value", self._not(_("You chose “higher”, and %(new)d is not higher than %(old)d."), value))

    def _not(self, sentence: str, value: int) -> str:
        return sentence % {"new": value, "old": self.earlier} + " " + _("Please change one of the two.")


class KeepForm(BeliefForm):
    """A number, or the button that keeps the earlier one."""

    def settle(self, cleaned: dict[str, Any]) -> None:
        if cleaned.get("keep"):
            self.keeps(
                cleaned,
                _("You entered another number and chose that your answer stays. Empty this field, or press Continue."),
            )
        elif cleaned.get("value") is None and "value" not in self.errors:
            self.add_error("value", _("Enter a number from 0 to 100, or choose that your answer stays."))


def prior_form() -> type[BeliefForm]:
    """The form for the first number, in the active language."""
    label = _("Your answer in percent, from 0 to 100")
    return _form(BeliefForm, -1, value=PercentField(label=label, widget=NumberInput(scale=Scale(*LIKELY))))


def posterior_form(*, mode: str, earlier: int, order: Sequence[str]) -> type[BeliefForm]:
    """The form for the second number, in the active language.

    Args:
        order: the order in which the directions are shown; one in which there is no number is left out.
    """
    scale = Scale(*LIKELY, earlier=earlier)
    again = _("Your answer now in percent, from 0 to 100")
    if mode == "direction":
        number = {"number": earlier}
        words = {
            "lower": _("Lower than %(number)d %%") % number,
            "same": _("The same, %(number)d %%") % number,
            "higher": _("Higher than %(number)d %%") % number,
        }
        choose = _("Choose one of the answers.")
        nowhere = {0: "lower", 100: "higher"}.get(earlier)
        order = [direction for direction in order if direction != nowhere]
        return _form(
            DirectionForm,
            earlier,
            direction=forms.ChoiceField(
                label=_("Compared with before, your answer now is:"),
                choices=[(direction, words[direction]) for direction in order],
                widget=forms.RadioSelect,
                error_messages={"required": choose, "invalid_choice": choose},
            ),
            value=PercentField(
                label=_("If it changed: your new number in percent, from 0 to 100"),
                required=False,
                widget=NumberInput(shown_with="direction", scale=scale),
            ),
        )
    if mode == "keep_button":
        stays = _("My answer stays at %(number)d %%") % {"number": earlier}
        return _form(
            KeepForm,
            earlier,
            value=PercentField(label=again, required=False, widget=NumberInput(scale=scale)),
            keep=forms.ChoiceField(label=stays, choices=[(KEEP, stays)], required=False, widget=KeepButton),
        )
    if mode == "prefilled":
        filled_in = NumberInput(prefilled=True, scale=scale)
        return _form(BeliefForm, earlier, value=PercentField(label=again, widget=filled_in, initial=earlier))
    return _form(BeliefForm, earlier, value=PercentField(label=again, widget=NumberInput(scale=scale)))


def explanation_form(*, required: bool, characters: int) -> type[forms.Form]:
    return type(
        "ExplanationForm",
        (forms.Form,),
        {
            "explanation": forms.CharField(
                label=_("Your reasons, in your own words"),
                required=required,
                max_length=characters,
                error_messages={
                    "required": _("Please write a few words."),
                    "max_length": _("Please keep it under %(limit)d characters.") % {"limit": characters + 1},
                },
                widget=forms.Textarea(attrs={"rows": "4"}),
            )
        },
    )


def own_answer_form(*, question: str, confidence: bool) -> type[forms.Form]:
    """One of the letters if the question has options, else a few words."""
    options = options_of(question)
    fields: dict[str, forms.Field] = {}
    if len(options) > 1:
        choose = _("Choose one of the answers.")
        fields["answer"] = forms.ChoiceField(
            label=_("Your own answer"),
            choices=[(letter, f"({letter}) {words}") for letter, words in options.items()],
            widget=forms.RadioSelect,
            error_messages={"required": choose, "invalid_choice": choose},
        )
    else:
        fields["answer"] = forms.CharField(
            label=_("Your own answer"),
            max_length=LONGEST_ANSWER,
            error_messages={
                "required": _("Enter your answer. If you do not know it, enter your best guess."),
                "max_length": _("Please keep it short: a few words are enough."),
            },
            widget=forms.TextInput(attrs={"autocomplete": "off", "size": "24"}),
        )
    if confidence:
        fields["confidence"] = PercentField(
            label=_("How sure are you that your own answer is right? In percent, from 0 to 100"),
            widget=NumberInput(scale=Scale(*SURE)),
        )
    return type("TargetAnswerForm", (forms.Form,), dict(fields))


def _form(base: type[BeliefForm], earlier: int, **fields: forms.Field) -> type[BeliefForm]:
    return type(base.__name__, (base,), {"earlier": earlier, **fields})
