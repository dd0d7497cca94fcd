"""The cloze task as the core sees it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from survey.contracts.instruments import CONTRACT, Estimates, ListedInstrument, Options, Place
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Screen
from survey.contracts.tables import Column, ExtraFile
from survey.models import Assignment, Item, Question, Response
from survey.services.banks.eligibility import filtered_questions

from . import labels, norms, people, practice, screens
from .models import Gap, Word

ROW = np.dtype([("question", "<i4"), ("position", "<i4")])


class ClozeOptions(Options):
    normalisation: Literal["lenient", "exact"] = "lenient"
    skip_first: bool = True
    skip_last: bool = True
    smoothing: float = Field(default=1.0, gt=0)
    least: int = Field(default=10, ge=1)


class ClozeEstimates(Estimates):
    units = {"match": SHARE}

    def __init__(self, *, lenient: bool) -> None:
        self._lenient = lenient

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        """1 where the word is the sentence's own, by the study's normalisation."""
        words = [labels.word_of(assignment) for assignment in assignments]
        found = [word is not None and (word.lenient if self._lenient else word.exact) for word in words]
        return {"match": np.array(found, dtype=np.float64)}

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        (values,) = self.outcomes(assignments).values()
        return Estimands([Measure("match", "share of words that are the sentence's own", "share", values)])

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {universe_size:,} places in the bank's {n_questions:,} sentences"

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return {"source": np.array([item.gap.question.task.name for item in items], dtype=str)}


class Cloze(ListedInstrument):
    contract = CONTRACT
    name = "cloze"
    title = "Cloze"
    options_model = ClozeOptions
    columns = (
        Column("sentence_id", "text", "Id of the sentence."),
        Column("gap", "number", "Place of the word that was asked for, 0 for the first one."),
        Column("target", "text", "The sentence's own word."),
        Column("typed", "text", "What was typed, the last time it was asked for."),
        Column("several", "0 or 1", "1: more than one word was typed, and the first one was taken."),
        Column("normalised", "text", "The word as it was compared."),
        Column("rule", "text", "Version of the normalisation."),
        Column("exact", "0 or 1", "1: it is the sentence's own word."),
        Column("lenient", "0 or 1", "1: it is, but for a slip."),
    )
    practice = practice.ClozePractice()

    @property
    def estimates(self) -> ClozeEstimates:
        return ClozeEstimates(lenient=self._study is None or self.options.normalisation == "lenient")

    def reports(self) -> Sequence[ReportEntry]:
        return (ReportEntry("cloze", "Cloze norms", "What people wrote.", "cloze_skeleton.report.ClozeNorms"),)

    def problems(self) -> Iterable[tuple[Place, str]]:
        if not self.universe_size(filtered_questions(self.study)):
            yield ("bank",), "no sentence has a word that can be asked for: allow the first or last word, or add some"

    def positions_of(self, question: Question) -> list[int]:
        """The places that may be asked for in a sentence."""
        last = len(question.plain.split()) - 1
        return [
            place
            for place in question.extra.get("positions", range(last + 1))
            if not (place == 0 and self.options.skip_first) and not (place == last and self.options.skip_last)
        ]

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if self.positions_of(question)]

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        places = [(index, place) for index, one in enumerate(questions) for place in self.positions_of(one)]
        return np.array(places, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}@{int(row['position'])}"

    def conflict_keys(self, row: np.void) -> tuple[int, ...]:
        return (int(row["question"]),)

    def conflict_keys_of(self, items: Sequence[Item]) -> list[tuple[int, ...]]:
        gaps = Gap.objects.in_bulk([item.pk for item in items])
        return [(gaps[item.pk].question_id,) for item in items]

    def questions_of(self, items: Sequence[Item]) -> list[tuple[Question, ...]]:
        gaps = Gap.objects.select_related("question").in_bulk([item.pk for item in items])
        return [(gaps[item.pk].question,) for item in items]

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        Gap.objects.bulk_create(
            [
                Gap(item=item, question=questions[row["question"]], position=int(row["position"]))
                for item, row in zip(items, rows, strict=True)
            ]
        )

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        gap = Gap.objects.select_related("question").get(item_id=response.assignment.slot.item_id)
        typed = cleaned["word"].split()
        known = {
            labels.normalised(word)
            for text in gap.question.bank.questions.values_list("text", flat=True)
            for word in text.split()
        }
        match = labels.match_of(typed[0], gap.target, known=known)
        Word.objects.create(
            response=response,
            text=cleaned["word"],
            several=len(typed) > 1,
            normalised=labels.normalised(typed[0]),
            rule=labels.RULE,
            exact=match.exact,
            lenient=match.lenient,
        )

    def answer_values(self, assignment: Assignment) -> list[Any]:
        word = labels.word_of(assignment)
        return [] if word is None else [word.text, word.rule, word.exact, word.lenient]

    def export_values(self, assignment: Assignment) -> list[Any]:
        gap, word = assignment.slot.item.gap, labels.word_of(assignment)
        facts = [gap.question.external_id, gap.position, gap.target]
        if word is None:
            return [*facts, *[None] * 6]
        return [
            *facts,
            *(word.text, int(word.several), word.normalised, word.rule, int(word.exact), int(word.lenient)),
        ]

    def prefetch(self) -> Sequence[str]:
        return ("responses__word", "slot__item__gap__question__task")

    def extra_files(self, assignments: Iterable[Assignment]) -> Iterable[ExtraFile]:
        return (ExtraFile("cloze.csv", norms.COLUMNS, self._norms(assignments)),)

    def _norms(self, assignments: Iterable[Assignment]) -> Iterator[Sequence[Any]]:
        yield from norms.rows_of(
            norms.norms_of(assignments),
            lenient=self.options.normalisation == "lenient",
            smoothing=self.options.smoothing,
        )

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Reader:
        return people.Reader(study=self.study, seed=seed)
