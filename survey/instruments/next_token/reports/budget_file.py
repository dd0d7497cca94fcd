"""What `hunch plan_budget` does with the file of a next-token study."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from bandit import DesignError
from survey.contracts.budgets import BudgetPlanner
from survey.contracts.reports import Findings, Layout, Table
from survey.contracts.tables import Column
from survey.exceptions import FileErrors, Problem
from survey.services.results.budget_files import (
    POWER,
    Costs,
    PolicyConfig,
    Prices,
    checked,
    cost_lines,
    costs_of,
    each_study,
    own_names,
)
from survey.study_file import SEED_LIMIT, Strict

from ..analysis.outlook import one_study
from ..analysis.simulation import GuessPlan

MOST_TOKENS = 100_000  # of a simulated bank
COLUMNS = (
    Column("policy", "text", "How runs are drawn from stage 2 on."),
    Column("share", "share", "Guesses that are right, on average."),
    Column("width", "number", "Width of its 95 % interval."),
    Column("width_difference", "number", "Width of the interval of people less a model."),
    Column("width_together", "number", "Width of the interval of the most frequent guess; needs 5 people a run."),
    Column("studies", "number", "Simulated studies.", whole=True),
    Column("detectable", "number", "Smallest difference of people and a model found with 80 % power."),
)


class PassageShape(Strict):
    passages: int = Field(ge=4, le=20_000)
    runs: int = Field(default=1, ge=1, le=100)


class GuessingShape(Strict):
    sittings: list[int] = Field(min_length=1, max_length=50)
    items: int = Field(default=5, ge=1, le=200)
    responses_per_item: int = Field(default=5, ge=1, le=1000)
    run: int = Field(default=20, ge=4, le=200)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    minutes: float = Field(default=12, gt=0, le=600)

    @model_validator(mode="after")
    def stages_have_runs(self) -> "GuessingShape":
        if any(not 2 <= sittings <= 100_000 for sittings in self.sittings):
            raise ValueError("sittings: each stage needs from 2 to 100,000")
        if any(sittings * self.items % self.responses_per_item for sittings in self.sittings):
            raise ValueError("responses_per_item: sittings x items must be a multiple of it in every stage")
        if any(sittings * self.items // self.responses_per_item < 4 for sittings in self.sittings):
            raise ValueError("responses_per_item: a stage draws fewer than 4 runs: lower it, or add sittings")
        return self


class GuessPolicyConfig(PolicyConfig):
    priority: Literal["", "uncertainty", "gap"] = ""

    @model_validator(mode="after")
    def has_something_to_sample_by(self) -> "GuessPolicyConfig":
        if (self.kind == "uniform") != (self.priority == ""):
            raise ValueError('priority: a design other than uniform needs "uncertainty" or "gap", and uniform neither')
        return self


class NextTokenBudgetConfig(Strict):
    title: str = Field(min_length=1, max_length=200)
    seed: int = Field(default=1, ge=0, lt=SEED_LIMIT)
    studies: int = Field(default=100, ge=2, le=10_000)
    bank: PassageShape
    study: GuessingShape
    money: Prices = Prices()
    policies: list[GuessPolicyConfig] = Field(min_length=1, max_length=12)

    @model_validator(mode="after")
    def fits_the_bank(self) -> "NextTokenBudgetConfig":
        own_names(self.policies)
        bank, study = self.bank, self.study
        runs = bank.passages * bank.runs
        if runs * study.run > MOST_TOKENS:
            raise ValueError(
                f"bank: passages x runs x run is {runs * study.run:,} tokens, and at most {MOST_TOKENS:,} are "
                "simulated: give fewer passages"
            )
        if max(self.drawn) > runs:
            raise ValueError(
                f"study: a stage draws {max(self.drawn):,} runs and the bank has {runs:,}: add passages, or raise "
                "responses_per_item"
            )
        if study.items > bank.passages:
            raise ValueError(
                f"study: items is {study.items} and the bank has {bank.passages} passages, of which a person meets "
                "each once: add passages, or lower items"
            )
        return self

    @property
    def drawn(self) -> tuple[int, ...]:
        """Runs that each stage draws."""
        return tuple(people * self.study.items // self.study.responses_per_item for people in self.study.sittings)


@dataclass(frozen=True)
class NextTokenBudget(BudgetPlanner):
    """A file such as `studies/example-budget-next-token.toml`."""

    path: Path
    config: NextTokenBudgetConfig

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> "NextTokenBudget":
        config = checked(NextTokenBudgetConfig, raw, path)
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
        rows = []
        for policy in config.policies:
            plan = GuessPlan(
                passages=config.bank.passages,
                runs=config.bank.runs,
                tokens=config.study.run,
                drawn=config.drawn,
                responses=config.study.responses_per_item,
                items=config.study.items,
                design=policy.build() if policy.priority else None,
                priority=policy.priority,
            )
            work = partial(one_study, policy.name, plan, config.seed)
            try:
                rows.append(_row(policy.name, each_study(work, config.studies, jobs=jobs, progress=progress)))
            except DesignError as exc:
                raise FileErrors([Problem(str(self.path), None, f"policies.{policy.name}", str(exc))]) from exc
        return Findings(
            title=config.title,
            lines=[
                f"{config.title}: {config.studies:,} simulated studies of each policy; {config.bank.passages:,} "
                f"passages, {sum(config.drawn):,} runs of {config.study.run} tokens drawn.",
                *cost_lines(self.costs),
            ],
            tables=[Table("policies", "What the study would find", COLUMNS, rows, layouts=[_layout(rows)])],
            notes=["Simulated people, passages and models stand in for yours: compare the policies with each other."],
            data={str(row[0]): dict(zip([one.name for one in COLUMNS[1:]], row[1:], strict=True)) for row in rows},
        )


def _row(name: str, studies: list[list[float]]) -> list[Any]:
    """Means over the studies where a figure is known; None where it is in none."""
    means = []
    for column in np.array(studies, dtype=np.float64).T:
        known = column[np.isfinite(column)]
        means.append(float(known.mean()) if len(known) else None)
    width = means[2]
    return [name, *means, len(studies), None if width is None else POWER * width / (2 * 1.959964)]


def _layout(rows: list[list[Any]]) -> Layout:
    header = ["policy", "right", "width", "of a difference", "of the most frequent", "difference found"]
    shown = [
        [str(row[0]), *("-" if value is None else f"{100 * value:.1f} %" for value in (*row[1:5], row[6]))]
        for row in rows
    ]
    note = "The last column: the smallest difference that a study finds in 80 of 100 cases (two-sided, 5 %)."
    return Layout(header, shown, note=note)
