"""What any kind of step asks for, as one list of fields for templates and error summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.forms import BoundField, CheckboxInput, RadioSelect
from django.utils.translation import gettext as _

from survey.services.sittings import comments, debriefing
from survey.services.sittings.flow import Step
from survey.services.sittings.forms import given_values, options_of
from survey.study_file import FieldConfig


@dataclass(frozen=True)
class Option:
    """`mark` and `spoken`: what stands under a scale's point, and what is read aloud with it. Empty: the value, and the
    text."""

    value: str
    text: str
    chosen: bool
    mark: str = ""
    spoken: str = ""


@dataclass(frozen=True)
class ShownField:
    """One question with what was entered.

    `kind`: radio, check (several may be chosen), tick (one box with its words), scale, buttons (each sends the page),
    text, number, hidden (filled in by a script), or widget (an instrument's own).
    """

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
    hint: str = ""

    @property
    def is_group(self) -> bool:
        """Whether it is answered by choosing. Its options then form a group under its label."""
        return self.kind in ("radio", "check", "scale", "buttons")

    @property
    def points(self) -> list[Option]:
        """A scale's points, without the option not to say."""
        return [option for option in self.options if option.value.isdigit()]

    @property
    def beside(self) -> list[Option]:
        return [option for option in self.options if not option.value.isdigit()]

    @property
    def id(self) -> str:
        return f"id_{self.name}"

    @property
    def focus_id(self) -> str:
        """Where the error summary's link leads: in a group of radio buttons, to the first one."""
        return f"{self.id}_1" if self.is_group else self.id

    @property
    def widget(self) -> str:
        """The instrument's input, with attributes that point to its label and its errors."""
        if self.bound is None:
            return ""
        attributes: dict[str, Any] = {"id": self.id}
        if self.errors:
            attributes |= {"aria-invalid": "true", "aria-describedby": f"{self.id}_error"}
        return self.bound.as_widget(attrs=attributes)

    @property
    def has_focus(self) -> bool:
        """Whether the page opens at it."""
        return bool(self.bound and self.bound.field.widget.attrs.get("autofocus"))

    @property
    def unit(self) -> str:
        return str(self.bound.field.widget.attrs.get("data-unit", "")) if self.bound else ""


def _of_instrument(bound: BoundField, errors: Sequence[str]) -> ShownField:
    """A field of an instrument's form. Radio buttons look like those of checks, or stand in a row where the widget says
    `is_scale`; all else is the instrument's widget."""
    field = ShownField(
        name=bound.name,
        label=str(bound.label),
        kind="widget",
        # A field that is required after some answers must not be marked as optional.
        required=bound.field.required or getattr(bound.field, "needed_at_times", False),
        errors=errors,
        bound=bound,
    )
    if getattr(bound.field.widget, "is_button", False):
        ((value, text),) = bound.field.choices  # type: ignore[attr-defined]
        return replace(field, kind="button", options=[Option(str(value), str(text), chosen=False)])
    if isinstance(bound.field.widget, CheckboxInput):
        return replace(field, kind="tick", options=[Option("on", field.label, chosen=bool(bound.value()))])
    if not isinstance(bound.field.widget, RadioSelect):
        return field
    choices: Any = bound.field.choices  # type: ignore[attr-defined]
    entered = str(bound.value() or "")
    options = [Option(str(value), str(text), chosen=str(value) == entered) for value, text in choices]
    if getattr(bound.field.widget, "is_scale", False):
        return replace(field, kind="scale", options=[_point(option, bound.field.widget) for option in options])
    return replace(field, kind="radio", options=options)


def _point(option: Option, widget: Any) -> Option:
    """A point of a scale in a row. One whose text is only its number has no words below the row."""
    mark, plain_text = getattr(widget, "mark", str)(option.value), getattr(widget, "plain_text", str)(option.value)
    return replace(
        option,
        text="" if option.text == plain_text else option.text,
        mark=mark,
        spoken="" if option.text == mark else option.text,
    )


def shown_fields(step: Step, *, data: Mapping[str, Any] | None, errors: Mapping[str, list[str]]) -> list[ShownField]:
    """The fields of a step. `data` is what was posted, if a POST was not accepted."""
    entered = data or {}
    if step.screen is not None:
        form = step.screen.fields(data)
        if form is None:
            return []
        visible = [_of_instrument(bound, errors.get(bound.name, ())) for bound in form.visible_fields()]
        # What a script fills in is not seen, but why it was not accepted is.
        unseen = [bound for bound in form.hidden_fields() if bound.name in errors]
        return visible + [
            ShownField(field.name, str(field.label), "hidden", errors=errors[field.name], bound=field)
            for field in unseen
        ]
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
    if step.kind == "debriefing" and step.block.asks_to_use:
        return [_use_or_withdraw(step, errors)]
    return checks + [_of_form(field, entered, errors.get(field.name, ())) for field in step.block.fields]


def _of_form(field: FieldConfig, entered: Mapping[str, Any], errors: Sequence[str]) -> ShownField:
    chosen = given_values(entered, field.name)
    return ShownField(
        name=field.name,
        label=field.label,
        kind=_kind(field),
        options=[Option(value, text, chosen=value in chosen) for value, text in options_of(field)],
        value=str(entered.get(field.name, "")),
        required=field.required,
        minimum=field.minimum,
        maximum=field.maximum,
        errors=errors,
    )


def _kind(field: FieldConfig) -> str:
    if field.kind == "likert":
        # Points that all have words are shown below each other; points between two labelled ends are shown in a row.
        return "radio" if len(field.labels) == field.points else "scale"
    return {"choice": "radio", "multiple": "check"}.get(field.kind, field.kind)


def _use_or_withdraw(step: Step, errors: Mapping[str, Sequence[str]]) -> ShownField:
    """The choice, or after somebody chose to withdraw the question whether they are sure."""
    if debriefing.CONFIRMED in errors:
        again = debriefing.second_question(paid=step.paid)
        options = [Option(value, text, chosen=False) for value, text in again.options]
        return ShownField(debriefing.CONFIRMED, again.label, "buttons", options, hint=again.hint)
    question = debriefing.question(paid=step.paid)
    return ShownField(
        name=debriefing.FIELD,
        label=question.label,
        hint=question.hint,
        kind="buttons",
        options=[Option(value, text, chosen=False) for value, text in question.options],
        errors=errors.get(debriefing.FIELD, ()),
    )


def report_field(*, entered: str, errors: Sequence[str]) -> ShownField:
    """The field for a report that something is wrong with the question. It has a separate form."""
    label = _("What is wrong? A few words are enough.")
    return ShownField(name=comments.FIELD, label=label, kind="text", value=entered, errors=errors)
