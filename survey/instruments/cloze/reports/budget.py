"""What `hunch plan_budget` does with the file of a cloze study."""

import math
from collections.abc import Sequence

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.budget_files import BudgetConfig, PriorityPolicyConfig, SharedItemsConfig
from survey.contracts.budgets import (
    STUDIES,
    BudgetColumn,
    BudgetPlanner,
    Simulated,
    StudyPlan,
)
from survey.figures import Column
from survey.figures.words import integer
from survey.study_file import Strict

from ..analysis.simulation import ClozePlan, ClozeWorld, study

MAX_POSITIONS = 20_000  # of a simulated bank
SPLITS = 4
SAMPLES = 200


class SentenceShape(Strict):
    sentences: int = Field(ge=4, le=MAX_POSITIONS)
    positions: int = Field(default=6, ge=1, le=100)

    @model_validator(mode="after")
    def can_be_simulated(self) -> "SentenceShape":
        if self.sentences * self.positions > MAX_POSITIONS:
            raise ValueError(
                f"sentences x positions: at most {integer(MAX_POSITIONS)} are simulated: give fewer sentences"
            )
        return self


class WritingShape(SharedItemsConfig):
    items: int = Field(default=20, ge=1, le=200)
    responses_per_item: int = Field(default=25, ge=1, le=1000)
    smoothing: float = Field(default=1.0, gt=0, le=100)

    units = "positions"
    fewest = 4


class ClozeBudgetConfig(BudgetConfig):
    bank: SentenceShape
    study: WritingShape
    policies: list[PriorityPolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "ClozeBudgetConfig":
        positions = self.bank.sentences * self.bank.positions
        if max(self.study.drawn) > positions:
            raise ValueError(
                f"study: a stage asks for {integer(max(self.study.drawn))} positions and the bank has "
                f"{integer(positions)}: add sentences, or raise responses_per_item"
            )
        return self


class ClozeBudget(BudgetPlanner[ClozeBudgetConfig, ClozePlan]):
    """A file such as `studies/example-budget-cloze.toml`."""

    config_model = ClozeBudgetConfig
    randomness = "cloze budget"
    table = "cloze_budget"
    columns = (
        Column("plan", "text", "How the answers are spent."),
        BudgetColumn("positions", "number", "Positions with answers, on average.", digits=0),
        BudgetColumn(
            "answers",
            "number",
            "Answers at a position in each stage that draws it.",
            whole=True,
            of=lambda outlook: outlook.setting.responses,
        ),
        BudgetColumn(
            "people", "number", "People that all stages need.", whole=True, of=lambda outlook: outlook.setting.people
        ),
        BudgetColumn(
            "pnc", "number", "PNC of a model that gives what people expect, with an error of 1 nat.", digits=3
        ),
        BudgetColumn("width", "number", "Width of its 95 % interval.", digits=3, width_of="pnc"),
        BudgetColumn(
            "width_difference",
            "number",
            "Width of the interval of its difference to a model with an error of 2 nats.",
            width_of="difference",
        ),
        BudgetColumn(
            "width_surprisal",
            "number",
            "Width of the interval of people's mean surprisal, in nats.",
            digits=3,
            width_of="surprisal",
        ),
        BudgetColumn(
            "ceiling", "number", "The highest PNC to be expected, by the reliability of people's surprisal.", digits=3
        ),
        STUDIES,
        BudgetColumn(
            "detectable",
            "number",
            "Smallest difference of PNC between two models found with 80 % power.",
            digits=3,
            detectable_of="difference",
        ),
    )

    @property
    def plans(self) -> Sequence[StudyPlan[ClozePlan]]:
        bank, study = self.config.bank, self.config.study
        return [
            StudyPlan(
                policy.name,
                ClozePlan(
                    sentences=bank.sentences,
                    positions=bank.positions,
                    drawn=study.drawn,
                    responses=study.responses_per_item,
                    design=policy.build() if policy.priority else None,
                    priority=policy.priority,
                    smoothing=study.smoothing,
                    items=study.items,
                ),
            )
            for policy in self.config.policies
        ]

    @property
    def sizes(self) -> str:
        bank = self.config.bank
        return f"{integer(bank.sentences)} sentences with {bank.positions} positions each"

    @staticmethod
    def simulate(plan: ClozePlan, rng: np.random.Generator) -> Simulated:
        figures = study(ClozeWorld(), plan, rng=rng, splits=SPLITS, samples=SAMPLES)
        (difference,) = figures.differences.values()
        return {
            "positions": figures.positions,
            "pnc": figures.pnc["near"],
            "difference": difference,
            "surprisal": figures.mean,
            "ceiling": math.nan if figures.reliability is None else math.sqrt(min(figures.reliability, 1.0)),
        }
