"""Preferences as the core sees them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from bandit.errors import DesignError
from survey.contracts.instruments import (
    CONTRACT,
    REPEAT,
    Controls,
    Estimates,
    ListedInstrument,
    Options,
    Place,
)
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.contracts.reports import ReportEntry
from survey.contracts.screens import Screen
from survey.contracts.tables import Column
from survey.models import Assignment, Item, ModelAnswer, Question, Response
from survey.services.banks.eligibility import filtered_questions

from . import people, screens
from .models import Comparison, Judgement, Rating

ROW = np.dtype([("question", "<i4"), ("a", "i1"), ("b", "i1")])
SAME = "same"


class PreferenceOptions(Options):
    models: tuple[str, ...] = Field(default=(), min_length=2)
    questions: tuple[str, ...] = Field(default=("helpful", "truthful"), min_length=1)
    cannot_judge: bool = True
    reason: bool = False
    max_reply_characters: int = Field(default=8000, ge=1)

    @field_validator("models", "questions")
    @classmethod
    def differ(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("two of them are the same: name each once")
        return names


class PreferenceControls(Controls):
    """The same comparison with sides changed, and one reply twice."""

    kinds = (REPEAT, SAME)

    def __init__(self, instrument: "Preference") -> None:
        self._instrument = instrument

    def draw(self, *, kind: str, count: int, questions: Sequence[Question], rng: np.random.Generator) -> np.ndarray:
        if kind != SAME:
            return super().draw(kind=kind, count=count, questions=questions, rng=rng)
        replies = self._instrument.replies
        every = [
            (index, model, model) for index, question in enumerate(questions) for model in sorted(replies[question.pk])
        ]
        if count > len(every):
            raise DesignError(f"{count} controls with one reply twice, and there are {len(every)} replies")
        return np.array(every, dtype=ROW)[rng.choice(len(every), size=count, replace=False)]


class PreferenceEstimates(Estimates):
    units = {"first_better": SHARE}

    def __init__(self, scale: str) -> None:
        self._scale = scale

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        """1 where the first reply is better."""
        return {
            "first_better": np.array([float(given is not None and given <= 4) for given in self._given(assignments)])
        }

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        judged = np.array([given is not None for given in self._given(assignments)], dtype=bool)
        values = self.outcomes(assignments)["first_better"]
        return Estimands(
            [
                Measure("first_better", "share in which the first reply is better", "share", values, judged),
                Measure("judged", "share that could be judged", "share", judged.astype(np.float64)),
            ]
        )

    def estimand(self, *, universe_size: int, n_questions: int) -> str:
        return f"all {universe_size:,} pairs of replies to the bank's {n_questions:,} prompts"

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return {"category": np.array([item.comparison.question.task.name for item in items], dtype=str)}

    def _given(self, assignments: Sequence[Assignment]) -> list[int | None]:
        return [ratings_of(assignment).get(self._scale) for assignment in assignments]


class Preference(ListedInstrument):
    contract = CONTRACT
    name = "preference"
    title = "Preference"
    options_model = PreferenceOptions
    columns = (
        Column("prompt_id", "text", "Id of the prompt."),
        Column("model_a", "text", "The model that wrote reply A."),
        Column("model_b", "text", "The model that wrote reply B."),
        Column("first", "a or b", "Which of them was shown as reply 1."),
        Column("cannot_judge", "0 or 1", "1: the person could not judge."),
        Column("given", "JSON object", "The place on each scale, 1 to 8, as given."),
        Column("towards_a", "JSON object", "The same towards A, -3.5 to 3.5."),
        Column("reason", "text", "Why, as it was written."),
    )

    @property
    def controls(self) -> PreferenceControls:
        return PreferenceControls(self)

    @property
    def estimates(self) -> PreferenceEstimates:
        return PreferenceEstimates("" if self._study is None else self.options.questions[0])

    def reports(self) -> Sequence[ReportEntry]:
        path = "preference_skeleton.report.Preferences"
        return (ReportEntry("preferences", "Preferences", "Whose replies are preferred.", path),)

    @cached_property
    def replies(self) -> dict[int, dict[int, int]]:
        """Of each prompt, the replies of the study's models: prompt to place in `models` to reply, by primary key."""
        place = {model: index for index, model in enumerate(self.options.models)}
        found: dict[int, dict[int, int]] = {}
        rows = ModelAnswer.objects.filter(question__bank=self.study.bank_id, language_model__name__in=place)
        for pk, question, model in rows.exclude(response="").values_list("pk", "question", "language_model__name"):
            found.setdefault(question, {})[place[model]] = pk
        return found

    def problems(self) -> Iterable[tuple[Place, str]]:
        known = {model for replies in self.replies.values() for model in replies}
        for index, model in enumerate(self.options.models):
            if index not in known:
                yield (
                    ("instrument", "options", "models"),
                    f"{model} has no reply to this bank: import_replies adds them",
                )
        if not self.usable(filtered_questions(self.study)):
            yield ("bank",), "no prompt has two replies to compare"

    def usable(self, questions: list[Question]) -> list[Question]:
        return [question for question in questions if len(self.replies.get(question.pk, ())) > 1]

    def drawn_by(self) -> Any:
        positions = dict(self.study.bank.questions.values_list("pk", "position"))
        found = sorted([positions[question], sorted(replies)] for question, replies in self.replies.items())
        return [list(self.options.models), found]

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        every = [
            (index, *pair)
            for index, question in enumerate(questions)
            for pair in combinations(sorted(self.replies[question.pk]), 2)
        ]
        return np.array(every, dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return f"{questions[row['question']].position}:{int(row['a'])}-{int(row['b'])}"

    def conflict_keys(self, row: np.void) -> tuple[int, ...]:
        return (int(row["question"]),)

    def conflict_keys_of(self, items: Sequence[Item]) -> list[tuple[int, ...]]:
        found = Comparison.objects.in_bulk([item.pk for item in items])
        return [(found[item.pk].question_id,) for item in items]

    def questions_of(self, items: Sequence[Item]) -> list[tuple[Question, ...]]:
        found = Comparison.objects.select_related("question").in_bulk([item.pk for item in items])
        return [(found[item.pk].question,) for item in items]

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        made = []
        for item, row in zip(items, rows, strict=True):
            question = questions[row["question"]]
            replies = self.replies[question.pk]
            made.append(
                Comparison(item=item, question=question, a_id=replies[int(row["a"])], b_id=replies[int(row["b"])])
            )
        Comparison.objects.bulk_create(made)

    def next_screen(self, assignment: Assignment) -> Screen | None:
        return screens.next_screen(assignment, self.options_for(assignment))

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        cannot = cleaned.get("cannot_judge", False)
        judgement = Judgement.objects.create(
            response=response,
            a_first=screens.a_is_first(response.assignment),
            cannot_judge=cannot,
            reason=cleaned.get("reason", ""),
        )
        if not cannot:
            Rating.objects.bulk_create(
                [
                    Rating(judgement=judgement, scale=scale, given=int(cleaned[scale]))
                    for scale in self.options.questions
                ]
            )

    def answer_values(self, assignment: Assignment) -> list[Any]:
        judgement = judgement_of(assignment)
        return [] if judgement is None else [judgement.a_first, judgement.cannot_judge, ratings_of(assignment)]

    def export_values(self, assignment: Assignment) -> list[Any]:
        comparison, judgement = assignment.slot.item.comparison, judgement_of(assignment)
        facts = [
            comparison.question.external_id,
            comparison.a.language_model.name,
            comparison.b.language_model.name,
        ]
        if judgement is None:
            return [*facts, *[None] * 5]
        given = {rating.scale: rating.given for rating in judgement.ratings.all()}
        towards = {rating.scale: rating.towards_a for rating in judgement.ratings.all()}
        return [
            *facts,
            *("a" if judgement.a_first else "b", int(judgement.cannot_judge), given, towards, judgement.reason or None),
        ]

    def prefetch(self) -> Sequence[str]:
        return (
            "responses__judgement__ratings",
            "slot__item__comparison__question__task",
            "slot__item__comparison__a__language_model",
            "slot__item__comparison__b__language_model",
        )

    def simulated_person(self, *, seed: int, null: bool = False) -> people.Judge:
        return people.Judge(scales=self.options.questions, seed=seed)


def judgement_of(assignment: Assignment) -> Judgement | None:
    given = (response.judgement for response in assignment.responses.all() if hasattr(response, "judgement"))
    return next(given, None)


def ratings_of(assignment: Assignment) -> dict[str, int]:
    """The place on each scale, as given; none where nobody could judge."""
    judgement = judgement_of(assignment)
    return {} if judgement is None else {rating.scale: rating.given for rating in judgement.ratings.all()}
