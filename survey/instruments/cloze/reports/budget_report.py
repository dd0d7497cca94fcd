"""The report `cloze_budget`: how precise a planned cloze study would be, next to other ways to spend its answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Table
from survey.figures.words import integer, number
from survey.instruments.cloze.analysis.outlook import one_study
from survey.instruments.cloze.analysis.simulation import ClozePlan
from survey.services.banks.eligibility import eligible_questions
from survey.services.results.budget_files import each_study, found_by_width

if TYPE_CHECKING:
    from survey.models import Study

COLUMNS = (
    Column("plan", "text", "How the answers are spent."),
    Column("positions", "number", "Positions with answers, on average.", digits=0),
    Column("answers", "number", "Answers at a position in each stage that draws it.", whole=True),
    Column("people", "number", "People that all stages need.", whole=True),
    Column("pnc", "number", "PNC of a model that gives what people expect, with an error of 1 nat.", digits=3),
    Column("width", "number", "Width of its 95 % interval.", digits=3),
    Column("width_difference", "number", "Width of the interval of its difference to a model with an error of 2 nats."),
    Column("width_surprisal", "number", "Width of the interval of people's mean surprisal, in nats.", digits=3),
    Column("ceiling", "number", "The highest PNC to be expected, by the reliability of people's surprisal.", digits=3),
    Column("studies", "number", "Simulated studies.", whole=True),
    Column("detectable", "number", "Smallest difference of PNC between two models found with 80 % power.", digits=3),
)
MAX_POSITIONS = 20_000  # of a simulated bank


@dataclass(frozen=True)
class BudgetLine:
    """What one way of spending the answers gives, on average."""

    name: str
    positions: float
    answers: int
    people: int
    pnc: float
    width: float
    width_difference: float
    width_surprisal: float
    ceiling: float
    studies: int

    @property
    def detectable(self) -> float:
        """The smallest difference of PNC between two models that is found with 80 % power, two-sided at 5 %."""
        return found_by_width(self.width_difference)

    @property
    def values(self) -> list[object]:
        return [getattr(self, column.name if column.name != "plan" else "name") for column in COLUMNS]


class ClozeBudget(Report):
    arguments: ClassVar[Sequence[Argument]] = (
        Argument("studies", "simulated studies of each plan", default="40", on_pages="20", most_on_web=60),
    )

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        studies = arguments.whole("studies", lowest=2, highest=2000)
        plan = plan_of(study)
        lines = [outlook(name, variant, studies=studies, seed=study.seed) for name, variant in ways(plan)]
        first, table = lines[0], table_of(lines, title="The same answers, spent in other ways")
        return ReportResult(
            title="What the cloze study would find",
            lines=[
                f"as planned, {integer(first.people)} people give {first.answers} answers at each of "
                f"{number(first.positions, 0)} positions: a PNC near {number(first.pnc)} would have an interval "
                f"{number(first.width, 3)} wide"
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


def ways(plan: ClozePlan) -> list[tuple[str, ClozePlan]]:
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


def outlook(
    name: str,
    plan: ClozePlan,
    *,
    studies: int,
    seed: int,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> BudgetLine:
    """The means over simulated studies of a plan. jobs: processes. progress: is called after each study."""
    rows = each_study(partial(one_study, name, plan, seed), studies, jobs=jobs, progress=progress)
    table = np.array(rows, dtype=np.float64)
    known = np.isfinite(table)
    means = np.where(known, table, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    positions, pnc, width, difference_width, surprisal_width, ceiling = means.tolist()
    return BudgetLine(
        name,
        positions,
        plan.responses,
        plan.people,
        pnc,
        width,
        difference_width,
        surprisal_width,
        ceiling,
        studies,
    )


def table_of(lines: Sequence[BudgetLine], *, title: str) -> Table:
    note = "The last column: the smallest difference of PNC that a study finds in 80 of 100 cases (two-sided, 5 %)."
    return Table("cloze_budget", title, COLUMNS, [line.values for line in lines], note=note)
