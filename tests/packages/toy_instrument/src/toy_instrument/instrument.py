"""The toy as the core sees it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from survey.contracts.instruments import CONTRACT, REPEAT, Controls, ListedInstrument, Options, Priority
from survey.contracts.item_rows import ItemRows
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Points, Screen
from survey.models import Assignment, Item, Question, Response

from . import labels, people, screens
from .estimates import ToyEstimates
from .export import ToyExport
from .learning import ToyLearning
from .models import Guess, Passage
from .priority import PRIORITIES

ROW = np.dtype([("question", "<i4")])


class ToyOptions(Options):
    priority: Literal["", "letters", "doubt"] = ""


class ToyControls(Controls):
    kinds = (REPEAT,)


class Toy(ListedInstrument):
    contract = CONTRACT
    name = "toy"
    title = "Toy"
    options_model = ToyOptions
    rows = ItemRows(item="passage", questions=("question",), answers=("guess",), labels=("guess", "score"))
    export = ToyExport()
    controls = ToyControls()
    estimates = ToyEstimates()
    learning = ToyLearning()
    budget_planner = "toy_instrument.budget.ToyBudget"

    @property
    def priority(self) -> Priority | None:
        return None if self._study is None else PRIORITIES.get(self.options.priority)

    def reports(self) -> Sequence[ReportEntry]:
        return (
            ReportEntry(
                name="guessed_words",
                title="Guessed words",
                summary="How often each word was guessed.",
                opening="How often people guessed each word. The more guesses, the easier it was.",
                path="toy_instrument.report.GuessedWords",
            ),
        )

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([(index,) for index in range(len(questions))], dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return str(questions[row["question"]].position)

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        Passage.objects.bulk_create(
            [Passage(item=item, question=questions[row["question"]]) for item, row in zip(items, rows, strict=True)]
        )

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        Guess.objects.create(response=response, text=cleaned["guess"])

    def score(self, response: Response) -> Points | None:
        if response.screen == screens.FEEDBACK:
            return None
        passage = Passage.objects.select_related("question").get(item_id=response.assignment.slot.item_id)
        return labels.points_of(response.guess.text, passage.question.plain)

    def counts_unfinished(self, assignment: Assignment) -> bool:
        """Two guesses say enough."""
        return len(labels.guesses_of(assignment)) >= 2

    def answer_values(self, assignment: Assignment) -> list[Any]:
        return labels.guesses_of(assignment)

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Guesser:
        return people.Guesser(seed)
