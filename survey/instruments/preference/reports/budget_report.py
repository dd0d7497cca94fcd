"""The report `preferences_budget`: what a preference study as it is planned would find, how precisely, at what cost."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bandit import DesignError, Uniform
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Column, Table
from survey.figures.words import integer, number, percent
from survey.models import Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.base.seeds import derive
from survey.services.plans.drafting import recipe_of, slots_by_role
from survey.services.results.budget_files import POWER, each_study

from ..analysis.outlook import one_study
from ..analysis.simulation import PreferenceWorld, StagePlan, population, spaced
from ..material import preference_of

MAX_STUDIES, MAX_ON_WEB = 2000, 40
PLANNED, UNWEIGHTED, UNIFORM = "as planned", "as planned, each answer once", "uniform"
GAIN = 0.02
"""A smaller change of the widest error is called none."""
COLUMNS = (
    Column("design", "text", "The design of the stages after the first: the planned one, or uniform."),
    Column("studies", "number", "Simulated studies."),
    Column("judgements", "number", "Judgements of a study."),
    Column("widest", "number", "Mean standard error of the least certain difference of two neighbours, in logits."),
    Column("mean_width", "number", "Mean width of the 95 % interval of a neighbours' difference, in logits.", digits=2),
    Column("best_found", "share", "Studies in which the best model is ranked first.", digits=0),
    Column("covered", "share", "Of all neighbours' differences, those inside their 95 % intervals.", digits=0),
    Column("detectable", "number", "Smallest difference of two neighbours found with 80 % power, in logits.", digits=2),
    Column("detectable_side", "number", "Smallest side bias found with 80 % power, in logits.", digits=2),
)


class PreferencesBudgetReport(Report):
    arguments = (
        Argument("studies", "simulated studies of each design", default="200", on_pages="20", most_on_web=MAX_ON_WEB),
        Argument("span", "logits between the strongest and the weakest model", default="2"),
        Argument("gamma", "what being shown first adds, in logits", default="0.3"),
        Argument("people_differ", "how far people differ about a model, in logits (standard deviation)", default="0.3"),
        Argument(
            "prompts_differ", "how far prompts differ about a model, in logits (standard deviation)", default="0.5"
        ),
        Argument("fee", "the panel's fee as a share of the reward", default="0.4"),
    )

    def obstacle(self, study: Study) -> str:
        for index, stage in enumerate(study.config.stages[study.config.pilots :], start=study.config.pilots + 1):
            if stage.design.kind == "test_set" or stage.design.build().is_unequal:
                return f"{study.slug}: stage {index} is drawn by {stage.design.kind}, which is not simulated here"
            if stage.sittings < 2:
                return f"{study.slug}: stage {index} has one sitting, too few to simulate"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        instrument, config = preference_of(study), study.config
        prompts = len(instrument.usable(filtered_questions(study)))
        models = len(instrument.options.models)
        studies = arguments.whole("studies", lowest=2, highest=MAX_STUDIES)
        world = PreferenceWorld(
            theta=spaced(models, arguments.number("span", lowest=0, highest=20)),
            gamma=arguments.number("gamma", lowest=-5, highest=5),
            prompts=prompts,
            person_sd=arguments.number("people_differ", lowest=0, highest=5),
            prompt_sd=arguments.number("prompts_differ", lowest=0, highest=5),
        )
        fee = arguments.number("fee", lowest=0, highest=5)
        planned = [
            StagePlan(
                stage.design.build(),
                stage.sittings,
                config.sitting.items,
                stage.slots_per_item,
                slots_by_role(recipe_of(config, index=index, seed=study.seed, instrument=instrument)).sampled.items,
            )
            for index, stage in enumerate(config.stages, start=1)
            if index > config.pilots
        ]
        if not prompts or planned[0].slots > prompts * models * (models - 1) // 2 * planned[0].responses_per_item:
            raise StateRefused(
                f"{study.slug}: a stage asks {planned[0].slots} judgements, and there are "
                f"{prompts * models * (models - 1) // 2} items; add prompts or lower sittings"
            )
        designs = {PLANNED: planned}
        if any(not isinstance(plan.design, Uniform) for plan in planned):
            designs[UNWEIGHTED] = planned
            designs[UNIFORM] = [replace(plan, design=Uniform()) for plan in planned]
        seed = derive(study.seed, "budget")
        try:
            rows = [
                (
                    name,
                    *outlook(
                        world,
                        plans,
                        studies=studies,
                        seed=seed,
                        weighted=name != UNWEIGHTED,
                    ),
                )
                for name, plans in designs.items()
            ]
        except DesignError as exc:
            raise StateRefused(f"{study.slug}: {exc}") from exc
        people = sum(plan.people for plan in planned)
        hours = people * config.expected_minutes / 60 if config.expected_minutes else None
        lines = [
            f"{models} models, {prompts} prompts, {integer(prompts * models * (models - 1) // 2)} items; "
            f"{integer(sum(plan.slots for plan in planned))} judgements by {integer(people)} people"
            + (f", {number(hours, 0)} hours of their time." if hours else ".")
        ]
        if config.panel.reward:
            cost = people * config.panel.reward / 100
            lines.append(
                f"Cost: {number(cost * (1 + fee))} {config.panel.currency}, {number(cost * fee)} of it the panel's fee."
            )
        table = table_of("budget", rows)
        return ReportResult(
            title=f"Budget of {study.slug}: {study.title}",
            lines=lines,
            tables=[table],
            notes=[
                "Strengths, side bias and differences of people and prompts are assumed, not measured. Slots of "
                "controls and holdouts are left out.",
                *advice(rows),
            ],
            data={row.pop("design"): row for row in table.records()},
        )


def outlook(
    world: PreferenceWorld,
    plans: Sequence[StagePlan],
    *,
    studies: int,
    seed: int,
    weighted: bool = True,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Any, ...]:
    """Over simulated studies the values of `COLUMNS` after the design's name.

    weighted: answers weigh by the design; else each counts once. The truth is what the model has over all items, people
    and prompts of such a world. jobs: processes. progress: is called after each study.
    """
    work = partial(one_study, world, tuple(plans), population(world)[0], seed, weighted)
    made = np.array(each_study(work, studies, jobs=jobs, progress=progress))
    known = np.isfinite(made)
    mean = np.where(known, made, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    widest, width, best, covered, error, side = mean.tolist()
    return (studies, sum(plan.slots for plan in plans), widest, width, best, covered, POWER * error, POWER * side)


def table_of(name: str, rows: Sequence[tuple[Any, ...]]) -> Table:
    return Table(
        name,
        "What the study would find",
        COLUMNS,
        rows,
        note="The last two columns: the smallest difference of two neighbours, and the smallest side bias, in logits, "
        "that a study finds in 80 of 100 cases (two-sided, 5 %).",
    )


def advice(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    if len(rows) < 3:
        return []
    by_design, alone, uniform = (row[3] for row in rows)
    sentences = []
    for what, value in (("By the design's weights", by_design), ("With each answer once", alone)):
        saved = 1 - value / uniform
        if saved > GAIN:
            sentences.append(f"{what} the adaptive design lowers the widest error by {percent(saved, 0)}.")
        elif saved < -GAIN:
            sentences.append(
                f"{what} the adaptive design raises the widest error by {percent(-saved, 0)}: uniform is better."
            )
        else:
            sentences.append(f"{what} the adaptive design gains nothing over a uniform one.")
    return sentences
