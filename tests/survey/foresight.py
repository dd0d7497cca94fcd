"""Studies for figure 7: people who answer questions, people who say who will be right, and language models' answers."""

import random
from typing import Any

from survey.models import Bank, LanguageModel, ModelAnswer, Study
from survey.services.sittings.answering import advance
from survey.services.stages import lifecycle
from tests import cast

N = 16


def open_one(study: Study) -> Study:
    lifecycle.open_stage(cast.stage_of(study))
    return study


def people_study(bank: Bank, *, right: Any, people: int = 3, slug: str = "people") -> Study:
    """Everybody answers all questions; `right(person, position)` says how."""
    study = open_one(
        cast.small_study(
            slug,
            on=bank,
            instrument={"kind": "own_answers", "options": {"answers_per_question": people}},
            sitting={"items": N},
            stages=[{"sittings": people}],
        )
    )
    for person in range(people):
        visitor = cast.Visitor(study).to_items()
        step = visitor.step
        while step.kind == "item":
            asked = step.assignment.slot.item.asked_question.question
            said = asked.answer if right(person, asked.position) else "something else"
            step = advance(sitting=visitor.sitting, step=step.number, data={"answer": said})
    return study


def belief_study(bank: Bank, *, posterior: Any, slug: str = "beliefs", **overrides: Any) -> Study:
    """Four people with three pairs each; `posterior(pair, sitting)` says what they end with."""
    # Who takes which booklet is drawn by the process's own generator, and what is asked under a level follows from it.
    random.seed(1)
    study = open_one(cast.small_study(slug, on=bank, **overrides))
    for _person in range(4):
        visitor = cast.Visitor(study).to_items()
        step = visitor.step
        while step.kind == "item":
            pair = step.assignment.slot.item.pair
            value = 50 if step.screen.name == "prior" else posterior(pair, visitor.sitting)
            step = advance(sitting=visitor.sitting, step=step.number, data={"value": value})
    return study


def model(bank: Bank, name: str = "parrot", *, right: Any = lambda position: True, leave_out: int = 0) -> None:
    made = LanguageModel.objects.create(name=name)
    for question in bank.questions.order_by("position")[: N - leave_out]:
        ModelAnswer.objects.create(language_model=made, question=question, correct=right(question.position))


def even(_person: int, position: int) -> bool:
    """Everybody knows the even questions and no others."""
    return position % 2 == 0
