"""The report `cloze_budget`: how precise a planned cloze study would be, next to other ways to spend its answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from survey.contracts import instruments
from survey.contracts.budgets import StudyPlan
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer, number
from survey.services.banks.eligibility import eligible_questions
from survey.services.results import budgets

from ..analysis.simulation import ClozePlan
from .budget import MAX_POSITIONS, ClozeBudget

if TYPE_CHECKING:
    from survey.models import Study


class ClozeBudgetReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (
        Argument(
            "studies",
            "simulated studies of each plan",
            default="40",
            on_pages="20",
            most_on_web=60,
            label="Simulated studies",
        ),
    )

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        studies = arguments.whole("studies", lowest=2, highest=2000)
        plan = plan_of(study)
        ways = [StudyPlan(name, way) for name, way in ways_to_spend(plan)]
        outlooks = budgets.simulate(ClozeBudget, ways, studies=studies, seed=study.seed, source=study.slug)
        table = ClozeBudget.plans_table(outlooks, title="The same answers, spent in other ways")
        planned = table.records()[0]
        return ReportResult(
            title="What the cloze study would find",
            lines=[
                f"as planned, {integer(plan.people)} people give {plan.responses} answers at each of "
                f"{number(planned['positions'], 0)} positions: a PNC near {number(planned['pnc'])} would have an "
                f"interval {number(planned['width'], 3)} wide"
            ],
            tables=[table],
            notes=[
                "simulated people, sentences and models stand in for yours: compare the plans with each other, and "
                "take the widths as a guide"
            ],
            data={"lines": table.records()},
        )


def plan_of(study: "Study") -> ClozePlan:
    """The study as its file plans it, over as many sentences and positions as its bank has.

    Raises:
        HunchError: a stage asks for fewer positions than a correlation needs.
    """
    config, instrument = study.config, instruments.of_study(study)
    questions = eligible_questions(study)
    universe = instrument.universe_size(questions)
    each = max(1, round(universe / max(1, len(questions))))
    stages = [stage for stage in config.stages if stage.teaches]
    answers = stages[0].responses_per_item
    drawn = tuple(stage.sittings * config.sitting.items // stage.responses_per_item for stage in stages)
    sentences = min(len(questions), MAX_POSITIONS // each)
    if min(drawn) < 4:
        raise HunchError(
            f"{study.slug}: a stage draws fewer than 4 positions; add sittings, or lower responses_per_item"
        )
    drawn = tuple(min(count, sentences * each) for count in drawn)
    adaptive = next((stage.design for stage in stages if stage.design.kind != "uniform"), None)
    priority = instrument.options.priority
    return ClozePlan(
        sentences=sentences,
        positions=each,
        drawn=drawn,
        responses=answers,
        design=adaptive.build() if adaptive is not None and priority != "none" else None,
        priority=priority if priority != "none" else "",
        smoothing=instrument.options.smoothing,
        items=config.sitting.items,
    )


def ways_to_spend(plan: ClozePlan) -> list[tuple[str, ClozePlan]]:
    """The plan, the same drawn uniformly, and the same answers spent on fewer or on more positions."""
    variants = [("as planned", plan)]
    if plan.design is not None:
        variants.append(("uniform", replace(plan, design=None, priority="")))
    size = plan.sentences * plan.positions
    if min(plan.drawn) >= 8:
        half = tuple(count // 2 for count in plan.drawn)
        variants.append(
            ("half the positions, twice the answers", replace(plan, drawn=half, responses=2 * plan.responses))
        )
    if plan.responses >= 4 and 2 * max(plan.drawn) <= size:
        twice = tuple(2 * count for count in plan.drawn)
        variants.append(
            ("twice the positions, half the answers", replace(plan, drawn=twice, responses=plan.responses // 2))
        )
    return variants
