"""The cloze task as the core sees it."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from predictors.readings.sources import outside_of
from survey.contracts.expectations import Expecting
from survey.contracts.instruments import (
    CONTRACT,
    BookletsByTask,
    Demonstration,
    FieldPath,
    LabelReading,
    ListedInstrument,
    Practice,
    Priority,
    Signals,
)
from survey.contracts.item_rows import NEVER_SHOWN, ItemRows
from survey.contracts.preparation import Preparation, Progress
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Screen
from survey.models import Assignment, Item, Question, Response
from survey.services.banks.eligibility import filtered_questions
from survey.study_file import Note

from . import expecting, labels, model_words, people, practice, priorities, screens
from .analysis.normalising import RULE
from .estimands import ClozeEstimates
from .export import ClozeExport
from .models import AskedWord, WordScore, WrittenWord
from .options import ClozeOptions

ROW = np.dtype([("question", "<i4"), ("position", "<i4")])
# What no page of a person shows.


class ClozeSignals(Signals):
    """Words read for an item, and the words that were written: who always writes the same one may not be reading."""

    def word_counts(self, items: Any) -> dict[int, int]:
        return dict(AskedWord.objects.filter(pk__in=items).values_list("pk", "position"))

    def stated_values(self, sittings: Any) -> Iterable[tuple[int, str, str]]:
        words = WrittenWord.objects.filter(response__assignment__sitting__in=sittings).order_by()
        for sitting, text in words.values_list("response__assignment__sitting", "text").iterator():
            yield sitting, "word", text.casefold()


class Cloze(ListedInstrument):
    """A sentence and a position in it: what stands before is shown, and the next word is asked for."""

    name = "cloze"
    title = "Cloze"
    contract = CONTRACT
    options_model = ClozeOptions
    rows = ItemRows(
        item="asked_word",
        questions=("question",),
        answers=("written_word__scores",),
        hidden_of_questions=NEVER_SHOWN,
        outcomes_read_items=False,
    )
    signals = ClozeSignals()
    budget_planner = "survey.instruments.cloze.reports.budget.ClozeBudget"
    demonstration = Demonstration(
        "example-cloze.toml",
        "survey.instruments.cloze.demonstration.load_bank",
        "survey.instruments.cloze.demonstration.verdict",
        bank="cloze-sentences",
    )

    @property
    def practice(self) -> Practice:
        return practice.ClozePractice()

    @property
    def estimates(self) -> ClozeEstimates:
        return ClozeEstimates(lenient=self._study is None or self.options.normalisation == "lenient")

    @property
    def priority(self) -> Priority | None:
        if self._study is None or self.options.priority == "none":
            return None
        return priorities.ClozePriority(self.study, self.options)

    @cached_property
    def expectations(self) -> Expecting:
        return expecting.ClozeExpecting(self._study, options=None if self._study is None else self.options)

    @property
    def preparation(self) -> Preparation | None:
        if self._study is None or not self.study.config.models:
            return None
        outside = outside_of(model.source for model in self.study.config.models)
        return Preparation("sentences", self._read, outside)

    def _read(self, progress: Progress) -> Mapping[str, int]:
        return model_words.read_models(
            self.study, everything=True, progress=lambda model, done, total: progress(done, total, f"{model} reads")
        )

    @property
    def booklets(self) -> "ClozeBooklets":
        return ClozeBooklets(self)

    @property
    def label_reading(self) -> "ClozeLabelReading":
        return ClozeLabelReading(self.rows)

    @property
    def export(self) -> ClozeExport:
        return ClozeExport(None if self._study is None else self.options)

    def reports(self) -> Sequence[ReportEntry]:
        return (
            ReportEntry(
                "cloze",
                "Cloze norms",
                "What people wrote at each position, and how well language models' surprisal goes with it.",
                "Which words people wrote at each position, and how well language models expected the sentence's own "
                "word. Surprisal is higher the fewer expect the word; PNC, the predictability norm correlation, is "
                "the correlation of a model's surprisal with people's, to be read next to its ceiling.",
                "survey.instruments.cloze.reports.study_report.ClozeReport",
            ),
            ReportEntry(
                "cloze_live",
                "Cloze so far",
                "Words by stage, answers at each position, and how many are the sentence's own.",
                "How many words came in at which positions, and how many are the sentence's own. They show how the "
                "study runs; shares are of the words as they came, without the design's weights.",
                "survey.instruments.cloze.reports.live_report.ClozeLive",
                while_it_runs=True,
            ),
            ReportEntry(
                "cloze_budget",
                "Budget",
                "How precise the study as it is planned would be, and other ways to spend its answers.",
                "How precise the study as it is planned would be, and the same number of answers spent in other ways, "
                "from simulated people. Narrower widths are better: compare plans with each other, and take single "
                "numbers as a guide.",
                "survey.instruments.cloze.reports.budget_report.ClozeBudgetReport",
            ),
        )

    # The study file

    def problems(self) -> Iterable[tuple[FieldPath, str]]:
        config, options = self.study.config, self.options
        if not self.universe_size(filtered_questions(self.study)):
            yield ("bank",), "no sentence has a word that can be asked for: allow the first or last word, or add some"
        names = [model.name for model in config.models]
        place: FieldPath = ("instrument", "options", "priority_model")
        if options.priority_model and options.priority_model not in names:
            yield place, f"{options.priority_model} is no name of [[models]] ({', '.join(names) or 'there are none'})"
        if options.priority == "gap" and not names:
            yield ("instrument", "options", "priority"), '"gap" is the distance to a model: name one in [[models]]'
        if options.lists:
            yield from self._list_problems()
        adaptive = any(stage.design.kind not in ("uniform", "test_set") for stage in config.stages)
        if options.priority != "none" and not adaptive:
            yield (
                ("instrument", "options", "priority"),
                "no stage draws by it: give a later stage a design such as epsilon_greedy, or remove it",
            )

    def _list_problems(self) -> Iterator[tuple[FieldPath, str]]:
        """What a Latin square needs: as many positions in each sentence, all of them drawn, nothing else."""
        config, place = self.study.config, ("instrument", "options", "lists")
        questions = self.usable(filtered_questions(self.study))
        counts = {len(self.positions_of(question)) for question in questions}
        if len(counts) > 1:
            yield (
                place,
                (
                    f"sentences have {min(counts)} to {max(counts)} positions: give each as many in the bank's column "
                    "positions"
                ),
            )
            return
        universe, items = self.universe_size(questions), config.sitting.items
        if config.candidates.size < universe:
            yield ("candidates", "size"), f"lists hold all {universe} positions: set it to {universe} or more"
        for index, stage in enumerate(config.stages, start=1):
            roles = config.roles_of(index)
            if stage.design.kind != "uniform" or roles.holdout or roles.controls:
                yield place, f"stage {index}: lists need a uniform design, holdout = 0 and controls = 0"
            answers = stage.responses_per_item
            if stage.sittings * items != universe * answers or len(questions) * answers % items:
                yield (
                    place,
                    (
                        f"stage {index}: {stage.sittings} sittings of {items} items do not ask each of {universe} "
                        f"positions {answers} times; with sitting.items = {len(questions)} set sittings = "
                        f"{universe * answers // max(1, len(questions))}"
                    ),
                )

    def remarks(self) -> Sequence[Note]:
        options = self.options
        fewest = min((stage.responses_per_item for stage in self.study.config.stages if stage.teaches), default=1)
        if fewest >= options.responses_per_item:
            return ()
        return (
            Note(
                "instrument.options.responses_per_item",
                f"the figures aim at {options.responses_per_item} answers at each position, and a stage asks for "
                f"{fewest}; raise the stage's responses_per_item, or lower the option",
            ),
        )

    # Items

    def positions_of(self, question: Question) -> list[int]:
        """The positions that may be asked for in a sentence; none in a text of one word."""
        options, last = self.options, len(question.plain.split()) - 1
        return [
            place
            for place in question.extra.get("positions", range(last + 1))
            if last > 0 and not (place == 0 and options.skip_first) and not (place == last and options.skip_last)
        ]

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if self.positions_of(question)]

    def universe_fingerprint(self) -> Any:
        return {"skip_first": self.options.skip_first, "skip_last": self.options.skip_last}

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        places = [(index, place) for index, question in enumerate(questions) for place in self.positions_of(question)]
        return np.array(places, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}@{int(row['position'])}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        AskedWord.objects.bulk_create(
            [
                AskedWord(item=item, question=questions[row["question"]], position=int(row["position"]))
                for item, row in zip(items, rows, strict=True)
            ],
            batch_size=2000,
        )

    # Screens and responses

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment)

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        asked = response.assignment.slot.item.asked_word
        text = cleaned["word"]
        rule = int(RULE)
        normalised, match = labels.judged(text, asked.question, asked.target, rule)
        word = WrittenWord.objects.create(response=response, text=text, several=labels.is_several(text))
        WordScore.objects.create(word=word, rule=rule, normalised=normalised, exact=match.exact, lenient=match.lenient)

    def answer_in_words(self, response: Response) -> str:
        return response.written_word.text if hasattr(response, "written_word") else ""

    def answer_values(self, assignment: Assignment) -> list[Any]:
        """What was typed. A later rule judges it again, and its hash stays."""
        word = labels.written_word_of(assignment)
        return [] if word is None else [word.text, word.several]

    def counts_unfinished(self, assignment: Assignment) -> bool:
        """Anyone who left when asked for one word only has written a first word."""
        return labels.written_word_of(assignment) is not None

    # Export

    def simulated_person(self, *, seed: int, null: bool = False) -> people.ClozePerson:
        return people.ClozePerson(study=self.study, seed=seed, null=null)


class ClozeBooklets(BookletsByTask):
    def __init__(self, instrument: Cloze) -> None:
        super().__init__(instrument.rows)
        self.instrument = instrument

    def latin_square_list(self, row: np.void, questions: Sequence[Question]) -> Hashable | None:
        """The list on which this position is asked for: a sentence's first position is on another list than that of the
        sentence before it, and so on in turn."""
        if not self.instrument.options.lists:
            return None
        question = questions[row["question"]]
        positions = self.instrument.positions_of(question)
        return (positions.index(int(row["position"])) + int(row["question"])) % len(positions)


class ClozeLabelReading(LabelReading):
    def read(self, items: Sequence[Item], answers: Sequence[Assignment]) -> None:
        super().read(items, ())
        labels.read_words(answers)
