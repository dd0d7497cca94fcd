"""The report `preferences_budget`: what a preference study as it is planned would find, how precisely, at what cost."""

from collections.abc import Sequence
from dataclasses import replace

from bandit import Uniform
from survey.contracts.budgets import StudyPlan
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures.words import integer, number, percent
from survey.models import Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.base.seeds import derive
from survey.services.plans.drafting import recipe_of, slots_by_role
from survey.services.results import budgets

from ..analysis.simulation import StagePlan
from ..material import preference_of
from .budget import JudgedStudy, PreferenceBudget, PreferenceTruth

MAX_STUDIES, MAX_ON_WEB = 2000, 40
PLANNED, UNWEIGHTED, UNIFORM = "as planned", "as planned, each answer once", "uniform"
GAIN = 0.02
"""A smaller change of the widest error is called none."""


class PreferencesBudgetReport(Report):
    arguments = (
        Argument(
            "studies",
            "simulated studies of each design",
            default="200",
            on_pages="20",
            most_on_web=MAX_ON_WEB,
            label="Simulated studies",
        ),
        Argument(
            "span",
            "between the strongest and the weakest model",
            default="2",
            label="Strongest less weakest model (logits)",
        ),
        Argument("gamma", "what being shown first adds", default="0.3", label="Side bias (logits)"),
        Argument(
            "people_differ",
            "how far people differ about a model (standard deviation)",
            default="0.3",
            label="People differ by (logits)",
        ),
        Argument(
            "prompts_differ",
            "how far prompts differ about a model (standard deviation)",
            default="0.5",
            label="Prompts differ by (logits)",
        ),
        Argument(
            "fee", "of the panel, as a share of the reward", default="0.4", label="The panel's fee (share, 0 to 1)"
        ),
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
        truth = PreferenceTruth(
            span=arguments.number("span", lowest=0, highest=20),
            gamma=arguments.number("gamma", lowest=-5, highest=5),
            people_differ=arguments.number("people_differ", lowest=0, highest=5),
            prompts_differ=arguments.number("prompts_differ", lowest=0, highest=5),
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
        world = truth.world(models=models, prompts=prompts)
        plans = [StudyPlan(PLANNED, JudgedStudy.of(world, planned))]
        if any(not isinstance(plan.design, Uniform) for plan in planned):
            uniform = [replace(plan, design=Uniform()) for plan in planned]
            plans.append(StudyPlan(UNWEIGHTED, JudgedStudy.of(world, planned, weighted=False)))
            plans.append(StudyPlan(UNIFORM, JudgedStudy.of(world, uniform)))
        seed = derive(study.seed, "budget")
        outlooks = budgets.simulate(PreferenceBudget, plans, studies=studies, seed=seed, source=study.slug)
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
        table = PreferenceBudget.plans_table(outlooks, name="budget")
        records = table.records()
        return ReportResult(
            title=f"Budget of {study.slug}: {study.title}",
            lines=lines,
            tables=[table],
            notes=[
                "Strengths, side bias and differences of people and prompts are assumed, not measured. Slots of "
                "controls and holdouts are left out.",
                *advice([record["widest"] for record in records]),
            ],
            data={row.pop("design"): row for row in records},
        )


def advice(widest: Sequence[float | None]) -> list[str]:
    """What the adaptive design gains; nothing of a uniform study, or where some studies rank no model.

    Args:
        widest: the widest standard errors by the design's weights, with each answer once, and of the uniform study.
    """
    errors = [error for error in widest if error is not None]
    if len(errors) < 3:
        return []
    by_design, alone, uniform = errors
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
