"""What `hunch plan_budget` does with the file of a study of reading times."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.reports import ReportResult
from survey.figures import Column, Table, TableView
from survey.figures.words import integer
from survey.instruments.self_paced_reading.analysis.outlook import FIGURES, one_study
from survey.instruments.self_paced_reading.analysis.simulation import ReadingPlan, ReadingWorld
from survey.services.results.budget_files import BudgetFile, BudgetFileConfig, PeopleConfig, cost_lines, each_study
from survey.study_file import Strict

MAX_TIMES = 2_000_000  # of one simulated study
EIGHTY = 0.841621  # this many standard errors beyond the interval's half, 80 % of the studies find it
COLUMNS = (
    Column("policy", "text", "How many passages are read, by its name."),
    Column("passages", "number", "Passages that are read.", whole=True),
    Column("people", "number", "People who finish.", whole=True),
    Column("readers", "number", "People who read a passage, on average.", heading="readers each", digits=1),
    Column("mean_width", "number", "Width of the 95 % interval of the mean time, in milliseconds.", digits=1),
    Column("slope", "number", "Milliseconds per nat of this word's surprisal, on average.", digits=1),
    Column("slope_width", "number", "Width of its 95 % interval.", heading="width", digits=1),
    Column("detectable", "number", "Smallest slope of this word found with 80 % power, in milliseconds per nat."),
    Column("total_width", "number", "Width of the interval of the slope of this word and the two before it together."),
    Column("detectable_total", "number", "Smallest slope of all three together found with 80 % power."),
    Column("studies", "number", "Simulated studies.", whole=True),
)
SHOWN = ("policy", "passages", "readers", "mean_width", "slope", "slope_width", "detectable")


class ReadingPassages(Strict):
    passages: int = Field(ge=4, le=10_000)
    words: int = Field(default=30, ge=8, le=1000)


class ReadingTruth(Strict):
    slope: float = Field(default=12.0, ge=0, le=200)
    people_differ: float = Field(default=5.0, ge=0, le=100)
    passages_differ: float = Field(default=2.0, ge=0, le=100)
    noise: float = Field(default=90.0, gt=0, le=2000)


class ReadersShape(PeopleConfig):
    items: int = Field(default=10, ge=1, le=200)
    guessers: float = Field(default=0.06, ge=0, le=0.5)

    @model_validator(mode="after")
    def has_people(self) -> "ReadersShape":
        if self.complete < 8:
            raise ValueError("sittings: fewer than 8 people in all give no interval: add some")
        return self


class PassagePolicy(Strict):
    """So many of the bank's passages are read."""

    name: str = Field(min_length=1, max_length=60)
    passages: int = Field(ge=4, le=10_000)


class ReadingBudgetConfig(BudgetFileConfig):
    bank: ReadingPassages
    truth: ReadingTruth = ReadingTruth()
    study: ReadersShape
    policies: list[PassagePolicy] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "ReadingBudgetConfig":
        if len({policy.name for policy in self.policies}) != len(self.policies):
            raise ValueError("policies: two have the same name: make them differ")
        for policy in self.policies:
            if policy.passages > self.bank.passages:
                raise ValueError(
                    f"policies.{policy.name}.passages: {integer(policy.passages)} are more than the bank's "
                    f"{integer(self.bank.passages)}"
                )
            if policy.passages < self.study.items:
                raise ValueError(
                    f"policies.{policy.name}.passages: each person reads {self.study.items} different ones "
                    "(study.items), "
                    f"and there are {policy.passages}: raise it, or lower study.items"
                )
        if (times := self.study.complete * self.study.items * self.bank.words) > MAX_TIMES:
            raise ValueError(
                f"study.sittings: {integer(times)} times a study; at most {integer(MAX_TIMES)} are simulated: give "
                "fewer people"
            )
        return self

    @property
    def world(self) -> ReadingWorld:
        truth = self.truth
        return ReadingWorld(
            slopes=(truth.slope, truth.slope / 2, 0.0),
            person_slope_sd=truth.people_differ,
            passage_slope_sd=truth.passages_differ,
            noise_sd=truth.noise,
            guessers=self.study.guessers,
        )


@dataclass(frozen=True)
class ReadingBudget(BudgetFile[ReadingBudgetConfig]):
    """A file such as `studies/example-budget-reading.toml`."""

    config_class: ClassVar = ReadingBudgetConfig

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self.config.policies)

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        config = self.config
        table = Table(
            "reading_budget",
            "What the study would find",
            COLUMNS,
            [self._row(policy, jobs=jobs, progress=progress) for policy in config.policies],
            views=[TableView(SHOWN)],
            note="Milliseconds, and milliseconds per nat of surprisal. Widths are those of 95 % intervals.",
        )
        return ReportResult(
            title=config.title,
            lines=[
                f"{config.title}: {integer(config.studies)} simulated studies of each policy; "
                f"{integer(config.study.complete)} people read {config.study.items} passages of {config.bank.words} "
                "words each.",
                *cost_lines(self.costs),
            ],
            tables=[table],
            notes=[
                "Simulated people, passages and surprisals stand in for yours: compare the policies with each other."
            ],
            data={"lines": table.records()},
        )

    def _row(self, policy: PassagePolicy, *, jobs: int, progress: Callable[[], None]) -> list[Any]:
        config = self.config
        plan = ReadingPlan(config.study.complete, policy.passages, config.study.items, config.bank.words)
        work = partial(one_study, policy.name, config.world, plan, config.seed)
        estimates = np.array(each_study(work, config.studies, jobs=jobs, progress=progress)).reshape(
            -1, len(FIGURES), 3
        )
        whole = np.isfinite(estimates).all(axis=2)
        value, half, error = (
            np.array(
                [
                    estimates[whole[:, place], place, part].mean() if whole[:, place].any() else math.nan
                    for place in range(3)
                ]
            )
            for part in range(3)
        )
        detectable = half + EIGHTY * error
        readers = config.study.complete * config.study.items / policy.passages
        figures = (2 * half[0], value[1], 2 * half[1], detectable[1], 2 * half[2], detectable[2])
        known = [float(figure) if math.isfinite(figure) else None for figure in figures]
        return [policy.name, policy.passages, config.study.complete, readers, *known, config.studies]
