"""What `hunch plan_budget` does with the file of a study of comparisons."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.budget_files import BudgetConfig, NamedPlan, WholeItemsConfig
from survey.contracts.budgets import (
    STUDIES,
    BudgetColumn,
    BudgetPlanner,
    PlanOutlook,
    Simulated,
    StudyPlan,
    mean_of,
)
from survey.figures import Column, Figure
from survey.figures.words import integer
from survey.study_file import Strict

from ..analysis.loss import estimate
from ..analysis.simulation import TokenPlan, TokenWorld, study

MAX_DRAWS = 100_000  # tokens that one simulated study draws
SAMPLES = 200


class TextShape(Strict):
    texts: int = Field(ge=4, le=20_000)


class PeopleTruth(Strict):
    """distance: how far people are from the generator, in nats of each token's logarithm; people_differ and
    answers_differ: noise in their log odds; rounded: whether they choose from eleven chances."""

    distance: float = Field(default=0.5, ge=0, le=5)
    people_differ: float = Field(default=0.1, ge=0, le=5)
    answers_differ: float = Field(default=0.3, ge=0, le=5)
    rounded: bool = True


class ComparingShape(WholeItemsConfig):
    items: int = Field(default=16, ge=1, le=200)


class ContextPlan(NamedPlan):
    contexts_per_text: int = Field(default=1, ge=1, le=20)
    draws: int = Field(default=40, ge=2, le=1000)


class ComparisonBudgetConfig(BudgetConfig):
    bank: TextShape
    truth: PeopleTruth = PeopleTruth()
    study: ComparingShape
    plans: list[ContextPlan] = Field(min_length=1, max_length=12)

    compared = "plans"
    each = "plan"

    @model_validator(mode="after")
    def plans_can_be_simulated(self) -> "ComparisonBudgetConfig":
        if self.study.items > self.bank.texts:
            raise ValueError(
                f"study: items is {self.study.items} and the bank has {self.bank.texts} texts, of which a person "
                "meets each once: add texts, or lower items"
            )
        for plan in self.plans:
            drawn = self.bank.texts * plan.contexts_per_text * plan.draws
            if drawn > MAX_DRAWS:
                raise ValueError(
                    f"plans: {plan.name}: texts x contexts_per_text x draws is {integer(drawn)}, and at most "
                    f"{integer(MAX_DRAWS)} are simulated: give fewer texts, contexts or draws"
                )
            if self.asked > drawn:
                raise ValueError(
                    f"plans: {plan.name}: people answer {integer(self.asked)} comparisons and only {integer(drawn)} "
                    "are drawn: raise draws or responses_per_item"
                )
        return self

    @property
    def asked(self) -> int:
        """Comparisons that all stages draw."""
        return sum(self.study.drawn)

    @property
    def world(self) -> TokenWorld:
        truth = self.truth
        return TokenWorld(
            distance=truth.distance,
            person_sd=truth.people_differ,
            answer_sd=truth.answers_differ,
            rounded=truth.rounded,
        )


def cover(outlook: PlanOutlook[Any]) -> float | None:
    """The share of the studies whose interval holds the mean truth."""
    truth = outlook.mean("truth") or 0.0
    return mean_of(figure.holds(truth) for figure in outlook.figures("estimate") if figure.interval)


class ComparisonBudget(BudgetPlanner[ComparisonBudgetConfig, tuple[TokenWorld, TokenPlan]]):
    """A file such as `studies/example-budget-token-comparison.toml`."""

    config_model = ComparisonBudgetConfig
    randomness = "token comparison budget"
    table = "plans"
    columns = (
        Column("plan", "text", "How contexts and draws are made."),
        BudgetColumn("contexts", "number", "Contexts with a figure, on average.", digits=0),
        BudgetColumn("answers", "number", "Answers, on average.", digits=0),
        BudgetColumn(
            "truth", "number", "People's loss less the generator's, as it is in the simulated world, in nats."
        ),
        BudgetColumn("estimate", "number", "The mean estimate of it.", digits=3),
        BudgetColumn("width", "number", "Width of its 95 % interval, in nats.", digits=3, width_of="estimate"),
        BudgetColumn(
            "cover", "share", "Studies whose interval holds the truth.", heading="holds the truth", digits=0, of=cover
        ),
        STUDIES,
        BudgetColumn(
            "detectable",
            "number",
            "Smallest difference from the generator's loss found with 80 % power, in nats.",
            detectable_of="estimate",
        ),
    )
    notes = (
        *BudgetPlanner.notes,
        "Where the mean estimate is far from the truth, the interval is not one for the truth.",
    )

    @property
    def plans(self) -> Sequence[StudyPlan[tuple[TokenWorld, TokenPlan]]]:
        config = self.config
        return [
            StudyPlan(
                plan.name,
                (
                    config.world,
                    TokenPlan(
                        texts=config.bank.texts,
                        contexts=plan.contexts_per_text,
                        draws=plan.draws,
                        people=config.study.complete,
                        asked=config.asked,
                        responses=config.study.responses_per_item,
                    ),
                ),
            )
            for plan in config.plans
        ]

    @property
    def sizes(self) -> str:
        return f"{integer(self.config.bank.texts)} texts, {integer(self.config.asked)} comparisons asked"

    @staticmethod
    def simulate(plan: tuple[TokenWorld, TokenPlan], rng: np.random.Generator) -> Simulated:
        world, sizes = plan
        made = study(world, sizes, rng=rng)
        loss = estimate(made.comparisons, made.answers, rng=rng, samples=SAMPLES)
        has_interval = loss is not None and loss.interval is not None
        return {
            "contexts": loss.contexts if loss is not None and has_interval else 0,
            "answers": len(made.answers),
            "truth": float(made.true.mean()),
            "estimate": Figure.between(loss.difference, loss.interval)
            if loss is not None and has_interval
            else Figure(),
        }
