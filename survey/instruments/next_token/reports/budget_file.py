"""What `hunch plan_budget` does with the file of a next-token study."""

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
    PriorityPolicyConfig,
    WholeItemsConfig,
    cost_lines,
    each_study,
    found_by_width,
    own_names,
)
from survey.study_file import Strict

from ..analysis.outlook import one_study
from ..analysis.simulation import GuessPlan

MAX_TOKENS = 100_000  # of a simulated bank
COLUMNS = (
    Column("policy", "text", "How runs are drawn from stage 2 on."),
    Column("share", "share", "Guesses that are right, on average.", heading="right"),
    Column("width", "number", "Width of its 95 % interval.", style="percent"),
    Column("width_difference", "number", "Width of the interval of people less a model.", style="percent"),
    Column(
        "width_together",
        "number",
        "Width of the interval of the most frequent guess; needs 5 people per run.",
        heading="of the most frequent",
        style="percent",
    ),
    Column("studies", "number", "Simulated studies.", whole=True),
    Column("detectable", "number", "Smallest difference of people and a model found with 80 % power.", style="percent"),
)


class PassageShape(Strict):
    passages: int = Field(ge=4, le=20_000)
    runs: int = Field(default=1, ge=1, le=100)


class GuessingShape(WholeItemsConfig):
    items: int = Field(default=5, ge=1, le=200)
    responses_per_item: int = Field(default=5, ge=1, le=1000)
    run: int = Field(default=20, ge=4, le=200)
    minutes: float = Field(default=12, gt=0, le=600)

    @model_validator(mode="after")
    def stages_have_runs(self) -> "GuessingShape":
        if min(self.drawn) < 4:
            raise ValueError("responses_per_item: a stage draws fewer than 4 runs: lower it, or add sittings")
        return self


class NextTokenBudgetConfig(BudgetFileConfig):
    bank: PassageShape
    study: GuessingShape
    policies: list[PriorityPolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "NextTokenBudgetConfig":
        own_names(self.policies)
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


@dataclass(frozen=True)
class NextTokenBudget(BudgetFile[NextTokenBudgetConfig]):
    """A file such as `studies/example-budget-next-token.toml`."""

    config_class: ClassVar = NextTokenBudgetConfig

    @property
    def simulated(self) -> int:
        return self.config.studies * len(self.config.policies)

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        config = self.config
        rows = []
        for policy in config.policies:
            plan = GuessPlan(
                passages=config.bank.passages,
                runs=config.bank.runs,
                tokens=config.study.run,
                drawn=config.study.drawn,
                responses=config.study.responses_per_item,
                items=config.study.items,
                design=policy.build() if policy.priority else None,
                priority=policy.priority,
            )
            work = partial(one_study, policy.name, plan, config.seed)
            with self.policy(policy.name):
                rows.append(_row(policy.name, each_study(work, config.studies, jobs=jobs, progress=progress)))
        table = Table(
            "policies",
            "What the study would find",
            COLUMNS,
            rows,
            note="The last column: the smallest difference that a study finds in 80 of 100 cases (two-sided, 5 %).",
        )
        return ReportResult(
            title=config.title,
            lines=[
                f"{config.title}: {integer(config.studies)} simulated studies of each policy; "
                f"{integer(config.bank.passages)} passages, {integer(sum(config.study.drawn))} runs of "
                f"{config.study.run} tokens drawn.",
                *cost_lines(self.costs),
            ],
            tables=[table],
            notes=["Simulated people, passages and models stand in for yours: compare the policies with each other."],
            data={row.pop("policy"): row for row in table.records()},
        )


def _row(name: str, studies: list[list[float]]) -> list[Any]:
    """Means over the studies where a figure is known; None where it is in none."""
    means = []
    for column in np.array(studies, dtype=np.float64).T:
        known = column[np.isfinite(column)]
        means.append(float(known.mean()) if len(known) else None)
    width = means[2]
    return [name, *means, len(studies), None if width is None else found_by_width(width)]
