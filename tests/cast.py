"""The cast of the tests: a bank, studies on it, and people in their sittings, all made by the services."""

import copy
import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from survey.models import Bank, Question, Sitting, Stage, Study, Task
from survey.services.plans.planning import plan_stage
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.identities import PanelIds
from survey.services.stages.lifecycle import open_stage
from survey.services.studies.creating import create_study

TASKS = ("algebra", "biology", "cooking", "drawing")
# What a text may hold and no page or file may change: real questions hold all of it.
ODD_TEXTS = (
    "<b>Is $a<b$ here?</b><br>A. yes<br>B. no",
    "<b>What is &lt;MISSING CONDITION&gt; in <MISSING CONDITION>?</b>",
    '<script>alert("x")</script> Which tag is this, "quoted", and what is 5 > 3?',
    "=1+1 <br>-- two  spaces, a comma,\nand a new line; é 漢 🎲",
)
BASE: dict[str, Any] = {
    "slug": "cast",
    "title": "A study of the cast",
    "bank": "cast",
    "seed": 7,
    "candidates": {"size": 200},
    "roles": {"holdout": 0, "controls": 0},
    "sitting": {"items": 3},
    "stages": [{"sittings": 4}, {"sittings": 2}],
    "data": {"retention_until": date(2099, 12, 31)},
    "blocks": [
        {"kind": "consent", "title": "Before you begin", "text": "We ask for your consent.", "version": "2"},
        {"kind": "instructions", "title": "What you will do", "text": "Read this.\n\n- one\n- two"},
        {
            "kind": "checks",
            "checks": [
                {"name": "first_check", "question": "Which one?", "options": ["right one", "wrong one", "other one"]},
                {
                    "name": "second_check",
                    "question": "And here?",
                    "options": ["right", "wrong"],
                    "hint": "Think again.",
                },
            ],
        },
        {"kind": "items"},
        {
            "kind": "form",
            "name": "about_you",
            "title": "About you",
            "fields": [
                {"name": "age", "label": "Your age", "kind": "number", "minimum": 18, "maximum": 99, "required": True},
                {"name": "use", "label": "Do you use models?", "kind": "choice", "options": ["often", "never"]},
                {"name": "remark", "label": "Anything else?", "kind": "text"},
            ],
        },
        {"kind": "debriefing", "text": "It was about expectations."},
        {"kind": "end", "title": "You are done", "text": "Thanks to the cast."},
    ],
    "texts": {"welcome": "Welcome to the cast.", "minutes": 3, "contact": "cast@example.org"},
}
PROLIFIC = {"kind": "prolific", "completion_url": "https://panel.example/complete?cc={code}"}


def bank(n: int = 40, *, name: str = "cast", texts: tuple[str, ...] = ODD_TEXTS) -> Bank:
    """A bank of n questions in four tasks; the first questions have `texts`."""
    made = Bank.objects.create(name=name, version=1, sha256="0" * 64, question_count=n)
    tasks = Task.objects.bulk_create([Task(bank=made, name=task, domain=f"{task} domain") for task in TASKS])
    Question.objects.bulk_create(
        [
            Question(
                bank=made,
                task=tasks[position % len(tasks)],
                position=position,
                external_id=f"q{position}",
                text=texts[position]
                if position < len(texts)
                else f"<b>Question number {position}?</b><br>A. a<br>B. b",
                answer=f"KEY-{position}-KEY",
                reason=f"REASON-{position}-REASON",
            )
            for position in range(n)
        ]
    )
    return made


def study_text(**overrides: Any) -> str:
    """A study file; `overrides` replace top-level keys of `BASE`."""
    lines: list[str] = []
    _write_table({**copy.deepcopy(BASE), **overrides}, (), lines)
    return "\n".join(lines) + "\n"


def study(**overrides: Any) -> Study:
    """A study with its stages in draft; the bank is made where it is missing."""
    if not Bank.objects.filter(name=overrides.get("bank", "cast")).exists():
        bank(name=overrides.get("bank", "cast"))
    return create_study(text=study_text(**overrides), source_name="cast.toml")


def open_study(**overrides: Any) -> Study:
    """A study whose first stage is planned and open."""
    made = study(**overrides)
    open_first_stage(made)
    return made


def open_first_stage(made: Study) -> Stage:
    return open_stage(plan_stage(made.stages.select_related("study__bank").get(index=1)))


def begin(made: Study, ids: PanelIds | None = None) -> Sitting:
    """Somebody who has just consented."""
    return begin_sitting(study=made, ids=ids or new_open_person())


def answers_for(step: Step, **changes: Any) -> dict[str, Any]:
    """Fields that a step accepts: the right options, 60 then 70 percent, an age."""
    if step.kind == "checks":
        given: dict[str, Any] = {
            check.name: str([index for index, _text in check.options].index(0) + 1) for check in step.checks
        }
    elif step.screen is not None:
        value = str(changes.get("value", "60" if step.screen.name == "prior" else "70"))
        given = {"screen": step.screen.name, "value": value, "explanation": "so it seemed", "answer": "A"}
        if "direction" in step.screen.form().fields:
            given |= {"direction": direction_of(value, step.screen.parts["prior"]["value"])}
    elif step.kind == "form":
        given = {"age": "30", "use": "never"}
    else:
        given = {}
    return {**given, **changes}


def values_of(field: Any) -> tuple[str, ...]:
    """Of a choice's options, in the order shown."""
    return tuple(value for value, _label in field.choices)


def direction_of(value: Any, prior: Any) -> str:
    """What one chooses who means this number; what is no number is higher."""
    try:
        change = int(value) - int(prior)
    except ValueError:
        return "higher"
    return "same" if change == 0 else "higher" if change > 0 else "lower"


def wrong_answers_for(step: Step) -> dict[str, str]:
    return {check.name: str([index for index, _text in check.options].index(1) + 1) for check in step.checks}


def walk(sitting: Sitting, *, until: str = "end", screen: str = "") -> Step:
    """Answer steps until one of that kind (and screen) is shown."""
    while True:
        sitting.refresh_from_db()
        step = current_step(sitting)
        if step.kind == "end" or (step.kind == until and (not screen or (step.screen and step.screen.name == screen))):
            return step
        advance(sitting=sitting, step=step.number, data=answers_for(step))


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """TOML of a table."""
    nested = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in nested:
            lines.append(f"{key} = {_toml(value)}")
    for key, value in nested.items():
        name = ".".join((*path, key))
        for entry in value if _is_tables(value) else [value]:
            lines.append(f"[[{name}]]" if _is_tables(value) else f"[{name}]")
            _write_table(entry, (*path, key), lines)


def _toml(value: Any) -> str:
    """JSON's strings, numbers, true, false and flat lists are TOML's too; a date stands as it is."""
    return value.isoformat() if isinstance(value, date) else json.dumps(value, ensure_ascii=False)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
