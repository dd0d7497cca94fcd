"""What `hunch plan_budget` does with the file of a preference study."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from bandit import Uniform
from survey.contracts.reports import ReportResult
from survey.figures.words import integer
from survey.services.results.budget_files import (
    BudgetFile,
    BudgetFileConfig,
    PolicyConfig,
    WholeItemsConfig,
    cost_lines,
    own_names,
)
from survey.study_file import Strict

from ..analysis.simulation import PreferenceWorld, StagePlan, spaced
from .budget_report import outlook, table_of


class ReplyShape(Strict):
    prompts: int = Field(ge=2, le=100_000)
    models: int = Field(ge=2, le=50)


class PreferenceTruth(Strict):
    """In logits: from the strongest to the weakest model, what being first adds, how people and prompts differ."""

    span: float = Field(default=2.0, ge=0, le=20)
    gamma: float = Field(default=0.3, ge=-5, le=5)
    people_differ: float = Field(default=0.3, ge=0, le=5)
    prompts_differ: float = Field(default=0.5, ge=0, le=5)


class JudgingShape(WholeItemsConfig):
    items: int = Field(default=10, ge=1, le=200)
    minutes: float = Field(default=20, gt=0, le=600)


class PreferenceBudgetConfig(BudgetFileConfig):
    studies: int = Field(default=200, ge=2, le=10_000)
    bank: ReplyShape
    truth: PreferenceTruth = PreferenceTruth()
    study: JudgingShape
    policies: list[PolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def policies_have_names_of_their_own(self) -> "PreferenceBudgetConfig":
        own_names(self.policies)
        return self


@dataclass(frozen=True)
class PreferenceBudget(BudgetFile[PreferenceBudgetConfig]):
    """A file such as `studies/example-budget-preference.toml`."""

    config_class: ClassVar = PreferenceBudgetConfig

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self._ways())

    def _ways(self) -> list[tuple[str, PolicyConfig, bool]]:
        """Each policy by the design's weights, and an adaptive one also with each answer once."""
        ways = []
        for policy in self.config.policies:
            ways.append((policy.name, policy, True))
            if policy.kind != "uniform" and len(self.config.study.sittings) > 1:
                ways.append((f"{policy.name}, each answer once", policy, False))
        return ways

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        config, truth = self.config, self.config.truth
        world = PreferenceWorld(
            theta=spaced(config.bank.models, truth.span),
            gamma=truth.gamma,
            prompts=config.bank.prompts,
            person_sd=truth.people_differ,
            prompt_sd=truth.prompts_differ,
        )
        rows = []
        for name, policy, weighted in self._ways():
            with self.policy(policy.name):
                outlooks = outlook(
                    world,
                    self._plans(policy),
                    studies=config.studies,
                    seed=config.seed,
                    weighted=weighted,
                    jobs=jobs,
                    progress=progress,
                )
            rows.append((name, *outlooks))
        costs = self.costs
        pairs = config.bank.models * (config.bank.models - 1) // 2
        lines = [
            f"{config.title}: {integer(config.studies)} simulated studies of each policy; {config.bank.models} models, "
            f"{integer(config.bank.prompts)} prompts, {integer(config.bank.prompts * pairs)} items.",
            *cost_lines(costs),
        ]
        table = table_of("policies", rows)
        return ReportResult(
            title=config.title,
            lines=lines,
            tables=[table],
            notes=["Strengths, side bias and differences of people and prompts are assumed, not measured."],
            data={row.pop("design"): row for row in table.records()},
        )

    def _plans(self, policy: PolicyConfig) -> list[StagePlan]:
        study = self.config.study
        return [
            StagePlan(Uniform() if number == 0 else policy.build(), people, study.items, study.responses_per_item)
            for number, people in enumerate(study.sittings)
        ]
