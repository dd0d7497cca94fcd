"""A step of a sitting as plain data: everything of it that leaves the server. What is not listed here stays on it."""

from typing import Any

from django import forms

from survey.services.sittings import debriefing
from survey.services.sittings.flow import Step
from survey.services.sittings.forms import options_of
from survey.study_file import LONGEST_TEXT, NOT_SAID, FieldConfig

from . import shapes


def step_data(step: Step, *, completion_url: str) -> shapes.Step:
    screen = step.screen
    return {
        "number": step.number,
        "kind": step.kind,
        "title": str(screen.title) if screen else step.block.title,
        "text": step.text,
        "position": step.position,
        "total": step.total,
        "progress": {
            "percent": step.progress.percent,
            "question": step.progress.question,
            "questions": step.progress.questions,
        },
        "screen": None if screen is None else _screen(screen),
        "checks": [
            {
                "name": check.name,
                "question": check.question,
                "options": [
                    {"value": str(place), "text": text} for place, (_index, text) in enumerate(check.options, start=1)
                ],
            }
            for check in step.checks
        ],
        "attempt": step.attempt,
        "hints": list(step.hints),
        "feedback": list(step.feedback),
        "fields": _fields_of(step),
        "outcome": str(step.outcome),
        "code": step.code,
        "completion_url": completion_url if step.code else "",
    }


def _screen(screen: Any) -> shapes.Screen:
    fields = getattr(screen.fields(), "fields", {})
    return {
        "name": screen.name,
        "title": str(screen.title),
        "parts": {name: {"kind": part["kind"], "value": part["value"]} for name, part in screen.parts.items()},
        "words": dict(screen.words),
        "fields": [_field_of_screen(name, field) for name, field in fields.items()],
    }


def _fields_of(step: Step) -> list[shapes.StepField]:
    """What a step asks for, apart from an item and checks."""
    if step.kind != "debriefing" or not step.block.asks_to_use:
        return [_field_of_form(field) for field in step.block.fields]
    return [
        _field_of_question(debriefing.FIELD, debriefing.question(paid=step.paid), required=True),
        _field_of_question(debriefing.CONFIRMED, debriefing.second_question(paid=step.paid), required=False),
    ]


def _field(name: str, kind: str, label: str, *, required: bool) -> shapes.StepField:
    return {
        "name": name,
        "type": kind,
        "label": label,
        "required": required,
        "minimum": None,
        "maximum": None,
        "max_length": None,
        "initial": None,
        "options": [],
        "labels": [],
        "exclusive": [],
        "hint": "",
    }


def _field_of_screen(name: str, field: forms.Field) -> shapes.StepField:
    """A field of an instrument's form."""
    offered: Any = field.choices if isinstance(field, forms.ChoiceField) else ()
    choices = list(offered)
    kind = "integer" if isinstance(field, forms.IntegerField) else "choice" if choices else "text"
    return {
        **_field(name, kind, str(field.label or name), required=field.required),
        "minimum": getattr(field, "min_value", None),
        "maximum": getattr(field, "max_value", None),
        "max_length": getattr(field, "max_length", None),
        "initial": field.initial,
        "options": [str(value) for value, _label in choices],
        "labels": [str(label) for _value, label in choices],
    }


def _field_of_form(field: FieldConfig) -> shapes.StepField:
    """A field of a form block."""
    options = options_of(field)
    alone = [*field.exclusive, *([NOT_SAID] if field.prefer_not_to_say else [])]
    return {
        **_field(field.name, {"number": "integer"}.get(field.kind, field.kind), field.label, required=field.required),
        "minimum": field.minimum,
        "maximum": field.maximum,
        "max_length": (field.max_characters or LONGEST_TEXT) if field.kind == "text" else None,
        "options": [value for value, _words in options],
        "labels": [words for _value, words in options],
        "exclusive": alone if field.kind == "multiple" else [],
    }


def _field_of_question(name: str, question: debriefing.ChoiceQuestion, *, required: bool) -> shapes.StepField:
    return {
        **_field(name, "choice", question.label, required=required),
        "options": [value for value, _words in question.options],
        "labels": [words for _value, words in question.options],
        "hint": question.hint,
    }
