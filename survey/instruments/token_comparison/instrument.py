"""The comparison of next tokens as the core sees it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from predictors.readings.sources import outside_of
from survey.contracts.instruments import (
    CONTRACT,
    Booklets,
    Demonstration,
    FieldPath,
    ListedInstrument,
    Practice,
    Signals,
)
from survey.contracts.item_rows import NEVER_SHOWN, ItemRows
from survey.contracts.preparation import Preparation, Progress
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Points, Screen
from survey.exceptions import HunchError
from survey.models import Assignment, Item, Question, Response
from survey.services.banks import passages
from survey.services.banks.eligibility import filtered_questions
from survey.study_file import Note

from . import people, practice, preparing, screens
from .analysis.rewards import REWARD_RULE, REWARD_VERSION, points
from .estimands import ComparisonEstimates
from .export import ComparisonExport
from .labels import stated_of
from .models import PreparedContext, StatedChance, TokenPair
from .options import ComparisonOptions

ROW = np.dtype([("question", "<i4"), ("position", "<i4"), ("other", "<i4"), ("times", "<i4"), ("log_g", "<f8")])
GENERATOR: FieldPath = ("instrument", "options", "generator")
PRACTISED = 3  # comparisons by which people learn the rewards
# What no page of a person shows.


class ComparisonSignals(Signals):
    """Words read for an item, and the chances that were stated: who always states the same one may not be reading."""

    round_values = (50,)

    def word_counts(self, items: Any) -> dict[int, int]:
        pairs = TokenPair.objects.filter(pk__in=items).select_related("question", "context")
        return {pair.pk: len(pair.shown.split()) for pair in pairs}

    def stated_values(self, sittings: Any) -> Iterable[tuple[int, str, int]]:
        rows = StatedChance.objects.filter(response__assignment__sitting__in=sittings).order_by()
        for sitting, percent in rows.values_list("response__assignment__sitting", "percent_left").iterator():
            yield sitting, "percent_left", percent


class TokenComparison(ListedInstrument):
    """A context and two tokens, of which one is how it goes on; the other was drawn by the generator."""

    name = "token_comparison"
    title = "Token comparison"
    contract = CONTRACT
    options_model = ComparisonOptions
    rows = ItemRows(
        item="token_pair",
        questions=("question",),
        answers=("stated_chance",),
        shown=("context",),
        hidden_of_questions=NEVER_SHOWN,
        hidden=("context__drawn",),
        labelled=("context__tokenizer",),
        outcomes_read_items=False,
    )
    budget_planner = "survey.instruments.token_comparison.reports.budget.ComparisonBudget"
    signals = ComparisonSignals()
    estimates = ComparisonEstimates()
    demonstration = Demonstration(
        "example-token-comparison.toml",
        "survey.instruments.token_comparison.demonstration.load_bank",
        "survey.instruments.token_comparison.demonstration.verdict",
        bank="starter-passages",
    )

    @property
    def practice(self) -> Practice:
        return practice.ComparisonPractice((self.options if self._study is not None else ComparisonOptions()).ratios)

    @property
    def preparation(self) -> Preparation | None:
        if self._study is None:
            return None
        outside = outside_of([self.options.generator, *(model.source for model in self.study.config.models)])
        return Preparation("contexts", self._prepare, outside)

    def _prepare(self, progress: Progress) -> Mapping[str, int]:
        prepared = preparing.prepare(
            filtered_questions(self.study),
            self.options,
            self.study.config.models,
            progress=lambda what, done, total: progress(done, total, what),
        )
        return {"drawn": prepared.made, **prepared.read}

    @property
    def booklets(self) -> Booklets:
        together = self._study is not None and self.options.contexts_together
        return ComparisonsTogether(self.rows) if together else Booklets(self.rows)

    @property
    def export(self) -> ComparisonExport:
        return ComparisonExport()

    def reports(self) -> Sequence[ReportEntry]:
        return (
            ReportEntry(
                "token_comparison",
                "Comparisons of next tokens",
                "People's loss and perplexity at predicting the next token, next to models whose loss is known.",
                "How well people predict the next token of a text, estimated from their choices between two: lower "
                "loss and perplexity are better. Trust the figure as far as its checks hold, which are models of "
                "known loss, measured in the same way.",
                "survey.instruments.token_comparison.reports.study_report.TokenComparisonReport",
            ),
            ReportEntry(
                "token_comparison_live",
                "Comparisons so far",
                "Answers by stage, people, contexts, and how many lean towards the true token.",
                "How many comparisons came in, and how many lean towards the text's own continuation. They show how "
                "the study runs; shares are of the answers as they came, without the design's weights.",
                "survey.instruments.token_comparison.reports.live_report.ComparisonLive",
                while_it_runs=True,
            ),
        )

    # The study file

    def problems(self) -> Iterator[tuple[FieldPath, str]]:
        config, options = self.study.config, self.options
        if not options.generator:
            yield GENERATOR, "is missing: name what draws the other tokens, local:FOLDER or ngram:NAME"
            return
        for index, model in enumerate(config.models):
            source = passages.source_of(model)
            try:
                preparing.check_reads_tokens(source)
            except HunchError as exc:
                yield ("models", index, "source"), exc.message.removeprefix("models: ")
                return
        questions = filtered_questions(self.study)
        try:
            left = preparing.missing(options, questions)
            if left and preparing.is_quick(options.generator, len(left)):
                preparing.prepare(questions, options)
                left = []
            quick = [model for model in config.models if preparing.is_quick(model.source, len(questions))]
            if not left and quick:
                preparing.prepare(questions, options, quick)
        except HunchError as exc:
            yield GENERATOR, exc.message.removeprefix("instrument.options.generator: ")
            return
        if left:
            yield GENERATOR, preparing.not_prepared("the bank", len(left)).message

    def remarks(self) -> Sequence[Note]:
        remarks = []
        if not self.study.config.models:
            remarks.append(
                Note("models", "no language model is named: without one to check, the report shows no perplexity")
            )
        practised = sum(len(block.all_examples) for block in self.study.config.blocks if block.kind == "practice")
        if practised < PRACTISED:
            remarks.append(
                Note(
                    "blocks",
                    f"people see {practised} comparisons for practice: with {PRACTISED} and their rewards "
                    "they learn what "
                    "the scoring rule pays",
                )
            )
        if self.options.contexts_together:
            remarks.append(
                Note(
                    "instrument.options.contexts_together",
                    "who meets a context again has seen its true token: only first answers then say what people expect",
                )
            )
        return remarks

    # Items

    def contexts(self, questions: Sequence[Question]) -> dict[int, list[PreparedContext]]:
        """The prepared contexts of these questions."""
        return preparing.contexts_of(self.options, questions)

    def usable(self, questions: list[Question]) -> list[Question]:
        """Texts with something to compare. Where all draws are the true token nothing is asked."""
        there = self.contexts(questions) if self.options.generator else {}
        return [question for question in questions if any(context.drawn for context in there.get(question.pk, ()))]

    def universe_fingerprint(self) -> Any:
        return {"preparation": preparing.preparation_of(self.options)}

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        there = self.contexts(questions)
        rows = [
            (index, context.position, other.id, other.times, other.log_g)
            for index, question in enumerate(questions)
            for context in there.get(question.pk, ())
            for other in context.others
        ]
        return np.array(rows, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}@{int(row['position'])}/{int(row['other'])}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        there = {
            (key, context.position): (context, {other.id: other.text for other in context.others})
            for key, contexts in self.contexts(questions).items()
            for context in contexts
        }
        drawn = [there[questions[row["question"]].pk, int(row["position"])] for row in rows]
        TokenPair.objects.bulk_create(
            [
                TokenPair(
                    item=item,
                    question=questions[row["question"]],
                    context=context,
                    other_id=int(row["other"]),
                    other_text=texts[int(row["other"])],
                    multiplicity=int(row["times"]),
                    log_g_other=float(row["log_g"]),
                )
                for item, row, (context, texts) in zip(items, rows, drawn, strict=True)
            ],
            batch_size=2000,
        )

    # Screens and responses

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, self.options_for(assignment))

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        assignment = response.assignment
        left, percent = screens.true_is_left(assignment), int(cleaned["percent_left"])
        g_true = float(np.exp(assignment.slot.item.token_pair.context.log_g_true))
        reward = points(percent if left else 100 - percent, g_true=g_true)
        StatedChance.objects.create(
            response=response, percent_left=percent, true_is_left=left, reward=Decimal(f"{reward:.4f}")
        )

    def score(self, response: Response) -> Points | None:
        """The reward, in points of the panel's bonus; the endowment comes with the first answer of a sitting."""
        if response.screen != screens.COMPARE:
            return None
        assignment = response.assignment
        options = self.options_for(assignment)
        endowment = options.endowment if assignment.position == 1 else 0
        value = (response.stated_chance.reward + endowment) / options.points_per_bonus_point
        return Points(value.quantize(Decimal("0.0001")), REWARD_RULE, REWARD_VERSION)

    def answer_in_words(self, response: Response) -> str:
        if not hasattr(response, "stated_chance"):
            return ""
        stated = response.stated_chance
        return f"{stated.percent_left} % for A, {stated.percent_true} % for the true token"

    def answer_values(self, assignment: Assignment) -> list[Any]:
        stated = stated_of(assignment)
        return [] if stated is None else [stated.percent_left, stated.true_is_left]

    def counts_unfinished(self, assignment: Assignment) -> bool:
        """Anyone who left before reading which was true has answered."""
        return stated_of(assignment) is not None

    # Export

    def simulated_person(self, *, seed: int, null: bool = False) -> people.ComparingPerson:
        return people.ComparingPerson(study=self.study, ratios=self.options.ratios, seed=seed, null=null)


class ComparisonsTogether(Booklets):
    """A person may get several comparisons of a text. Otherwise it is one: one of a context, and one context of a text,
    since a longer context shows how a shorter one goes on."""

    def conflict_keys(self, row: np.void) -> tuple[Any, ...]:
        return (int(row["question"]), int(row["position"]), int(row["other"]))

    def conflict_keys_of(self, items: Sequence[Item]) -> list[tuple[Any, ...]]:
        pairs = TokenPair.objects.select_related("context").in_bulk([item.pk for item in items])
        return [(pair.question_id, pair.context.position, pair.other_id) for pair in (pairs[item.pk] for item in items)]
