"""What `hunch plan_budget` does with the file of a next-token study."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.budget_files import BudgetConfig, PriorityPolicyConfig, WholeItemsConfig
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

from ..analysis.simulation import GuessPlan, GuessWorld, study

MAX_TOKENS = 100_000  # of a simulated bank


class PassageShape(Strict):
    passages: int = Field(ge=4, le=20_000)
    runs: int = Field(default=1, ge=1, le=100)


class GuessingShape(WholeItemsConfig):
    items: int = Field(default=5, ge=1, le=200)
    responses_per_item: int = Field(default=5, ge=1, le=1000)
    run: int = Field(default=20, ge=4, le=200)
    minutes: float = Field(default=12, gt=0, le=600)

    units = "runs"
    fewest = 4


class NextTokenBudgetConfig(BudgetConfig):
    bank: PassageShape
    study: GuessingShape
    policies: list[PriorityPolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "NextTokenBudgetConfig":
        bank, study = self.bank, self.study
        runs = bank.passages * bank.runs
        if runs * study.run > MAX_TOKENS:
            raise ValueError(
                f"bank: passages x runs x run is {integer(runs * study.run)} tokens, and at most "
                f"{integer(MAX_TOKENS)} are simulated: give fewer passages"
            )
        if max(study.drawn) > runs:
            raise ValueError(
                f"study: a stage draws {integer(max(study.drawn))} runs and the bank has {integer(runs)}: add "
                "passages, or raise responses_per_item"
            )
        if study.items > bank.passages:
            raise ValueError(
                f"study: items is {study.items} and the bank has {bank.passages} passages, of which a person meets "
                "each once: add passages, or lower items"
            )
        return self


class NextTokenBudget(BudgetPlanner[NextTokenBudgetConfig, GuessPlan]):
    """A file such as `studies/example-budget-next-token.toml`."""

    config_model = NextTokenBudgetConfig
    randomness = "next-token budget"
    columns = (
        Column("policy", "text", "How runs are drawn from stage 2 on."),
        BudgetColumn("share", "share", "Guesses that are right, on average.", heading="right"),
        BudgetColumn("width", "number", "Width of its 95 % interval.", style="points", width_of="share"),
        BudgetColumn(
            "width_difference",
            "number",
            "Width of the interval of people less a model.",
            style="points",
            width_of="difference",
        ),
        BudgetColumn(
            "width_together",
            "number",
            "Width of the interval of the most frequent guess; needs 5 people per run.",
            heading="of the most frequent",
            style="points",
            width_of="together",
        ),
        STUDIES,
        BudgetColumn(
            "detectable",
            "number",
            "Smallest difference of people and a model found with 80 % power.",
            style="points",
            detectable_of="difference",
        ),
    )

    @property
    def plans(self) -> Sequence[StudyPlan[GuessPlan]]:
        bank, study = self.config.bank, self.config.study
        return [
            StudyPlan(
                policy.name,
                GuessPlan(
                    passages=bank.passages,
                    runs=bank.runs,
                    tokens=study.run,
                    drawn=study.drawn,
                    responses=study.responses_per_item,
                    items=study.items,
                    design=policy.build() if policy.priority else None,
                    priority=policy.priority,
                ),
            )
            for policy in self.config.policies
        ]

    @property
    def sizes(self) -> str:
        bank, study = self.config.bank, self.config.study
        runs = integer(sum(study.drawn))
        return f"{integer(bank.passages)} passages, {runs} runs of {study.run} tokens drawn"

    @staticmethod
    def simulate(plan: GuessPlan, rng: np.random.Generator) -> Simulated:
        figures = study(GuessWorld(), plan, rng=rng)
        return {"share": figures.people, "difference": figures.difference, "together": figures.together}
