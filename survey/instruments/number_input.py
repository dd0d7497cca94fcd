"""A number in percent with a slider, for every instrument that asks for one. Nothing is prefilled unless a study asks
for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

# What pages send along with a number: how it was entered, the first number, and how often it was set.
FACTS = ("by", "first", "changes")
SURE = (gettext_lazy("not sure at all"), gettext_lazy("completely sure"))


@dataclass(frozen=True)
class Scale:
    """What stands at a track: words at its ends, and the earlier number where there is one."""

    low: Any
    high: Any
    earlier: int | None = None


class NumberInput(forms.TextInput):
    """A number field that a script joins to a track. Without scripts only the field is shown."""

    template_name = "belief_update/number.html"

    def __init__(self, *, scale: Scale, shown_with: str = "", prefilled: bool = False) -> None:
        """
        Args:
            shown_with: radio buttons; the number is asked for only with their "lower" and "higher", and the track is
                cut to them.
            prefilled: whether the number that is filled in at the start may be left as it is.
        """
        super().__init__(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "6", "size": "5"})
        self.shown_with = shown_with
        self.prefilled = prefilled
        self.scale = scale
        self.facts: Mapping[str, str] = {}

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        self.facts = {fact: str(data.get(f"{name}_{fact}", ""))[:12] for fact in FACTS}
        return super().value_from_datadict(data, files, name)

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"] |= {
            "shown_with": self.shown_with,
            "prefilled": self.prefilled,
            "scale": self.scale,
            "facts": self.facts,
            "on_track": whole(str(context["widget"]["value"] or "").strip(), most=100),
        }
        return context


class PercentField(forms.IntegerField):
    """A whole number of per cent. One that is not required is needed where nothing else was chosen; an optional one may
    stay empty, and the page says so.
    """

    def __init__(
        self,
        *,
        label: Any,
        widget: NumberInput,
        required: bool = True,
        optional: bool = False,
        initial: int | None = None,
        error_messages: Mapping[str, Any] | None = None,
    ) -> None:
        self.needed_at_times = not optional
        super().__init__(
            label=label,
            required=required and not optional,
            initial=initial,
            min_value=0,
            max_value=100,
            widget=widget,
            error_messages={
                "required": gettext_lazy("Enter a number from 0 to 100."),
                "invalid": gettext_lazy("Enter a whole number from 0 to 100."),
                "min_value": gettext_lazy("The lowest answer is 0. Enter a number from 0 to 100."),
                "max_value": gettext_lazy("The highest answer is 100. Enter a number from 0 to 100."),
                **(error_messages or {}),
            },
        )

    def to_python(self, value: Any) -> int | None:
        """Accept a number with its unit: the unit is shown next to the field, but some people type it anyway."""
        return super().to_python(value.strip().removesuffix("%") if isinstance(value, str) else value)


def whole(text: str, *, most: int) -> int | None:
    """What a script reports about a number; None for anything else, which is neither an answer nor an error."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= most else None
