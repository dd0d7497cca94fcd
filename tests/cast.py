"""The cast of the tests: banks, studies on them, and people in their sittings, all made by the services.

Two studies are known by heart. `study()` has a block of every kind and two stages, for pages, API and browser.
`small_study()` has the fewest blocks and one stage of four people with three items each, for the services below them;
it asks for beliefs in the plainest way: a number, and after the evidence another number.
"""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models.signals import post_save
from django.utils import timezone

from survey import study_file
from survey.contracts import instruments
from survey.contracts.panels import PanelIds
from survey.instruments.belief_update.models import Belief
from survey.models import (
    Assignment,
    Bank,
    JobStep,
    Question,
    Respondent,
    Response,
    Sitting,
    Slot,
    Stage,
    Study,
    StudyMembership,
    Task,
)
from survey.services.base.seeds import derive
from survey.services.plans import planning
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting, new_open_person
from survey.services.sittings.flow import Step, current_step
from survey.services.stages import jobs, lifecycle
from survey.services.studies.creating import create_study
from survey.study_file import StudyConfig
from tests.kept import kept

TASKS = ("algebra", "biology", "cooking", "drawing")
# What a text may hold and no page or file may change: real questions hold all of it.
ODD_TEXTS = (
    "<b>Is $a<b$ here?</b><br>A. yes<br>B. no",
    "<b>What is &lt;MISSING CONDITION&gt; in <MISSING CONDITION>?</b>",
    '<script>alert("x")</script> Which tag is this, "quoted", and what is 5 > 3?',
    "=1+1 <br>-- two  spaces, a comma,\nand a new line; é 漢 🎲",
)
WORDS = ("river", "city", "metal", "planet", "sum", "red", "blue", "old", "new", "long")
# An open study that sends people on with a code, which its pages show then.
WITH_CODE: dict[str, Any] = {"kind": "open", "completion_url": "https://lab.example/done?code={code}"}
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
CHECK = {"name": "ready", "question": "What do you judge?", "options": ["Language models", "People"], "hint": "Models."}
BLOCKS: list[dict[str, Any]] = [
    {"kind": "consent", "text": "You may stop at any time.", "version": "3"},
    {"kind": "checks", "checks": [CHECK]},
    {"kind": "items"},
    {"kind": "end", "text": "Thank you."},
]
# A belief is asked for by an empty field, and nothing is said about the models.
PLAIN: dict[str, Any] = {"answer_mode": "blank", "models": "unsaid"}
SMALL: dict[str, Any] = {
    "title": "A small study",
    "candidates": {"size": 400},
    "sitting": {"items": 3, "expires_after_minutes": 30},
    "stages": [{"sittings": 4}],
    "blocks": BLOCKS,
    "texts": {},
    "instrument": {"kind": "belief_update", "options": PLAIN},
}
PROLIFIC = {"kind": "prolific", "completion_url": "https://panel.example/complete?cc={code}"}


def bank(
    size: int = 40,
    *,
    name: str = "cast",
    texts: tuple[str, ...] = ODD_TEXTS,
    tasks: int = len(TASKS),
    domains: bool = True,
    keyless: int = 0,
) -> Bank:
    """A bank of `size` questions in as many of the TASKS. The first ones have `texts`, the last `keyless` no answer."""
    made = Bank.objects.create(name=name, version=1, sha256="0" * 64, question_count=size)
    rows = Task.objects.bulk_create(
        [Task(bank=made, name=task, domain=f"{task} domain" if domains else "") for task in TASKS[:tasks]]
    )
    Question.objects.bulk_create(
        [
            Question(
                bank=made,
                task=rows[position % len(rows)],
                position=position,
                external_id=f"q{position}",
                text=texts[position]
                if position < len(texts)
                else f"<b>Question number {position}?</b><br>A. a<br>B. b",
                answer="" if position >= size - keyless else f"KEY-{position}-KEY",
                reason=f"REASON-{position}-REASON",
            )
            for position in range(size)
        ]
    )
    return made


