"""What `hunch plan_budget` does with the file of a cloze study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from bandit import DesignError
from survey.contracts.budgets import BudgetPlanner
from survey.contracts.reports import Findings
from survey.exceptions import FileErrors, Problem
from survey.instruments.cloze.analysis.simulation import ClozePlan
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

from .budget_report import MOST_POSITIONS, outlook, table_of


class SentenceShape(Strict):
    sentences: int = Field(ge=4, le=MOST_POSITIONS)
    positions: int = Field(default=6, ge=1, le=100)

    @model_validator(mode="after")
    def can_be_simulated(self) -> "SentenceShape":
        if self.sentences * self.positions > MOST_POSITIONS:
            raise ValueError(f"sentences x positions: at most {MOST_POSITIONS:,} are simulated: give fewer sentences")
        return self


class WritingShape(Strict):
    sittings: list[int] = Field(min_length=1, max_length=50)
    items: int = Field(default=20, ge=1, le=200)
    responses_per_item: int = Field(default=25, ge=1, le=1000)
    smoothing: float = Field(default=1.0, gt=0, le=100)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    minutes: float = Field(default=10, gt=0, le=600)

    @model_validator(mode="after")
    def stages_have_positions(self) -> "WritingShape":
        if any(not 2 <= sittings <= 100_000 for sittings in self.sittings):
            raise ValueError("sittings: each stage needs from 2 to 100,000")
        if any(sittings * self.items // self.responses_per_item < 4 for sittings in self.sittings):
            raise ValueError("responses_per_item: a stage asks for fewer than 4 positions: lower it, or add sittings")
        return self


class ClozePolicyConfig(PolicyConfig):
    priority: Literal["", "uncertainty", "gap"] = ""

    @model_validator(mode="after")
    def has_something_to_sample_by(self) -> "ClozePolicyConfig":
        if (self.kind == "uniform") != (self.priority == ""):
            raise ValueError('priority: a design other than uniform needs "uncertainty" or "gap", and uniform neither')
        return self


class ClozeBudgetConfig(Strict):
    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=100, ge=2, le=10_000)
    bank: SentenceShape
    study: WritingShape
    money: Prices = Prices()
    policies: list[ClozePolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "ClozeBudgetConfig":
        own_names(self.policies)
        positions = self.bank.sentences * self.bank.positions
        if max(self.drawn) > positions:
            raise ValueError(
                f"study: a stage asks for {max(self.drawn):,} positions and the bank has {positions:,}: add sentences, "
                "or raise responses_per_item"
            )
        return self

    @property
    def drawn(self) -> tuple[int, ...]:
        """Positions that each stage draws."""
        return tuple(people * self.study.items // self.study.responses_per_item for people in self.study.sittings)


@dataclass(frozen=True)
class ClozeBudgetFile(BudgetPlanner):
    """A file such as `studies/example-budget-cloze.toml`."""

    path: Path
    config: ClozeBudgetConfig

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> "ClozeBudgetFile":
        config = checked(ClozeBudgetConfig, raw, path)
        return cls(path, config if studies is None else config.model_copy(update={"studies": studies}))

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self.config.policies)

    @property
    def costs(self) -> Costs:
        """`sittings` finish; what who leaves has left is dealt to somebody else."""
        study = self.config.study
        complete = sum(study.sittings)
        begin = round(complete / (1 - study.dropout))
        return costs_of(self.config.money, people=begin, complete=complete, minutes=study.minutes)

    def findings(self, *, jobs: int, progress: Callable[[], None]) -> Findings:
        config = self.config
        lines = []
        for policy in config.policies:
            plan = ClozePlan(
                sentences=config.bank.sentences,
                positions=config.bank.positions,
                drawn=config.drawn,
                responses=config.study.responses_per_item,
                design=policy.build() if policy.priority else None,
                priority=policy.priority,
                smoothing=config.study.smoothing,
                items=config.study.items,
            )
            try:
                lines.append(
                    outlook(policy.name, plan, studies=config.studies, seed=config.seed, jobs=jobs, progress=progress)
                )
            except DesignError as exc:
                raise FileErrors([Problem(str(self.path), None, f"policies.{policy.name}", str(exc))]) from exc
        table = table_of(lines, title="What the study would find")
        return Findings(
            title=config.title,
            lines=[
                f"{config.title}: {config.studies:,} simulated studies of each policy; {config.bank.sentences:,} "
                f"sentences with {config.bank.positions} positions each.",
                *cost_lines(self.costs),
            ],
            tables=[table],
            notes=["Simulated people, sentences and models stand in for yours: compare the policies with each other."],
            data={"lines": [dict(zip((one.name for one in table.columns), row, strict=True)) for row in table.rows]},
        )
