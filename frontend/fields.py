"""What a step asks for, whatever kind of step it is, as one list that templates and error summaries walk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.forms import BoundField, RadioSelect

from survey.services.flow import Step


@dataclass(frozen=True)
class Option:
    value: str
    text: str
    chosen: bool


@dataclass(frozen=True)
class ShownField:
    """One question with what was entered. `kind`: radio, text, number, or widget (an instrument's own)."""

    name: str
    label: str
    kind: str
    options: Sequence[Option] = ()
    value: str = ""
    required: bool = True
    minimum: int | None = None
    maximum: int | None = None
    errors: Sequence[str] = ()
    bound: BoundField | None = None

    @property
    def id(self) -> str:
        return f"id_{self.name}"

    @property
    def focus_id(self) -> str:
        """Where the error summary's link leads: a group of radio buttons is entered by its first one."""
        return f"{self.id}_1" if self.kind == "radio" else self.id

    @property
    def widget(self) -> str:
        """The instrument's input, told where its label, unit and errors stand."""
        if self.bound is None:
            return ""
        attributes: dict[str, Any] = {"id": self.id}
        if self.errors:
            attributes |= {"aria-invalid": "true", "aria-describedby": f"{self.id}_error"}
        return self.bound.as_widget(attrs=attributes)

    @property
    def unit(self) -> str:
        return str(self.bound.field.widget.attrs.get("data-unit", "")) if self.bound else ""


def _of_instrument(bound: BoundField, errors: Sequence[str]) -> ShownField:
    """A field of an instrument's form: radio buttons look like those of checks, all else is the instrument's widget."""
    shown = ShownField(
        name=bound.name,
        label=str(bound.label),
        kind="widget",
        required=bound.field.required,
        errors=errors,
        bound=bound,
    )
    if not isinstance(bound.field.widget, RadioSelect):
        return shown
    choices: Any = bound.field.choices  # type: ignore[attr-defined]
    entered = str(bound.value() or "")
    options = [Option(str(value), str(text), chosen=str(value) == entered) for value, text in choices]
    return replace(shown, kind="radio", options=options)


def shown_fields(step: Step, *, data: Mapping[str, Any] | None, errors: Mapping[str, list[str]]) -> list[ShownField]:
    """The fields of a step. `data` is what was posted, where a POST was not accepted."""
    entered = data or {}
    if step.screen is not None:
        form = step.screen.form(data) if data is not None else step.screen.form()
        return [_of_instrument(bound, errors.get(bound.name, ())) for bound in form.visible_fields()]
    checks = [
        ShownField(
            name=check.name,
            label=check.question,
            kind="radio",
            options=[
                Option(str(place), text, chosen=entered.get(check.name) == str(place))
                for place, (_index, text) in enumerate(check.options, start=1)
            ],
            errors=errors.get(check.name, ()),
        )
        for check in step.checks
    ]
    return checks + [
        ShownField(
            name=field.name,
            label=field.label,
            kind="radio" if field.kind == "choice" else field.kind,
            options=[Option(text, text, chosen=entered.get(field.name) == text) for text in field.options],
            value=str(entered.get(field.name, "")),
            required=field.required,
            minimum=field.minimum,
            maximum=field.maximum,
            errors=errors.get(field.name, ()),
        )
        for field in step.block.fields
    ]