def join(user: Any, study: Study, role: str = "owner", *, may_spend: bool = True) -> StudyMembership:
    return StudyMembership.objects.update_or_create(
        study=study, user=user, defaults={"role": role, "may_spend": may_spend}
    )[0]


def join_all(user: Any, role: str = "owner") -> None:
    """Make the user a member of the studies that there are."""
    for study in Study.objects.all():
        join(user, study, role)


@contextmanager
def owner_of_every_study(user: Any) -> Iterator[None]:
    """The user owns the studies that there are, and those that are made from now on."""

    def own(instance: Study, created: bool, **_signal: Any) -> None:
        if created:
            join(user, instance)

    join_all(user)
    post_save.connect(own, sender=Study)
    try:
        yield
    finally:
        post_save.disconnect(own, sender=Study)


def small_bank(size: int = 40, *, name: str = "small", tasks: int = len(TASKS), keyless: int = 0) -> Bank:
    """One with short texts, and without domains."""
    texts = tuple(f"<b>what is the {WORDS[position % len(WORDS)]}</b><br>of {position}" for position in range(size))
    return bank(size, name=name, texts=texts, tasks=tasks, domains=False, keyless=keyless)


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


def small_study(slug: str = "small", *, on: Bank | None = None, **overrides: Any) -> Study:
    """The small study; `overrides` replace top-level keys of its file."""
    on = on or Bank.objects.filter(name="small").first() or small_bank()
    return study(**{**SMALL, "slug": slug, "bank": on.name, **overrides})


def small_config(**overrides: Any) -> StudyConfig:
    """What the small study's file says; not stored, and checked by the schema alone."""
    return study_file.parse(study_text(**{**SMALL, "slug": "small", "bank": "small", **overrides}))


def stored_study(slug: str = "small", *, on: Bank | None = None, **overrides: Any) -> Study:
    """The small study as rows that are there already, with a file that would be refused today: what it asks for cannot
    be drawn, as where the bank has lost questions since, or where an older version checked less."""
    made = small_study(slug)
    config = small_config(slug=slug, **overrides)
    made.bank, made.instrument, made.seed = on or made.bank, config.instrument.kind, config.seed
    made.stored_config = config.model_dump(mode="json")
    made.save()
    made.stages.all().delete()
    Stage.objects.bulk_create(
        Stage(study=made, index=index, seed=derive(made.seed, "stage", index))
        for index in range(1, len(config.stages) + 1)
    )
    return Study.objects.get(pk=made.pk)


@kept
def open_study(**overrides: Any) -> Study:
    """A study whose first stage is planned and open."""
    made = study(**overrides)
    open_first_stage(made)
    return made


def open_first_stage(made: Study) -> Stage:
    return lifecycle.open_stage(planning.plan_stage(made.stages.select_related("study__bank").get(index=1)))


def begin(made: Study, ids: PanelIds | None = None) -> Sitting:
    """Somebody who has just consented."""
    return begin_sitting(study=made, ids=ids or new_open_person())


def simulated_person(sitting: Sitting, **how: Any) -> Any:
    """Who answers like the study's people, drawn by their number in the study: a primary key depends on other tests."""
    study = sitting.stage.study
    return instruments.of_study(study).simulated_person(seed=Sitting.objects.filter(stage__study=study).count(), **how)


def answers_for(step: Step, **changes: Any) -> dict[str, Any]:
    """Fields that a step accepts: the right options, 60 then 70 percent, an age."""
    if step.kind == "checks":
        answers: dict[str, Any] = {
            check.name: str([index for index, _text in check.options].index(0) + 1) for check in step.checks
        }
    elif step.screen is not None:
        value = str(changes.get("value", "60" if step.screen.name == "prior" else "70"))
        answers = {"screen": step.screen.name, "value": value, "explanation": "so it seemed", "answer": "A"}
        if "direction" in step.screen.form().fields:
            answers |= {"direction": direction_of(value, step.screen.parts["prior"]["value"])}
    elif step.kind == "form":
        answers = {"age": "30", "use": "never"}
    else:
        answers = {}
    return {**answers, **changes}


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
    sitting.refresh_from_db()
    step = current_step(sitting)
    while step.kind != "end" and (step.kind != until or (screen and (not step.screen or step.screen.name != screen))):
        step = advance(sitting=sitting, step=step.number, data=answers_for(step))
    sitting.refresh_from_db()
    return step


