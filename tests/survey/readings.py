"""An instrument of the tests' own that asks nobody anything: how somebody reads a passage follows from passage and
person, so that every figure can be worked out again. It has what the belief update has not: features, a ratio, several
answers an item, and priorities.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from django.utils import timezone

from predictors.features import Features
from survey.contracts import instruments
from survey.contracts.exports import AnswerExport
from survey.contracts.instruments import (
    CONTRACT,
    AnswerPart,
    Baseline,
    Estimates,
    Learning,
    ListedInstrument,
    Metric,
    Options,
    Priority,
)
from survey.contracts.measures import SHARE, Estimands, Measure
from survey.models import Assignment, Item, Question, Response, Stage, Study
from survey.services.answers.conditions import draw_for_sitting
from survey.services.base.hashing import digest
from survey.services.stages import jobs, lifecycle
from tests import cast

ROW = np.dtype([("question", "<i4")])


def draws(*name: Any) -> np.random.Generator:
    """Numbers that are a fixed function of a name."""
    return np.random.default_rng(int(digest(list(name))[:12], 16))


def length_of(position: int) -> float:
    return float(draws("length", position).integers(3, 30))


def tries_of(position: int, person: int) -> float:
    return float(draws("tries", position, person).integers(0, 4))


def right_of(position: int, person: int) -> float:
    """How many of the tries are right: short passages are easier, and some people are better."""
    chance = np.clip(1.1 - length_of(position) / 30 + draws("person", person).normal(0, 0.1), 0.02, 0.98)
    return float(draws("right", position, person).binomial(int(tries_of(position, person)), chance))


def read_of(position: int, person: int) -> float:
    """Whether the passage was read to its end."""
    chance = np.clip(1 - length_of(position) / 35 + draws("person", person).normal(0, 0.15), 0.02, 0.98)
    return float(draws("read", position, person).random() < chance)


def answers_of(assignments: Sequence[Assignment]) -> Iterator[tuple[int, int]]:
    for assignment in assignments:
        yield int(assignment.slot.item.key), assignment.sitting.respondent_id


class ReadingOptions(Options):
    ratio: bool = False
    priority: Literal["", "length", "doubt", "rough"] = ""


class ReadingLearning(Learning):
    """The label is whether the passage was read, learnt from its length."""

    metrics = (Metric("brier", "Brier score", highest_first=False, chance="always saying a half has 0.25"),)
    parts = (AnswerPart("everything", "over everything"), AnswerPart("long", "over long passages", "long ones"))
    baselines = (Baseline("logistic", {}),)
    reads = "features"

    def inputs(self, *, rows: np.ndarray, questions: Sequence[Question]) -> Sequence[Features]:
        return [self._features(questions[row["question"]].position) for row in rows]

    def examples(self, assignments: Sequence[Assignment]) -> tuple[Sequence[Features], np.ndarray]:
        answers = list(answers_of(assignments))
        return [self._features(item) for item, _who in answers], np.array([read_of(*answer) for answer in answers])

    def evaluate(self, assignments: Sequence[Assignment], scores: np.ndarray, **how: Any) -> dict[str, Any]:
        return {"n": len(assignments), "brier": self._brier(assignments, scores)}

    def compare(
        self, assignments: Sequence[Assignment], scores: np.ndarray, others: np.ndarray, **how: Any
    ) -> dict[str, Any]:
        first, other = self._brier(assignments, scores), self._brier(assignments, others)
        cells = {
            part: {"difference": None if first[part] is None else first[part] - other[part], "interval": None}
            for part in first
        }
        return {"brier": cells}

    def _brier(self, assignments: Sequence[Assignment], scores: np.ndarray) -> dict[str, Any]:
        missed = (self.examples(assignments)[1] - scores) ** 2
        long = np.array([length_of(item) > 15 for item, _who in answers_of(assignments)], dtype=bool)
        return {"everything": float(missed.mean()), "long": float(missed[long].mean()) if long.any() else None}

    def _features(self, position: int) -> Features:
        return Features(numbers={"length": length_of(position)})


class ReadingEstimates(Estimates):
    units = {"read": SHARE}

    def __init__(self, ratio: bool) -> None:
        self.ratio = ratio

    def outcomes(self, assignments: Sequence[Assignment]) -> dict[str, np.ndarray]:
        return {"read": np.array([read_of(*answer) for answer in answers_of(assignments)])}

    def estimands(self, assignments: Sequence[Assignment], *, thresholds: Sequence[int] = ()) -> Estimands:
        answers = list(answers_of(assignments))
        right, tries = (
            np.array([right_of(*answer) for answer in answers]),
            np.array([tries_of(*answer) for answer in answers]),
        )
        read = Measure("read", "share read", "share", np.array([read_of(*answer) for answer in answers]))
        accuracy = Measure("accuracy", "right tries", "share", right, per=tries)
        return Estimands(measures=[accuracy, read] if self.ratio else [read, accuracy])

    def divisions(self, items: Sequence[Item]) -> dict[str, np.ndarray]:
        return {"length": np.array(["long" if length_of(int(item.key)) > 15 else "short" for item in items], dtype=str)}


class ByLength(Priority):
    """Long passages first; needs to know nothing else."""

    name = "length"
    version = "3"

    def of(
        self, *, rows: np.ndarray, questions: Sequence[Question], chances: Any, answers: Any, rng: Any
    ) -> np.ndarray:
        return np.array([length_of(questions[row["question"]].position) for row in rows])


class ByDoubt(Priority):
    """Where the predictor knows least, of which fewer answers are known."""

    name = "doubt"
    needs_predictor = True

    def of(
        self, *, rows: np.ndarray, questions: Sequence[Question], chances: Any, answers: Any, rng: Any
    ) -> np.ndarray:
        asked = {int(answer.slot.item.key) for answer in answers}
        known = np.array([questions[row["question"]].position in asked for row in rows])
        return np.asarray(-np.abs(chances - 0.5) - known)


class ByRoughly(Priority):
    """Three groups of many ties, whatever the length."""

    name = "rough"

    def of(self, *, rows: np.ndarray, questions: Sequence[Question], **_known: Any) -> np.ndarray:
        return np.array([float(questions[row["question"]].position % 3) for row in rows])


PRIORITIES: Mapping[str, Priority] = {"length": ByLength(), "doubt": ByDoubt(), "rough": ByRoughly()}


class Readings(ListedInstrument):
    export = AnswerExport()
    contract = CONTRACT
    name = "readings"
    title = "Readings"
    options_model = ReadingOptions

    @property
    def learning(self) -> Learning:
        return ReadingLearning()

    @property
    def priority(self) -> Priority | None:
        return None if self._study is None else PRIORITIES.get(self.options.priority)

    @property
    def estimates(self) -> Estimates:
        return ReadingEstimates(self._study is not None and self.options.ratio)

    def universe(self, questions: Sequence[Question]) -> np.ndarray:
        return np.array([(index,) for index in range(len(questions))], dtype=ROW)

    def item_key(self, row: np.void, questions: Sequence[Question]) -> str:
        return str(questions[row["question"]].position)

    def create_typed_items(self, *, items: Sequence[Item], rows: np.ndarray, questions: Sequence[Question]) -> None:
        """There is nothing but the key."""

    def next_screen(self, assignment: Assignment) -> None:
        return None

    def save(self, *, response: Response, cleaned: Mapping[str, Any]) -> None:
        """There is nothing to store."""

    def answer_values(self, assignment: Assignment) -> list[Any]:
        return [read_of(*next(answers_of([assignment])))]

    def simulated_person(self, *, seed: int, null: bool = False) -> Any:
        raise NotImplementedError


def make_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the instrument among those that there are."""
    monkeypatch.setitem(instruments._kinds, Readings.name, Readings)


