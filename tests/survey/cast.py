"""The known cast of the core's tests: a small bank, studies of four people with three items each, and visitors."""

import itertools
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import (
    Assignment,
    Bank,
    CompletionCode,
    JobStep,
    Question,
    Respondent,
    Response,
    Sitting,
    Slot,
    Stage,
    Study,
    Task,
)
from survey.services.base.seeds import derive
from survey.services.plans import planning
from survey.services.sittings import expiry
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.flow import Step, current_step
from survey.services.sittings.identities import PanelIds
from survey.services.stages import jobs, lifecycle
from survey.study_file import StudyConfig

CHECK = {"name": "ready", "question": "What do you judge?", "options": ["Language models", "People"], "hint": "Models."}
BLOCKS: list[dict[str, Any]] = [
    {"kind": "consent", "text": "You may stop at any time.", "version": "3"},
    {"kind": "checks", "checks": [CHECK]},
    {"kind": "items"},
    {"kind": "end", "text": "Thank you."},
]
WORDS = ["river", "city", "metal", "planet", "sum", "red", "blue", "old", "new", "long"]


def bank(size: int = 40, *, name: str = "small", tasks: int = 4, keyless: int = 0) -> Bank:
    """A bank of `size` questions over `tasks` tasks, the last `keyless` of them without an answer."""
    made = Bank.objects.create(name=name, version=1, sha256="0" * 64, question_count=size)
    rows = [Task.objects.create(bank=made, name=f"task_{number}") for number in range(tasks)]
    Question.objects.bulk_create(
        Question(
            bank=made,
            task=rows[number % tasks],
            position=number,
            external_id=f"q{number}",
            text=f"<b>what is the {WORDS[number % 10]}</b><br>of {number}",
            answer="" if number >= size - keyless else str(number),
        )
        for number in range(size)
    )
    return made


def study(slug: str = "small", *, on: Bank | None = None, **overrides: Any) -> Study:
    """A study with its stages (draft) and codes. `overrides` replaces top-level keys of the study file."""
    on = on or Bank.objects.filter(name="small").first() or bank()
    config = StudyConfig.model_validate(
        {
            "slug": slug,
            "title": "A small study",
            "bank": on.name,
            "seed": 7,
            "candidates": {"size": 400},
            "roles": {"holdout": 0, "controls": 0},
            "sitting": {"items": 3, "expires_after_minutes": 30},
            "stages": [{"sittings": 4}],
            "blocks": BLOCKS,
            "data": {"retention_until": "2099-12-31"},
            **overrides,
        }
    )
    made = Study.objects.create(
        slug=slug,
        title=config.title,
        bank=on,
        instrument=config.instrument.kind,
        seed=config.seed,
        stored_config=config.model_dump(mode="json"),
        source_text="",
        source_sha256="0" * 64,
    )
    Stage.objects.bulk_create(
        Stage(study=made, index=index, seed=derive(made.seed, "stage", index))
        for index in range(1, len(config.stages) + 1)
    )
    CompletionCode.objects.bulk_create(
        CompletionCode(study=made, outcome=outcome, code=f"{outcome.upper()}-{slug}")
        for outcome in CompletionCode.Outcome.values
    )
    return made


def stage_of(study: Study, index: int = 1) -> Stage:
    return Stage.objects.select_related("study__bank").get(study=study, index=index)


def planned_stage(slug: str = "small", **overrides: Any) -> Stage:
    return planning.plan_stage(stage_of(study(slug, **overrides)))


def open_stage(slug: str = "small", **overrides: Any) -> Stage:
    return lifecycle.open_stage(stage_of(study(slug, **overrides)))


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
        return advance(sitting=self.sitting, step=self.step.number, data=data)

    def check(self, *, right: bool = True) -> Step:
        """Answer the comprehension checks. A form carries the place at which an option is shown."""
        places = {
            check.name: next(place for place, (index, _text) in enumerate(check.options, 1) if (index == 0) == right)
            for check in self.step.checks
        }
        return self.post(**places)

    def to_items(self) -> "Visitor":
        step = self.step
        while step.kind not in ("item", "end"):
            step = self.check() if step.kind == "checks" else self.post()
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

    def slots(self) -> list[int]:
        return list(self.sitting.assignments.order_by("position").values_list("slot_id", flat=True))


def fill(stage: Stage, *, people: int | None = None) -> list[Visitor]:
    """Let people take part until the stage is full."""
    return [Visitor(stage.study).finish() for _ in range(people or stage.config.sittings)]


def closed_stage(slug: str = "small", **overrides: Any) -> Stage:
    """A stage of the belief update that is full of answers and closing, with nothing run yet.

    The rows are written directly: what the walk through a sitting stores is tested where it is walked.
    """
    stage = open_stage(slug, **overrides)
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
    by_booklet = {sitting.booklet_id: sitting for sitting in sittings}
    given = Assignment.objects.bulk_create(
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
        for answer in given
        for number, kind in enumerate(kinds, start=1)
    )
    Belief.objects.bulk_create(
        Belief(response=row, kind=row.screen, value=70 if row.number == 2 and row.assignment.position % 2 == 0 else 50)
        for row in responses
    )
    return lifecycle.close_stage(stage)


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
    given = {"position": 1, "assigned_at": timezone.now(), **values}
    return Assignment.objects.create(sitting=sitting, slot=slot, **given)


def response(assignment: Assignment, number: int = 1, at: datetime | None = None) -> Response:
    return Response.objects.create(
        assignment=assignment,
        number=number,
        screen="prior",
        screen_sha256="0" * 64,
        answered_at=at or timezone.now(),
        server_ms=0,
    )