# The small study's stages and people


def stage_of(study: Study, index: int = 1) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=index)


@kept
def planned_stage(slug: str = "small", **overrides: Any) -> Stage:
    return planning.plan_stage(stage_of(small_study(slug, **overrides)))


@kept
def open_stage(slug: str = "small", **overrides: Any) -> Stage:
    return lifecycle.open_stage(stage_of(small_study(slug, **overrides)))


_numbers = itertools.count(1)


def person(name: str = "") -> PanelIds:
    return PanelIds("open", name or f"person-{next(_numbers)}")


class Visitor:
    """A person walking through a study by the services that pages and API call."""

    def __init__(self, study: Study, *, ids: PanelIds | None = None) -> None:
        self.ids = ids or person()
        self.sitting = begin_sitting(study=study, ids=self.ids)

    def reload(self) -> Sitting:
        self.sitting = Sitting.objects.select_related("stage__study__bank", "respondent", "booklet").get(
            pk=self.sitting.pk
        )
        return self.sitting

    @property
    def step(self) -> Step:
        return current_step(self.reload())

    def post(self, **data: Any) -> Step:
        return advance(sitting=self.sitting, step=self.reload().step, data=data)

    def check(self, *, right: bool = True, at: Step | None = None) -> Step:
        """Answer the comprehension checks. A form carries the place at which an option is shown."""
        places = {
            check.name: next(place for place, (index, _text) in enumerate(check.options, 1) if (index == 0) == right)
            for check in (at or self.step).checks
        }
        return self.post(**places)

    def to_items(self) -> "Visitor":
        step = self.step
        while step.kind not in ("item", "end"):
            step = self.check(at=step) if step.kind == "checks" else self.post()
        return self

    def answer(self, prior: int = 50, posterior: int = 70) -> Step:
        """Answer one pair."""
        return advance(sitting=self.sitting, step=self.post(value=prior).number, data={"value": posterior})

    def finish(self, *, changes: bool | None = None) -> "Visitor":
        """Answer all pairs; without `changes` every second pair changes the belief."""
        step = self.to_items().step
        while step.kind != "end":
            data: dict[str, Any] = {}
            if step.kind == "item" and step.screen:
                changed = step.position % 2 == 0 if changes is None else changes
                data = {"value": 70 if changed and step.screen.name == "posterior" else 50}
            step = advance(sitting=self.sitting, step=step.number, data=data)
        return self

    def expire(self) -> "Visitor":
        """Leave, long enough ago."""
        Sitting.objects.filter(pk=self.sitting.pk).update(last_seen_at=timezone.now() - timedelta(hours=2))
        assert expiry.expire_sitting(self.sitting.pk, now=timezone.now())
        self.reload()
        return self

    def states(self) -> list[str]:
        """The states of its assignments, in order."""
        return list(self.sitting.assignments.order_by("position").values_list("state", flat=True))

    def code_for(self, outcome: str) -> str:
        """The study's code for somebody who ends so."""
        return self.sitting.stage.study.completion_code(outcome)

    def slots(self) -> list[int]:
        return list(self.sitting.assignments.order_by("position").values_list("slot_id", flat=True))


def fill(stage: Stage, *, people: int | None = None) -> list[Visitor]:
    """Let people take part until the stage is full."""
    return [Visitor(stage.study).finish() for _ in range(people or stage.config.sittings)]


@kept
def closed_stage(slug: str = "small", **overrides: Any) -> Stage:
    """A stage of the belief update that is full of answers and closing, with nothing run yet.

    The rows are written directly: what the walk through a sitting stores is tested where it is walked.
    """
    return lifecycle.close_stage(full_of_answers(open_stage(slug, **overrides)))


