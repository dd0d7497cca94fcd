"""What `hunch plan_budget` does with the file of a study of comparisons."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from survey.contracts.reports import ReportResult
from survey.figures import Column, Table
from survey.figures.words import integer
from survey.services.results.budget_files import (
    BudgetFile,
    BudgetFileConfig,
    WholeItemsConfig,
    cost_lines,
    each_study,
    found_by_width,
)
from survey.study_file import Strict

from ..analysis.outlook import one_study
from ..analysis.simulation import TokenPlan, TokenWorld

MAX_DRAWS = 100_000  # tokens that one simulated study draws
COLUMNS = (
    Column("plan", "text", "How contexts and draws are made."),
    Column("contexts", "number", "Contexts with a figure, on average.", digits=0),
    Column("answers", "number", "Answers, on average.", digits=0),
    Column("truth", "number", "People's loss less the generator's, as it is in the simulated world, in nats."),
    Column("estimate", "number", "The mean estimate of it.", digits=3),
    Column("width", "number", "Width of its 95 % interval, in nats.", digits=3),
    Column("cover", "share", "Studies whose interval holds the truth.", heading="holds the truth", digits=0),
    Column("studies", "number", "Simulated studies.", whole=True),
    Column("detectable", "number", "Smallest difference from the generator's loss found with 80 % power, in nats."),
)


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


class ContextPlan(Strict):
    name: str = Field(min_length=1, max_length=60)
    contexts_per_text: int = Field(default=1, ge=1, le=20)
    draws: int = Field(default=40, ge=2, le=1000)


class ComparisonBudgetConfig(BudgetFileConfig):
    bank: TextShape
    truth: PeopleTruth = PeopleTruth()
    study: ComparingShape
    plans: list[ContextPlan] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def plans_can_be_simulated(self) -> "ComparisonBudgetConfig":
        names = [plan.name for plan in self.plans]
        if len(set(names)) < len(names):
            raise ValueError("plans: two have the same name: give each a name of its own")
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
        return self.study.complete * self.study.items // self.study.responses_per_item


@dataclass(frozen=True)
class ComparisonBudget(BudgetFile[ComparisonBudgetConfig]):
    """A file such as `studies/example-budget-token-comparison.toml`."""

    config_class: ClassVar = ComparisonBudgetConfig

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self.config.plans)

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        config, truth = self.config, self.config.truth
        world = TokenWorld(
            distance=truth.distance,
            person_sd=truth.people_differ,
            answer_sd=truth.answers_differ,
            rounded=truth.rounded,
        )
        rows = []
        for plan_config in config.plans:
            plan = TokenPlan(
                texts=config.bank.texts,
                contexts=plan_config.contexts_per_text,
                draws=plan_config.draws,
                people=config.study.complete,
                asked=config.asked,
                responses=config.study.responses_per_item,
            )
            work = partial(one_study, plan_config.name, world, plan, config.seed)
            rows.append(_row(plan_config.name, each_study(work, config.studies, jobs=jobs, progress=progress)))
        table = Table(
            "plans",
            "What the study would find",
            COLUMNS,
            rows,
            note="The last column: the smallest difference that a study finds in 80 of 100 cases (two-sided, 5 %).",
        )
        return ReportResult(
            title=config.title,
            lines=[
                f"{config.title}: {integer(config.studies)} simulated studies of each plan; "
                f"{integer(config.bank.texts)} texts, {integer(config.asked)} comparisons asked.",
                *cost_lines(self.costs),
            ],
            tables=[table],
            notes=[
                "Simulated people and generators stand in for yours: compare the plans with each other.",
                "Where the mean estimate is far from the truth, the interval is not one for the truth.",
            ],
            data={row.pop("plan"): row for row in table.records()},
        )


def _row(name: str, studies: list[list[float]]) -> list[Any]:
    table = np.array(studies, dtype=np.float64)
    contexts, answers, estimates, true, low, high = table.T
    known, mean_true = np.isfinite(low), float(true.mean())
    if not known.any():
        return [name, float(contexts.mean()), float(answers.mean()), mean_true, None, None, None, len(table), None]
    width = float((high - low)[known].mean())
    return [
        name,
        float(contexts.mean()),
        float(answers.mean()),
        mean_true,
        float(estimates[known].mean()),
        width,
        float(((low <= mean_true) & (mean_true <= high))[known].mean()),
        len(table),
        found_by_width(width),
    ]
