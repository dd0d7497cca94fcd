"""Self-paced reading as the core sees it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from predictors.readings.sources import outside_of
from survey.contracts.instruments import (
    CONTRACT,
    BookletsByTask,
    Demonstration,
    FieldPath,
    ListedInstrument,
    Needs,
    Practice,
    Signals,
)
from survey.contracts.item_rows import NEVER_SHOWN, ItemRows
from survey.contracts.preparation import Preparation, Progress
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Screen
from survey.exceptions import HunchError
from survey.figures.words import number
from survey.models import Assignment, Item, NgramModel, Question, Response
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.frequencies import NGRAM

from . import labels, model_words, people, practice, screens
from .estimands import ReadingEstimates
from .export import ReadingExport
from .models import PassageAnswer, PassageOpening, ReadPassage, WordTimes
from .options import ReadingOptions

ROW = np.dtype([("question", "<i4")])
MADE_BY = "write ngram:NAME; `hunch train_ngram FILE` makes one of texts or, with --counts, of a table of words"
# What no page of a person shows; `extra` holds the question that is asked, too.
MAX_OPENINGS = 20  # of a passage by one person; more say nothing more


class ReadingSignals(Signals):
    """Words of a passage, and yes or no: who always answers the same may not be reading."""

    def word_counts(self, items: Any) -> dict[int, int]:
        passages = ReadPassage.objects.filter(pk__in=items).select_related("question")
        return {passage.pk: len(passage.words) for passage in passages}

    def stated_values(self, sittings: Any) -> Iterable[tuple[int, str, str]]:
        answers = PassageAnswer.objects.filter(response__assignment__sitting__in=sittings).order_by()
        for sitting, yes in answers.values_list("response__assignment__sitting", "yes").iterator():
            yield sitting, "answer", "yes" if yes else "no"


class SelfPacedReading(ListedInstrument):
    """A passage that is read word by word, and then a yes/no question about it."""

    name = "self_paced_reading"
    title = "Self-paced reading"
    contract = CONTRACT
    needs = Needs(script=True)
    options_model = ReadingOptions
    rows = ItemRows(
        item="read_passage",
        questions=("question",),
        answers=("word_times", "passage_answer"),
        labels=("passage_answer",),
        hidden_of_questions=NEVER_SHOWN,
        outcomes_read_items=False,
    )
    signals = ReadingSignals()
    demonstration = Demonstration(
        "example-reading.toml",
        "survey.instruments.self_paced_reading.demonstration.load_bank",
        "survey.instruments.self_paced_reading.demonstration.verdict",
        bank="reading-passages",
    )

    budget_planner = "survey.instruments.self_paced_reading.reports.budget.ReadingBudget"

    @property
    def practice(self) -> Practice:
        return practice.ReadingPractice()

    @property
    def estimates(self) -> ReadingEstimates:
        return ReadingEstimates()

    @property
    def preparation(self) -> Preparation | None:
        if self._study is None or not self.study.config.models:
            return None
        outside = outside_of(model.source for model in self.study.config.models)
        return Preparation("passages", self._read, outside)

    def _read(self, progress: Progress) -> Mapping[str, int]:
        return model_words.read_models(
            self.study, progress=lambda model, done, total: progress(done, total, f"{model} reads")
        )

    @property
    def booklets(self) -> BookletsByTask:
        return BookletsByTask(self.rows)

    @property
    def export(self) -> ReadingExport:
        return ReadingExport()

    def reports(self) -> Sequence[ReportEntry]:
        return (
            ReportEntry(
                "reading",
                "Reading times",
                "How long people looked at words, and what language models' surprisal adds to predicting it.",
                "How long people look at each word, and what language models' surprisal adds to predicting it. "
                "Milliseconds per nat say how much longer a word takes the less a model expects it; where the "
                "interval holds 0 this may be chance.",
                "survey.instruments.self_paced_reading.reports.study_report.ReadingReport",
            ),
            ReportEntry(
                "reading_live",
                "Reading so far",
                "Passages by stage, why some are marked, questions answered right, and the time of a word.",
                "How many passages came in, why some are marked, and how long a word takes. They show how the study "
                "runs; times are as they came, and the report on reading times says which are left out.",
                "survey.instruments.self_paced_reading.reports.live_report.ReadingLive",
                while_it_runs=True,
            ),
        )

    # The study file

    def problems(self) -> Iterable[tuple[FieldPath, str]]:
        options: ReadingOptions = self.options
        place: FieldPath = ("instrument", "options", "frequencies")
        passages = self.usable(filtered_questions(self.study))
        if not passages:
            yield (
                ("bank",),
                "no passage has a question: give the bank's file the columns question and answer (yes or no)",
            )
        if options.shortest >= options.longest:
            yield ("instrument", "options", "shortest"), f"must be below longest, which is {options.longest}"
        if options.frequencies and not options.frequencies.startswith(NGRAM):
            yield place, f"is no n-gram model: {MADE_BY}"
        elif options.frequencies and not _are_words(options.frequencies.removeprefix(NGRAM)):
            yield place, f"there is no n-gram model of words with this name: {MADE_BY}"
        if self.study.config.models and not options.frequencies:
            yield (
                place,
                "is missing: what surprisal adds is found next to how frequent words are; write ngram:NAME, a model "
                "that `hunch train_ngram FILE` makes of texts or, with --counts, of a table of words, or remove "
                "[[models]]",
            )
        for index, model in enumerate(self.study.config.models):
            try:
                model_words.read_quickly(model, passages)
            except HunchError as exc:
                yield ("models", index, "source"), exc.message

    # Items

    def usable(self, questions: list[Question]) -> list[Question]:
        """Passages of two words or more with a question."""
        return [
            question for question in questions if question.extra.get("question") and len(question.plain.split()) > 1
        ]

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([(index,) for index in range(len(questions))], dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        ReadPassage.objects.bulk_create(
            [
                ReadPassage(item=item, question=questions[row["question"]])
                for item, row in zip(items, rows, strict=True)
            ],
            batch_size=2000,
        )

    # Screens and responses

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment)

    def opened(self, *, assignment: Assignment, screen: str, nonce: str, now: datetime) -> None:
        if screen != screens.PASSAGE or assignment.passage_openings.count() >= MAX_OPENINGS:
            return
        # The same word of the same window may come twice.
        PassageOpening.objects.bulk_create(
            [PassageOpening(assignment=assignment, nonce=nonce, opened_at=now)], ignore_conflicts=True
        )

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        if response.screen == screens.QUESTION:
            yes = cleaned["answer"] == "yes"
            right = yes == response.assignment.slot.item.read_passage.is_yes
            PassageAnswer.objects.create(response=response, yes=yes, right=right)
            return
        times = cleaned["times"]
        passed, marks = labels.server_marks(response, nonce=cleaned["nonce"], spent_ms=sum(times) + cleaned["lead_ms"])
        WordTimes.objects.create(
            response=response,
            times=times,
            lead_ms=cleaned["lead_ms"],
            server_ms=passed,
            means=cleaned["means"],
            marks=[*cleaned["marks"], *marks],
        )

    def answer_in_words(self, response: Response) -> str:
        if hasattr(response, "passage_answer"):
            return "yes" if response.passage_answer.yes else "no"
        if not hasattr(response, "word_times"):
            return ""
        read = response.word_times
        marked = f", marked: {', '.join(read.marks)}" if read.marks else ""
        return f"{len(read.times)} words in {number(sum(read.times) / 1000, 1)} s{marked}"

    def answer_values(self, assignment: Assignment) -> list[Any]:
        read, answer = labels.times_of(assignment), labels.answer_of(assignment)
        if read is None or answer is None:
            return []
        return [read.times, read.lead_ms, read.means, read.marks, answer.yes]

    # Export

    def simulated_person(self, *, seed: int, null: bool = False) -> people.ReadingPerson:
        return people.ReadingPerson(study=self.study, seed=seed, null=null)


def _are_words(name: str) -> bool:
    return NgramModel.objects.filter(name=name, unit="word").exists()