@kept
def frozen_stage(slug: str = "small", **overrides: Any) -> Stage:
    """A stage full of answers, closed, with what follows from closing done in this process."""
    stage = closed_stage(slug, **overrides)
    jobs.run_inline(stage)
    return stage_of(stage.study, stage.index)


def seated(stage: Stage) -> dict[int, Sitting]:
    """Every booklet of an open stage taken by a person of its own, who went through to the end: sittings by booklet."""
    now = timezone.now()
    booklets = list(stage.booklets.order_by("number"))
    people = Respondent.objects.bulk_create(Respondent(study=stage.study) for _booklet in booklets)
    sittings = Sitting.objects.bulk_create(
        Sitting(
            respondent=who,
            stage=stage,
            booklet=booklet,
            state="complete",
            started_at=now,
            last_seen_at=now,
            ended_at=now,
        )
        for who, booklet in zip(people, booklets, strict=True)
    )
    stage.booklets.update(claimed_at=now)
    return {sitting.booklet_id: sitting for sitting in sittings}


def full_of_answers(stage: Stage) -> Stage:
    """The open stage of the belief update with every slot answered in time."""
    now = timezone.now()
    by_booklet = seated(stage)
    assignments = Assignment.objects.bulk_create(
        Assignment(
            sitting=by_booklet[slot.booklet_id],
            slot=slot,
            position=slot.position,
            state="counted",
            assigned_at=now,
            completed_at=now,
        )
        for slot in stage.slots.all()
    )
    kinds = ("prior", "posterior")
    responses = Response.objects.bulk_create(
        Response(assignment=answer, number=number, screen=kind, screen_sha256="0" * 64, answered_at=now, server_ms=900)
        for answer in assignments
        for number, kind in enumerate(kinds, start=1)
    )
    Belief.objects.bulk_create(
        Belief(response=row, kind=row.screen, value=70 if row.number == 2 and row.assignment.position % 2 == 0 else 50)
        for row in responses
    )
    return stage


def step_of(stage: Stage, kind: str, member: int = 0) -> JobStep:
    return stage.job_steps.get(kind=kind, member=member)


def run_until(stage: Stage, kind: str) -> JobStep:
    """Run the steps before the first one of that kind, and return that one."""
    while True:
        stage.refresh_from_db()
        steps = lifecycle.next_steps(stage)
        if wanted := [step for step in steps if step.kind == kind]:
            return wanted[0]
        waiting = next(step for step in steps if step.state == JobStep.State.QUEUED)
        assert jobs.run_step(waiting.pk), JobStep.objects.get(pk=waiting.pk).error


# Bare rows, for what the database alone must refuse


def sitting(stage: Stage, **values: Any) -> Sitting:
    now = timezone.now()
    respondent = values.pop("respondent", None) or Respondent.objects.create(study=stage.study)
    return Sitting.objects.create(
        respondent=respondent, stage=stage, **{"started_at": now, "last_seen_at": now, **values}
    )


def assignment(sitting: Sitting, slot: Slot, **values: Any) -> Assignment:
    fields = {"position": 1, "assigned_at": timezone.now(), **values}
    return Assignment.objects.create(sitting=sitting, slot=slot, **fields)


def response(assignment: Assignment, number: int = 1, at: datetime | None = None) -> Response:
    return Response.objects.create(
        assignment=assignment,
        number=number,
        screen="prior",
        screen_sha256="0" * 64,
        answered_at=at or timezone.now(),
        server_ms=0,
    )


# Files


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


# What a row of `train_lm` holds beside its name.
A_NETWORK = {
    "kind": "lstm",
    "layers": 1,
    "units": 4,
    "parameters": 99,
    "vocabulary_size": 4,
    "train_words": 9,
    "epochs": 1,
    "held_out_perplexity": 3.5,
    "random_state": 0,
    "input_sha256": "0" * 64,
}