def study(slug: str = "readings", *, questions: int = 80, **overrides: Any) -> Study:
    options = overrides.pop("options", {})
    bank = overrides.pop("on", None) or cast.small_bank(questions, name=f"bank-of-{slug}")
    return cast.small_study(slug, on=bank, instrument={"kind": Readings.name, "options": options}, **overrides)


def fill(stage: Stage, *, lose: int = 0, seed: int = 1) -> Stage:
    """Every booklet of an open stage is taken by a person of its own; `lose` slots stay without an answer."""
    now = timezone.now()
    slots = list(stage.slots.order_by("number"))
    lost = set(np.random.default_rng(seed).permutation(len(slots))[:lose].tolist())
    of_booklet = cast.seated(stage)
    for arrived, sitting in enumerate(of_booklet.values(), start=1):
        stage.arrivals = arrived
        draw_for_sitting(sitting, stage)
    Assignment.objects.bulk_create(
        Assignment(
            sitting=of_booklet[slot.booklet_id],
            slot=slot,
            position=slot.position,
            state="counted",
            assigned_at=now,
            completed_at=now,
        )
        for place, slot in enumerate(slots)
        if place not in lost
    )
    return stage


def run_stage(stage: Stage, *, lose: int = 0) -> Stage:
    """Open a stage, fill and close it, and do all that follows."""
    stage = lifecycle.open_stage(stage)
    fill(stage, lose=lose, seed=stage.index)
    jobs.run_inline(lifecycle.close_stage(stage))
    return cast.stage_of(stage.study, stage.index)
