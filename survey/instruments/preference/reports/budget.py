"""What `hunch plan_budget` does with the file of a preference study."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from survey.contracts.budget_files import BudgetConfig, PolicyConfig, WholeItemsConfig
from survey.contracts.budgets import (
    STUDIES,
    BudgetColumn,
    BudgetPlanner,
    PolicySetting,
    Simulated,
    StudyPlan,
    detectable,
)
from survey.figures import Column, Figure
from survey.figures.words import integer
from survey.study_file import Strict

from ..analysis.bradley_terry import NoRanking, fit
from ..analysis.simulation import PreferenceWorld, StagePlan, population, simulate, spaced


class ReplyShape(Strict):
    prompts: int = Field(ge=2, le=100_000)
    models: int = Field(ge=2, le=50)


class PreferenceTruth(Strict):
    """In logits: from the strongest to the weakest model, what being first adds, how people and prompts differ."""

    span: float = Field(default=2.0, ge=0, le=20)
    gamma: float = Field(default=0.3, ge=-5, le=5)
    people_differ: float = Field(default=0.3, ge=0, le=5)
    prompts_differ: float = Field(default=0.5, ge=0, le=5)

    def world(self, *, models: int, prompts: int) -> PreferenceWorld:
        return PreferenceWorld(
            theta=spaced(models, self.span),
            gamma=self.gamma,
            prompts=prompts,
            person_sd=self.people_differ,
            prompt_sd=self.prompts_differ,
        )


class JudgingShape(WholeItemsConfig):
    items: int = Field(default=10, ge=1, le=200)
    minutes: float = Field(default=20, gt=0, le=600)


class PreferenceBudgetConfig(BudgetConfig):
    studies: int = Field(default=200, ge=2, le=10_000)
    bank: ReplyShape
    truth: PreferenceTruth = PreferenceTruth()
    study: JudgingShape
    policies: list[PolicyConfig] = Field(min_length=1, max_length=12)


@dataclass(frozen=True, eq=False)
class JudgedStudy:
    """A study to simulate. weighted: answers weigh by the design; else each counts once. truth: (m,) the strengths that
    the model has over all items, people and prompts of such a world."""

    world: PreferenceWorld
    stages: tuple[StagePlan, ...]
    truth: NDArray[np.float64]
    weighted: bool = True

    @classmethod
    def of(cls, world: PreferenceWorld, stages: Sequence[StagePlan], *, weighted: bool = True) -> "JudgedStudy":
        return cls(world, tuple(stages), population(world)[0], weighted)


class PreferenceBudget(BudgetPlanner[PreferenceBudgetConfig, JudgedStudy]):
    """A file such as `studies/example-budget-preference.toml`."""

    config_model = PreferenceBudgetConfig
    columns = (
        Column(
            "design", "text", "The design of the stages after the first: the planned one, or uniform.", style="words"
        ),
        STUDIES,
        BudgetColumn(
            "judgements",
            "number",
            "Judgements of a study.",
            of=lambda outlook: sum(stage.slots for stage in outlook.setting.stages),
        ),
        BudgetColumn(
            "widest", "number", "Mean standard error of the least certain difference of two neighbours, in logits."
        ),
        BudgetColumn(
            "mean_width", "number", "Mean width of the 95 % interval of a neighbours' difference, in logits.", digits=2
        ),
        BudgetColumn("best_found", "share", "Studies in which the best model is ranked first.", digits=0),
        BudgetColumn(
            "covered", "share", "Of all neighbours' differences, those inside their 95 % intervals.", digits=0
        ),
        BudgetColumn(
            "detectable", "number", "Smallest difference of two neighbours found with 80 % power, in logits.", digits=2
        ),
        BudgetColumn(
            "detectable_side",
            "number",
            "Smallest side bias found with 80 % power, in logits.",
            digits=2,
            detectable_of="side",
        ),
    )
    notes = ("Strengths, side bias and differences of people and prompts are assumed, not measured.",)

    @property
    def plans(self) -> Sequence[StudyPlan[JudgedStudy]]:
        """Each policy by the design's weights, and an adaptive one also with each answer once."""
        bank, study = self.config.bank, self.config.study
        world = self.config.truth.world(models=bank.models, prompts=bank.prompts)
        plans = []
        for policy in self.config.policies:
            setting = PolicySetting(self.config, policy)
            stages = [
                StagePlan(setting.design(number), people, study.items, study.responses_per_item)
                for number, people in enumerate(study.sittings)
            ]
            plans.append(StudyPlan(policy.name, JudgedStudy.of(world, stages)))
            if policy.kind != "uniform" and len(stages) > 1:
                alone = JudgedStudy.of(world, stages, weighted=False)
                plans.append(StudyPlan(f"{policy.name}, each answer once", alone))
        return plans

    @property
    def sizes(self) -> str:
        bank = self.config.bank
        items = bank.prompts * bank.models * (bank.models - 1) // 2
        return f"{bank.models} models, {integer(bank.prompts)} prompts, {integer(items)} items"

    @staticmethod
    def simulate(plan: JudgedStudy, rng: np.random.Generator) -> Simulated:
        judged = simulate(plan.world, plan.stages, rng=rng)
        best = int(np.argmax(plan.world.theta))
        nothing = dict.fromkeys(("widest", "mean_width", "covered", "detectable", "side"), Figure())
        try:
            ranking = fit(judged if plan.weighted else judged.unweighted())
        except NoRanking:
            return {**nothing, "best_found": 0.0}
        is_best_first = {"best_found": float(ranking.order[0] == best)}
        gaps, truths = [], []
        for model in range(len(plan.truth) - 1):
            gap = ranking.difference(model, model + 1)
            if gap.interval and gap.standard_error is not None:
                gaps.append(gap)
                truths.append(plan.truth[model] - plan.truth[model + 1])
        if not gaps:
            return {**nothing, **is_best_first}
        return {
            **is_best_first,
            "widest": max(gap.standard_error or 0.0 for gap in gaps),
            "mean_width": float(np.mean([gap.width for gap in gaps])),
            "covered": float(np.mean([gap.holds(truth) for gap, truth in zip(gaps, truths, strict=True)])),
            "detectable": float(np.mean([detectable(gap) for gap in gaps])),
            "side": ranking.side,
        }
