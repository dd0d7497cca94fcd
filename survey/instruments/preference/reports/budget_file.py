"""What `hunch plan_budget` does with the file of a preference study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from bandit import DesignError, Uniform
from survey.contracts.budgets import BudgetPlanner
from survey.contracts.reports import Findings, Table
from survey.exceptions import FileErrors, Problem
from survey.services.results.budget_files import (
    Costs,
    PolicyConfig,
    Prices,
    checked,
    cost_lines,
    costs_of,
    own_names,
)
from survey.study_file import SEED_LIMIT, Strict

from ..analysis.simulation import PreferenceWorld, StagePlan, spaced
from .budget_report import COLUMNS, layout, outlook


class ReplyShape(Strict):
    prompts: int = Field(ge=2, le=100_000)
    models: int = Field(ge=2, le=50)


class PreferenceTruth(Strict):
    """In logits: from the strongest to the weakest model, what being first adds, how people and prompts differ."""

    span: float = Field(default=2.0, ge=0, le=20)
    gamma: float = Field(default=0.3, ge=-5, le=5)
    people_differ: float = Field(default=0.3, ge=0, le=5)
    prompts_differ: float = Field(default=0.5, ge=0, le=5)


class JudgingShape(Strict):
    sittings: list[int] = Field(min_length=1, max_length=50)
    items: int = Field(default=10, ge=1, le=200)
    responses_per_item: int = Field(default=1, ge=1, le=1000)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    minutes: float = Field(default=20, gt=0, le=600)

    @model_validator(mode="after")
    def sittings_are_people(self) -> "JudgingShape":
        if any(not 2 <= sittings <= 100_000 for sittings in self.sittings):
            raise ValueError("sittings: each stage needs from 2 to 100,000")
        if any(sittings * self.items % self.responses_per_item for sittings in self.sittings):
            raise ValueError("responses_per_item: sittings x items must be a multiple of it in every stage")
        return self


class PreferenceBudgetConfig(Strict):
    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=200, ge=2, le=10_000)
    bank: ReplyShape
    truth: PreferenceTruth = PreferenceTruth()
    study: JudgingShape
    money: Prices = Prices()
    policies: list[PolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def policies_have_names_of_their_own(self) -> "PreferenceBudgetConfig":
        own_names(self.policies)
        return self


@dataclass(frozen=True)
class PreferenceBudget(BudgetPlanner):
    """A file such as `studies/example-budget-preference.toml`."""

    path: Path
    config: PreferenceBudgetConfig

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> "PreferenceBudget":
        config = checked(PreferenceBudgetConfig, raw, path)
        return cls(path, config if studies is None else config.model_copy(update={"studies": studies}))

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self._ways())

    def _ways(self) -> list[tuple[str, PolicyConfig, bool]]:
        """Each policy by the design's weights, and an adaptive one also with each answer once."""
        found = []
        for policy in self.config.policies:
            found.append((policy.name, policy, True))
            if policy.kind != "uniform" and len(self.config.study.sittings) > 1:
                found.append((f"{policy.name}, each answer once", policy, False))
        return found

    @property
    def costs(self) -> Costs:
        """`sittings` finish; what who leaves has left is dealt to somebody else."""
        study = self.config.study
        complete = sum(study.sittings)
        begin = round(complete / (1 - study.dropout))
        return costs_of(self.config.money, people=begin, complete=complete, minutes=study.minutes)

    def findings(self, *, jobs: int, progress: Callable[[], None]) -> Findings:
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
            try:
                found = outlook(
                    world,
                    self._plans(policy),
                    studies=config.studies,
                    seed=config.seed,
                    weighted=weighted,
                    jobs=jobs,
                    progress=progress,
                )
            except DesignError as exc:
                raise FileErrors([Problem(str(self.path), None, f"policies.{policy.name}", str(exc))]) from exc
            rows.append((name, *found))
        costs = self.costs
        pairs = config.bank.models * (config.bank.models - 1) // 2
        lines = [
            f"{config.title}: {config.studies:,} simulated studies of each policy; {config.bank.models} models, "
            f"{config.bank.prompts:,} prompts, {config.bank.prompts * pairs:,} items.",
            *cost_lines(costs),
        ]
        return Findings(
            title=config.title,
            lines=lines,
            tables=[Table("policies", "What the study would find", COLUMNS, rows, layouts=[layout(rows)])],
            notes=["Strengths, side bias and differences of people and prompts are assumed, not measured."],
            data={name: dict(zip([one.name for one in COLUMNS[1:]], row, strict=True)) for name, *row in rows},
        )

    def _plans(self, policy: PolicyConfig) -> list[StagePlan]:
        study = self.config.study
        return [
            StagePlan(Uniform() if number == 0 else policy.build(), people, study.items, study.responses_per_item)
            for number, people in enumerate(study.sittings)
        ]
