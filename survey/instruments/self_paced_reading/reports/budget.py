"""What `hunch plan_budget` does with the file of a study of reading times."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.budget_files import BudgetConfig, NamedPlan, PeopleConfig
from survey.contracts.budgets import (
    STUDIES,
    BudgetColumn,
    BudgetPlanner,
    Simulated,
    StudyPlan,
)
from survey.figures import Column, Figure, TableView
from survey.figures.words import integer
from survey.study_file import Strict

from ..analysis.simulation import ReadingPlan, ReadingWorld, study

MAX_TIMES = 2_000_000  # of one simulated study


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


class PassagePolicy(NamedPlan):
    """So many of the bank's passages are read."""

    passages: int = Field(ge=4, le=10_000)


class ReadingBudgetConfig(BudgetConfig):
    bank: ReadingPassages
    truth: ReadingTruth = ReadingTruth()
    study: ReadersShape
    policies: list[PassagePolicy] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "ReadingBudgetConfig":
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


class ReadingBudget(BudgetPlanner[ReadingBudgetConfig, tuple[ReadingWorld, ReadingPlan]]):
    """A file such as `studies/example-budget-reading.toml`."""

    config_model = ReadingBudgetConfig
    randomness = "reading budget"
    table = "reading_budget"
    columns = (
        Column("policy", "text", "How many passages are read, by its name."),
        BudgetColumn(
            "passages", "number", "Passages that are read.", whole=True, of=lambda outlook: outlook.setting[1].passages
        ),
        BudgetColumn(
            "people", "number", "People who finish.", whole=True, of=lambda outlook: outlook.setting[1].people
        ),
        BudgetColumn("readers", "number", "People who read a passage, on average.", heading="readers each", digits=1),
        BudgetColumn(
            "mean_width",
            "number",
            "Width of the 95 % interval of the mean time, in milliseconds.",
            digits=1,
            width_of="time",
        ),
        BudgetColumn("slope", "number", "Milliseconds per nat of this word's surprisal, on average.", digits=1),
        BudgetColumn(
            "slope_width", "number", "Width of its 95 % interval.", heading="width", digits=1, width_of="slope"
        ),
        BudgetColumn(
            "detectable",
            "number",
            "Smallest slope of this word found with 80 % power, in milliseconds per nat.",
            detectable_of="slope",
        ),
        BudgetColumn(
            "total_width",
            "number",
            "Width of the interval of the slope of this word and the two before it together.",
            width_of="total",
        ),
        BudgetColumn(
            "detectable_total",
            "number",
            "Smallest slope of all three together found with 80 % power.",
            detectable_of="total",
        ),
        STUDIES,
    )
    views = (TableView(("policy", "passages", "readers", "mean_width", "slope", "slope_width", "detectable")),)
    note = "Milliseconds, and milliseconds per nat of surprisal. Widths are those of 95 % intervals."

    @property
    def plans(self) -> Sequence[StudyPlan[tuple[ReadingWorld, ReadingPlan]]]:
        people, items, words = self.config.study.complete, self.config.study.items, self.config.bank.words
        return [
            StudyPlan(policy.name, (self.config.world, ReadingPlan(people, policy.passages, items, words)))
            for policy in self.config.policies
        ]

    @property
    def sizes(self) -> str:
        study = self.config.study
        return f"{integer(study.complete)} people read {study.items} passages of {self.config.bank.words} words each"

    @staticmethod
    def simulate(plan: tuple[ReadingWorld, ReadingPlan], rng: np.random.Generator) -> Simulated:
        world, reading = plan
        figures = study(world, reading, rng=rng)
        slope = figures["slope of this word"]
        return {
            "readers": reading.people * reading.each / reading.passages,
            "time": figures["mean time"],
            "slope": slope if slope.interval else Figure(),
            "total": figures["slope of all together"],
        }
