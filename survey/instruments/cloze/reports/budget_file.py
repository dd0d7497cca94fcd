"""What `hunch plan_budget` does with the file of a cloze study."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field, model_validator

from survey.contracts.reports import ReportResult
from survey.figures.words import integer
from survey.instruments.cloze.analysis.simulation import ClozePlan
from survey.services.results.budget_files import (
    BudgetFile,
    BudgetFileConfig,
    PriorityPolicyConfig,
    SharedItemsConfig,
    cost_lines,
    own_names,
)
from survey.study_file import Strict

from .budget_report import MAX_POSITIONS, outlook, table_of


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

    @model_validator(mode="after")
    def stages_have_positions(self) -> "WritingShape":
        if min(self.drawn) < 4:
            raise ValueError("responses_per_item: a stage asks for fewer than 4 positions: lower it, or add sittings")
        return self


class ClozeBudgetConfig(BudgetFileConfig):
    bank: SentenceShape
    study: WritingShape
    policies: list[PriorityPolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "ClozeBudgetConfig":
        own_names(self.policies)
        positions = self.bank.sentences * self.bank.positions
        if max(self.study.drawn) > positions:
            raise ValueError(
                f"study: a stage asks for {integer(max(self.study.drawn))} positions and the bank has "
                f"{integer(positions)}: add sentences, or raise responses_per_item"
            )
        return self


@dataclass(frozen=True)
class ClozeBudgetFile(BudgetFile[ClozeBudgetConfig]):
    """A file such as `studies/example-budget-cloze.toml`."""

    config_class: ClassVar = ClozeBudgetConfig

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self.config.policies)

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        config = self.config
        lines = []
        for policy in config.policies:
            plan = ClozePlan(
                sentences=config.bank.sentences,
                positions=config.bank.positions,
                drawn=config.study.drawn,
                responses=config.study.responses_per_item,
                design=policy.build() if policy.priority else None,
                priority=policy.priority,
                smoothing=config.study.smoothing,
                items=config.study.items,
            )
            with self.policy(policy.name):
                lines.append(
                    outlook(policy.name, plan, studies=config.studies, seed=config.seed, jobs=jobs, progress=progress)
                )
        table = table_of(lines, title="What the study would find")
        return ReportResult(
            title=config.title,
            lines=[
                f"{config.title}: {integer(config.studies)} simulated studies of each policy; "
                f"{integer(config.bank.sentences)} sentences with {config.bank.positions} positions each.",
                *cost_lines(self.costs),
            ],
            tables=[table],
            notes=["Simulated people, sentences and models stand in for yours: compare the policies with each other."],
            data={"lines": table.records()},
        )
