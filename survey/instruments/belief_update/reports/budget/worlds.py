"""The bank of a simulated study, and the truth about its pairs and people."""

from collections.abc import Iterable, Sequence

from pydantic import Field, model_validator

from survey.exceptions import FileErrors, Problem
from survey.models import Question
from survey.services.banks.importing import find_bank
from survey.study_file import Strict

from .simulation import World


class BankShape(Strict):
    """An imported bank by name, or the shape of one: questions spread evenly over tasks, and tasks over domains."""

    name: str = ""
    questions: int | None = Field(default=None, ge=2, le=100_000)
    tasks: int | None = Field(default=None, ge=1, le=1000)
    domains: int | None = Field(default=None, ge=1, le=100)

    @model_validator(mode="after")
    def one_or_the_other(self) -> "BankShape":
        shape = (self.questions, self.tasks, self.domains)
        if bool(self.name) == any(part is not None for part in shape) or (not self.name and None in shape):
            raise ValueError("give either a name or all of questions, tasks and domains")
        if self.questions and self.tasks and self.domains and not self.questions >= self.tasks >= self.domains:
            raise ValueError("there must be at least as many questions as tasks, and as many tasks as domains")
        return self


class TruthShape(Strict):
    changes_incorrect: float = Field(default=0.46, gt=0, lt=1)
    changes_correct: float = Field(default=0.32, gt=0, lt=1)
    pair_sd: float = Field(default=0.9, ge=0, le=5)
    hidden_share: float = Field(default=1 / 3, ge=0, le=1)
    respondent_sd: float = Field(default=1.0, ge=0, le=5)
    false_change: float = Field(default=0.05, ge=0, le=1)


def world_of(shape: BankShape, truth: TruthShape) -> World:
    """The bank's tasks and domains with the truth about them.

    Raises:
        FileErrors: fewer than 2 questions.
        NotFound: no such bank.
    """
    if shape.name:
        kinds = kinds_of(find_bank(shape.name).questions.filter(flag=Question.Flag.NONE).select_related("task"))
        if len(kinds) < 2:
            message = f"{shape.name} has {len(kinds)} questions without a flag, fewer than 2"
            raise FileErrors([Problem("", None, "bank.name", message)])
    else:
        count, tasks, domains = shape.questions or 0, shape.tasks or 1, shape.domains or 1
        of_question = [number * tasks // count for number in range(count)]
        kinds = [(f"task {task}", f"domain {task * domains // tasks}") for task in of_question]
    return world_over(kinds, truth)


def kinds_of(questions: Iterable[Question]) -> list[tuple[str, str]]:
    """Task and domain of each question; a task without a domain counts as its own domain."""
    return [(question.task.name, question.task.domain or question.task.name) for question in questions]


def world_over(kinds: Sequence[tuple[str, str]], truth: TruthShape) -> World:
    """Questions of these tasks and domains with the truth about their pairs."""
    return World(
        tasks=tuple(task for task, _domain in kinds),
        domains=tuple(domain for _task, domain in kinds),
        rates=(truth.changes_incorrect, truth.changes_correct),
        **truth.model_dump(exclude={"changes_incorrect", "changes_correct"}),
    )
