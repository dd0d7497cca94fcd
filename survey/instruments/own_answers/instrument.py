"""Own answers as the core sees them."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from django.db.models import QuerySet
from pydantic import Field

from survey.contracts.instruments import CONTRACT, Estimates, ListedInstrument, Options, Signals
from survey.contracts.measures import SHARE, Estimands
from survey.contracts.screens import Points, Screen
from survey.models import Assignment, Item, Question, Response
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.eligibility import word_counts
from survey.services.base.compiled import insert

from . import estimands, export, labels, people, screens
from .models import AskedQuestion, OwnAnswer
from .quick_export import OwnAnswersQuickExport

ROW = np.dtype([("question", "<i4"), ("copy", "<i4")])


class OwnAnswersOptions(Options):
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
    needs_answer_key = True
    condition_options = frozenset({"confidence"})
    codebook_note = "Beliefs are whole percentage points."
    columns = export.COLUMNS
    estimates = AnswerEstimates()
    signals = AnswerSignals()

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

    def conflict_keys(self, row: np.void) -> tuple[int, ...]:
        return (int(row["question"]),)

    def conflict_keys_of(self, items: Sequence[Item]) -> list[tuple[int, ...]]:
        asked = AskedQuestion.objects.in_bulk([item.pk for item in items])
        return [(asked[item.pk].question_id,) for item in items]

    def questions_of(self, items: Sequence[Item]) -> list[tuple[Question, ...]]:
        asked = AskedQuestion.objects.select_related("question").in_bulk([item.pk for item in items])
        return [(asked[item.pk].question,) for item in items]

    def balance_keys(self, row: np.void, questions: Sequence[Question]) -> tuple[Hashable, ...]:
        """Every booklet gets its share of each task, so that every person answers questions of all tasks."""
        return (questions[row["question"]].task_id,)

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        AskedQuestion.objects.bulk_create(
            [
                AskedQuestion(item=item, question=questions[row["question"]], copy=int(row["copy"]))
                for item, row in zip(items, rows, strict=True)
            ]
        )

    @classmethod
    def read_items(cls, assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
        return assignments.select_related("slot__item__asked_question__question")

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, confidence=self.options_for(assignment).confidence)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        question = response.assignment.slot.item.asked_question.question
        verdict = labels.verdict_on(cleaned["answer"], question)
        insert(
            OwnAnswer(
                response=response,
                text=cleaned["answer"],
                correct=verdict.correct,
                stated=verdict.stated,
                reason=verdict.reason,
                rules_version=RULES_VERSION,
                confidence=cleaned.get("confidence"),
            )
        )

    def score(self, response: Response) -> Points:
        """A point for a right answer; not shown to anybody, and paid if the panel pays for points."""
        return labels.points_of(response.own_answer)

    def answer_values(self, assignment: Assignment) -> list[Any]:
        answer = labels.answer_of(assignment)
        return [] if answer is None else [answer.text, answer.correct, answer.confidence]

    @cached_property
    def quick_export(self) -> OwnAnswersQuickExport:
        return OwnAnswersQuickExport()

    def export_values(self, assignment: Assignment) -> list[Any]:
        return export.values(assignment)

    def prefetch(self) -> Sequence[str]:
        return ("responses__own_answer", "slot__item__asked_question__question__task")

    def label_relations(self) -> Sequence[str]:
        return self.prefetch()  # Points are not read.

    def outcome_relations(self) -> Sequence[str]:
        return ("responses__own_answer",)

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Solver:
        return people.Solver(study=self.study, seed=seed, confidence=self.options.confidence)
