"""Preferences as the core sees them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from django.db.models import QuerySet
from django.db.models.functions import Length

from survey.contracts.instruments import (
    CONTRACT,
    Demonstration,
    FieldPath,
    LabelReading,
    ListedInstrument,
    Priority,
    ScoresAgain,
    StoredVerdicts,
)
from survey.contracts.item_rows import ItemRows
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Screen
from survey.figures.words import integer
from survey.models import Assignment, Bank, Item, ModelAnswer, Question, Response
from survey.services.banks.eligibility import filtered_questions
from survey.study_file import Note

from . import export, people, screens
from .capabilities import ROW, Information, PreferenceControls, PreferenceSignals, replies_of
from .estimands import PreferenceEstimates
from .expecting import PreferenceExpecting
from .export import PreferenceExport
from .label_queries import read_judgements
from .labels import judgement_of
from .models import ReplyComparison, ReplyJudgement
from .options import PreferenceOptions
from .practice import PreferencePractice
from .verdicts import read_again

MODELS: FieldPath = ("instrument", "options", "models")
MAX_IDS_IN_MESSAGE = 5
"""Ids that a remark names."""
REPORTS = (
    ReportEntry(
        name="preferences",
        title="Preferences",
        summary="The models ranked by people and by judges, win shares, agreement, side bias, judges against people.",
        opening="Whose replies people prefer: the ranking of the models, and how often each was preferred to each "
        "other one. Strengths are in logits, where 0 is the mean of all models; where the interval of a share "
        "holds 50 %, people may like both alike.",
        path="survey.instruments.preference.reports.preferences_report.PreferencesReport",
    ),
    ReportEntry(
        name="preferences_live",
        title="Preferences so far",
        summary="Answers by pair of models, the ranking so far, and how people use the scale.",
        opening="Which replies are preferred while judgements come in, and how people use the scale. It shows how the "
        "study runs, and can change with every judgement.",
        path="survey.instruments.preference.reports.live_report.PreferencesLiveReport",
        while_it_runs=True,
    ),
    ReportEntry(
        name="preferences_budget",
        title="Budget",
        summary="How precisely the study as it is planned would rank its models, and what it costs; by simulation.",
        opening="How precisely the study as it is planned would rank its models, from simulated people. Narrower "
        "intervals are better: compare designs with each other, and take single numbers as a guide.",
        path="survey.instruments.preference.reports.budget_report.PreferencesBudgetReport",
    ),
)


class Preference(ListedInstrument):
    """A prompt with two models' replies; every pair of models that answered a prompt is an item."""

    contract = CONTRACT
    name = "preference"
    title = "Preference"
    options_model = PreferenceOptions
    rows = ItemRows(
        item="comparison",
        questions=("question",),
        answers=("judgement",),
        shown=("a", "b"),
        of_assignment=("slot__repeat_of",),
        labelled=("a__language_model", "b__language_model"),
        outcomes_read_items=False,
    )
    signals = PreferenceSignals()
    budget_planner = "survey.instruments.preference.reports.budget.PreferenceBudget"
    demonstration = Demonstration(
        "example-preference.toml",
        "survey.instruments.preference.starter.load_starter_prompts",
        "survey.instruments.preference.demonstration.verdict_on",
        bank="starter-prompts",
    )

    @cached_property
    def controls(self) -> PreferenceControls:
        return PreferenceControls(self)

    @cached_property
    def estimates(self) -> PreferenceEstimates:
        return PreferenceEstimates(() if self._study is None else self.options.models)

    @cached_property
    def practice(self) -> PreferencePractice:
        return PreferencePractice(lambda sitting: self.options_under(sitting.config, sitting.levels()))

    @cached_property
    def expectations(self) -> PreferenceExpecting:
        return PreferenceExpecting(self._study, None if self._study is None else self.options)

    @property
    def label_reading(self) -> "PreferenceLabelReading":
        return PreferenceLabelReading(self.rows)

    @property
    def verdicts(self) -> "JudgesScores":
        return JudgesScores()

    @property
    def export(self) -> PreferenceExport:
        return PreferenceExport(self._study, () if self._study is None else self.options.models)

    @cached_property
    def priority(self) -> Priority | None:
        if self._study is not None and self.options.priority == "none":
            return None
        return Information(self)

    def reports(self) -> Sequence[ReportEntry]:
        return REPORTS

    # Items

    @cached_property
    def replies(self) -> dict[int, dict[int, int]]:
        """Of each prompt, the replies of the study's models: prompt to place in `models` to reply, by primary key."""
        return replies_of(self.study.bank_id, self.options.models)

    def problems(self) -> Iterator[tuple[FieldPath, str]]:
        questions = filtered_questions(self.study)
        there = {model for question in questions for model in self.replies.get(question.pk, ())}
        for index, model in enumerate(self.options.models):
            if index not in there:
                yield (
                    MODELS,
                    f"{model} has no reply to the prompts of {self.study.bank}: "
                    "`hunch collect_answers` or `hunch import_replies` adds them",
                )
        if not self.usable(questions):
            yield ("bank",), "no prompt has replies of two of the models to compare"
        if self.options.long_replies == "refuse":
            yield from self._too_long()
        for index, stage in enumerate(self.study.config.stages):
            wanted, asked = self.options.responses_per_item, stage.responses_per_item
            if wanted not in (None, asked):
                yield (
                    ("stages", index, "responses_per_item"),
                    f"{asked} people are to judge each comparison, and [instrument.options] says {wanted}: write "
                    f"responses_per_item = {wanted} in the stage",
                )

    def _too_long(self) -> Iterator[tuple[FieldPath, str]]:
        most = self.options.max_reply_characters
        longer = self._shown().annotate(characters=Length("response")).filter(characters__gt=most)
        if count := longer.count():
            ids = ", ".join(
                f"{reply.question.external_id} by {reply.language_model}" for reply in longer[:MAX_IDS_IN_MESSAGE]
            )
            more = ", ..." if count > MAX_IDS_IN_MESSAGE else ""
            yield (
                ("instrument", "options", "max_reply_characters"),
                f"{count} replies have more than {integer(most)} characters ({ids}{more}): raise it, or set "
                'long_replies = "cut"',
            )

    def _shown(self) -> "QuerySet[ModelAnswer]":
        """The replies that items can show."""
        keys = {question.pk for question in filtered_questions(self.study)}
        replies = [reply for question, own in self.replies.items() if question in keys for reply in own.values()]
        rows = ModelAnswer.objects.filter(
            question__bank=self.study.bank_id, language_model__name__in=self.options.models
        )
        rows = rows.select_related("question", "language_model").order_by("question__position", "language_model")
        return rows.filter(pk__in=replies) if len(replies) < 500 else rows.exclude(response="")

    def remarks(self) -> list[Note]:
        return [Note(".".join(map(str, place)), message) for place, message in self._remarks()]

    def _remarks(self) -> Iterator[tuple[FieldPath, str]]:
        questions = {question.pk: question for question in filtered_questions(self.study)}
        names, empty = self.options.models, self._empty()
        for index, model in enumerate(names):
            lacking = sum(index not in self.replies.get(key, ()) for key in questions)
            if 0 < lacking < len(questions):
                yield (
                    MODELS,
                    f"{model} has no reply to {lacking} of {len(questions)} prompts"
                    + (f", {empty[model]} of them empty" if empty.get(model) else "")
                    + "; these are left out for it",
                )
        named: dict[str, list[str]] = {}
        for answer in self._shown().iterator(2000):
            model = answer.language_model.name
            if re.search(rf"(?<!\w){re.escape(model)}(?!\w)", answer.response, re.IGNORECASE):
                named.setdefault(model, []).append(answer.question.external_id)
        for model, ids in sorted(named.items()):
            more = f" and {len(ids) - MAX_IDS_IN_MESSAGE} more" if len(ids) > MAX_IDS_IN_MESSAGE else ""
            yield (
                MODELS,
                f"{len(ids)} replies of {model} name it ({', '.join(ids[:MAX_IDS_IN_MESSAGE])}{more}): people could "
                "tell who wrote them",
            )

    def _empty(self) -> dict[str, int]:
        rows = ModelAnswer.objects.filter(
            question__bank=self.study.bank_id, language_model__name__in=self.options.models, response=""
        )
        counts: dict[str, int] = {}
        for name in rows.values_list("language_model__name", flat=True):
            counts[name] = counts.get(name, 0) + 1
        return counts

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if len(self.replies.get(question.pk, ())) > 1]

    def universe_fingerprint(self) -> Any:
        positions = dict(self.study.bank.questions.values_list("pk", "position"))
        drawn = sorted([positions[question], sorted(replies)] for question, replies in self.replies.items())
        return [list(self.options.models), drawn]

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        every = [
            (index, *pair)
            for index, question in enumerate(questions)
            for pair in combinations(sorted(self.replies[question.pk]), 2)
        ]
        return np.array(every, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}:{int(row['a'])}-{int(row['b'])}"

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        made = []
        for item, row in zip(items, rows, strict=True):
            question = questions[row["question"]]
            replies = self.replies[question.pk]
            made.append(
                ReplyComparison(item=item, question=question, a_id=replies[int(row["a"])], b_id=replies[int(row["b"])])
            )
        ReplyComparison.objects.bulk_create(made)

    # Screens and typed responses

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, self.options_for(assignment))

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        questions = self.options.questions
        cannot = bool(cleaned.get("cannot_judge"))
        places = {} if cannot else {name: int(cleaned[name]) for name in questions}
        ReplyJudgement.objects.create(
            response=response,
            a_first=screens.a_is_first(response.assignment),
            cannot_judge=cannot,
            place=places.get(questions[0]),
            places=places,
            reason=(cleaned.get("reason") or "").strip(),
        )

    def answer_in_words(self, response: Response) -> str:
        return export.in_words(response.judgement) if hasattr(response, "judgement") else ""

    def answer_values(self, assignment: Assignment) -> list[Any]:
        judgement = judgement_of(assignment)
        if judgement is None:
            return []
        return [judgement.a_first, judgement.cannot_judge, judgement.places, judgement.reason]

    # Export

    # Simulation

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Judge:
        options = self.options
        return people.Judge(
            study=self.study,
            models=options.models,
            scales=options.questions,
            characters=options.max_reply_characters,
            seed=seed,
            null=null,
        )


class PreferenceLabelReading(LabelReading):
    def read(self, items: Sequence[Item], answers: Sequence[Assignment]) -> None:
        super().read(items, ())
        read_judgements(answers)


class JudgesScores(StoredVerdicts):
    """Judges' scores decide no draw, so that no planned study rests on them."""

    def read_scores_again(self, bank: Bank, *, write: bool) -> ScoresAgain:
        return read_again(bank, write=write)
