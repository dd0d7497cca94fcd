"""Own answers as the core sees them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from survey.contracts.instruments import (
    CONTRACT,
    BookletsByTask,
    Estimates,
    ListedInstrument,
    Needs,
    Options,
    Signals,
)
from survey.contracts.item_rows import ItemRows
from survey.contracts.measures import SHARE, Estimands
from survey.contracts.screens import Points, Screen
from survey.models import Assignment, Item, Question, Response
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.eligibility import word_counts

from . import estimands, labels, people, screens
from .export import OwnAnswersExport
from .models import AskedQuestion, OwnAnswer

ROW = np.dtype([("question", "<i4"), ("copy", "<i4")])


class OwnAnswersOptions(Options):
    by_condition = frozenset({"confidence"})

    answers_per_question: int = Field(default=1, ge=1, le=1000)
    """The most people who answer the same question in a stage. 1 to 1000."""
    confidence: bool = True
    """Whether people may say how sure they are, from 0 to 100 percent. May differ by condition."""


class AnswerEstimates(Estimates):
    """The share that is right, and how sure people are."""

    units = {"correct": SHARE}

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        return {"correct": estimands.correct_of(assignments)}

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return estimands.in_words(universe_size=universe_size, n_questions=n_questions)

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        return estimands.of_answers(assignments)

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return estimands.divisions(items)


class AnswerSignals(Signals):
    def word_counts(self, items: Collection[int]) -> dict[int, int]:
        asked = dict(AskedQuestion.objects.filter(pk__in=items).values_list("pk", "question"))
        words = word_counts(asked.values())
        return {item: words[question] for item, question in asked.items()}

    def stated_values(self, sittings: Collection[int]) -> Iterable[tuple[int, str, str]]:
        """The options chosen or words given: a person who always takes the first option may not be reading."""
        answers = OwnAnswer.objects.filter(response__assignment__sitting__in=sittings).order_by()
        for sitting, text in answers.values_list("response__assignment__sitting", "text").iterator():
            yield sitting, "answer", text


class OwnAnswers(ListedInstrument):
    """A question and its copies: each is a separate item with its own chance of being drawn."""

    name = "own_answers"
    title = "Own answers"
    contract = CONTRACT
    options_model = OwnAnswersOptions
    needs = Needs(answer_key=True)
    rows = ItemRows(item="asked_question", questions=("question",), answers=("own_answer",), outcomes_read_items=False)
    estimates = AnswerEstimates()
    signals = AnswerSignals()

    @property
    def booklets(self) -> BookletsByTask:
        return BookletsByTask(self.rows)

    @property
    def export(self) -> OwnAnswersExport:
        return OwnAnswersExport()

    @property
    def copies(self) -> int:
        """How many answers a question may get in a stage; 1 without a study."""
        return 1 if self._study is None else self.options.answers_per_question

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        rows = np.empty(len(questions) * self.copies, dtype=ROW)
        rows["question"], rows["copy"] = np.divmod(np.arange(len(rows)), self.copies)
        rows["copy"] += 1
        return rows

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}#{int(row['copy'])}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        AskedQuestion.objects.bulk_create(
            [
                AskedQuestion(item=item, question=questions[row["question"]], copy=int(row["copy"]))
                for item, row in zip(items, rows, strict=True)
            ]
        )

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, confidence=self.options_for(assignment).confidence)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        question = response.assignment.slot.item.asked_question.question
        verdict = labels.verdict_on(cleaned["answer"], question)
        OwnAnswer.objects.create(
            response=response,
            text=cleaned["answer"],
            correct=verdict.correct,
            stated=verdict.stated,
            reason=verdict.reason,
            rules_version=RULES_VERSION,
            confidence=cleaned.get("confidence"),
        )

    def score(self, response: Response) -> Points:
        """A point for a right answer; not shown to anybody, and paid if the panel pays for points."""
        return labels.points_of(response.own_answer)

    def answer_values(self, assignment: Assignment) -> list[Any]:
        answer = labels.answer_of(assignment)
        return [] if answer is None else [answer.text, answer.correct, answer.confidence]

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Solver:
        return people.Solver(study=self.study, seed=seed, confidence=self.options.confidence)
