"""Studies of the toy instrument that are answered to their end. What people guess follows from question and person, so
that every figure can be worked out again."""

from collections.abc import Callable
from typing import Any

import numpy as np

from survey.models import Assignment, Question, Stage, Study
from survey.services.sittings.answering import advance
from survey.services.stages import jobs, lifecycle
from tests import cast

# The three guesses at a question, by the question and the number of the person's booklet. Who is given which booklet is
# not the same from run to run.
Guessing = Callable[[Question, int], list[str]]
RIGHT = ("what", "is", "the", "of")
WRONG = ("ant", "bear", "cat", "dog", "eel", "frog", "goat", "hen", "ibex", "jay", "koala", "lion")


def some_words(question: Question, person: int) -> list[str]:
    """One or two words a guess, a quarter of them right."""
    rng = np.random.default_rng([question.position, person])
    return [" ".join(rng.choice(RIGHT + WRONG, size=rng.integers(1, 3), replace=False)) for _guess in range(3)]


def study(slug: str = "toy", *, questions: int = 40, **overrides: Any) -> Study:
    options = overrides.pop("options", {})
    bank = cast.small_bank(questions, name=f"bank-of-{slug}", keyless=questions)
    kind = {"kind": "toy", "options": options}
    return cast.small_study(slug, on=bank, **{"candidates": {"size": 30}, **overrides, "instrument": kind})


def run_stage(stage: Stage, *, guessing: Guessing = some_words) -> Stage:
    """Open a stage, let people answer all of it, close it, and do all that follows."""
    stage = lifecycle.open_stage(stage)
    for _booklet in range(stage.booklets.count()):
        answer_all(cast.Visitor(stage.study).to_items(), guessing)
    jobs.run_inline(lifecycle.close_stage(stage))
    return cast.stage_of(stage.study, stage.index)


def answer_all(visitor: cast.Visitor, guessing: Guessing = some_words) -> None:
    step, person = visitor.step, visitor.sitting.booklet.number
    while step.kind == "item":
        assignment = Assignment.objects.get(sitting=visitor.sitting, position=step.position)
        question = assignment.slot.item.passage.question
        data = {}
        if step.screen.form is not None:
            data["guess"] = guessing(question, person)[int(step.screen.name[-1]) - 1]
        step = advance(sitting=visitor.sitting, step=step.number, data=data)


def run(slug: str = "toy", *, guessing: Guessing = some_words, **overrides: Any) -> Study:
    made = study(slug, **overrides)
    for index in range(1, len(made.config.stages) + 1):
        run_stage(cast.stage_of(made, index), guessing=guessing)
    return made
