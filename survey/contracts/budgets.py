"""What plans the budget of a study that does not exist yet, from a file. Imports contracts, the study file and the
results kit.

An instrument gives a `BudgetPlanner`: what a simulated study of a plan finds, and where it is not the usual, what the
file says, which plans it compares, what they cost and which columns are printed. `survey.services.results.budgets`
reads the file, simulates and writes the report.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

import bandit
from bandit import Design, Uniform
from survey.figures import Column, Figure, Table, TableView, words

from .budget_files import BudgetConfig, Costs, PoliciesConfig, PolicyConfig
from .reports import ReportResult

if TYPE_CHECKING:
    from survey.models import Question
    from survey.study_file import StudyConfig

Config = TypeVar("Config", bound=BudgetConfig)
Setting = TypeVar("Setting")
Simulated = Mapping[str, Figure | float]
"""What one simulated study finds, by name."""
POWER = 0.8
NORMAL = bandit.student_t_quantile(0.975, math.inf)


def detectable(figure: Figure) -> float:
    """The smallest true value that a two-sided test at 5 % tells from 0 with 80 % power, in the figure's unit; NaN
    without an interval or an error.

    t_0.975 standard errors, which are half the interval, and t_0.8 more (Bloom, Evaluation Review 19, 1995). A figure
    without an error has a half of 1.96 errors; without degrees of freedom, t_0.8 is that of the normal distribution.
    """
    half = figure.width / 2
    error = half / NORMAL if figure.standard_error is None else figure.standard_error
    if (freedom := figure.degrees_of_freedom) is None:
        return half + bandit.student_t_quantile(POWER, math.inf) * error
    return (bandit.student_t_quantile(0.975, freedom) + bandit.student_t_quantile(POWER, freedom)) * error


@dataclass(frozen=True)
class StudyPlan(Generic[Setting]):
    """One of the plans that are compared. `setting`: what `simulate` takes. `studies`: how many are simulated, if not
    as many as the file says."""

    name: str
    setting: Setting
    studies: int | None = None


@dataclass(frozen=True)
class PolicySetting(Generic[Config]):
    """A file's policy, next to all that the file says."""

    config: Config
    policy: PolicyConfig

    def design(self, stage: int) -> Design:
        """Of a stage, from 0. The first is always uniform, since nothing is scored before it."""
        return self.policy.build() if stage else Uniform()


@dataclass(frozen=True)
class PlanOutlook(Generic[Setting]):
    """What the simulated studies of a plan found, one after the other."""

    plan: StudyPlan[Setting]
    studies: Sequence[Simulated]

    @property
    def setting(self) -> Setting:
        return self.plan.setting

    def figures(self, name: str) -> list[Figure]:
        """What the studies found under this name."""
        values = (study[name] for study in self.studies)
        return [value if isinstance(value, Figure) else Figure(value) for value in values]

    def mean(self, name: str) -> float | None:
        """The mean over the studies in which the figure has a value; None where it has one in none."""
        return mean_of(figure.number for figure in self.figures(name))

    def width(self, name: str) -> float | None:
        """The mean width of its intervals."""
        return mean_of(figure.width for figure in self.figures(name))

    def detectable(self, name: str) -> float | None:
        """The smallest true value found with 80 % power, on average."""
        return mean_of(map(detectable, self.figures(name)))


def mean_of(values: Iterator[float]) -> float | None:
    """The mean of those that are finite; None without any."""
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else None


@dataclass(frozen=True)
class BudgetColumn(Column):
    """A column of the plans' table. Its cell is the mean of the figure that has the column's name; or of another figure
    the width of the interval, or the smallest value that is found; or what `of` works out."""

    width_of: str = ""
    detectable_of: str = ""
    of: Callable[[PlanOutlook[Any]], Any] | None = None

    @property
    def plain(self) -> Column:
        """Without how its cells are made: tables are kept, and a function cannot be."""
        return Column(**{field.name: getattr(self, field.name) for field in fields(Column)})

    def cell(self, outlook: PlanOutlook[Any]) -> Any:
        if self.of is not None:
            return self.of(outlook)
        if self.width_of:
            return outlook.width(self.width_of)
        return outlook.detectable(self.detectable_of) if self.detectable_of else outlook.mean(self.name)


STUDIES = BudgetColumn("studies", "number", "Simulated studies.", whole=True, of=lambda outlook: len(outlook.studies))


def columns_of(outlooks: Sequence[PlanOutlook[Any]]) -> Iterator[Column]:
    """A column for the value of each figure, for the width of its interval and for what is found of it."""
    yield Column("policy", "text", "The design of the stages after the first, by its name.")
    for name, first in outlooks[0].studies[0].items():
        kind = (first.unit if isinstance(first, Figure) else "") or "number"
        yield BudgetColumn(name, kind, "Its mean over the simulated studies.")
        if any(figure.interval for outlook in outlooks for figure in outlook.figures(name)):
            yield BudgetColumn(f"{name}_width", kind, "Width of its 95 % interval.", width_of=name)
            yield BudgetColumn(f"{name}_detectable", kind, "Smallest value found with 80 % power.", detectable_of=name)
    yield STUDIES


class BudgetPlanner(ABC, Generic[Config, Setting]):
    """What the studies of a file would find and cost, as `hunch plan_budget FILE` prints it.

    The file is TOML. Its key `instrument` says whose planner reads it; `config_model` says the others. `simulate` is
    enough: the file then compares policies, and each figure has columns for its value, the width of its interval and
    the smallest value that is found with 80 % power.
    """

    # What the file says.
    config_model: ClassVar[type[BudgetConfig]] = PoliciesConfig
    # The table: its name, its columns, what of it people see, a sentence below it. The first column is the plan's name;
    # without columns they are made of the figures.
    table: ClassVar[str] = "policies"
    columns: ClassVar[Sequence[Column]] = ()
    views: ClassVar[Sequence[TableView]] = ()
    note: ClassVar[str] = "Detectable: the smallest difference that a study finds in 80 of 100 cases (two-sided, 5 %)."
    # What a reader should know of the simulation.
    notes: ClassVar[Sequence[str]] = (
        "Simulated people and texts stand in for yours: compare the plans with each other.",
    )
    # What the random numbers are named after, apart from the plan and the number of the study. Empty: studies of one
    # number have the same ones under every plan.
    randomness: ClassVar[str] = ""

    def __init__(self, config: Config) -> None:
        self.config = config

    @staticmethod
    @abstractmethod
    def simulate(plan: Setting, rng: np.random.Generator) -> Simulated:
        """Simulate one study.

        Args:
            plan: the `setting` of one of `plans`. rng: all its chance.

        Raises:
            DesignError: the plan does not fit the sizes.
        """

    @classmethod
    def of_study(cls, plan: Setting, number: int) -> Setting:
        """The plan as the simulated study of this number, from 0, has it: the same in all, unless it says otherwise."""
        return plan

    @property
    def plans(self) -> Sequence[StudyPlan[Setting]]:
        """What is compared. By default a `PolicySetting` for each policy of the file."""
        policies: Sequence[PolicyConfig] = getattr(self.config, self.config.compared)
        made: Any = [StudyPlan(policy.name, PolicySetting(self.config, policy)) for policy in policies]
        return made

    @property
    def costs(self) -> Costs:
        """Of a study. By default all `sittings` finish, and as many more begin as leave."""
        study = self.config.study
        begin = round(study.complete / (1 - study.dropout))
        return Costs.of(self.config.money, people=begin, complete=study.complete, minutes=study.minutes)

    @property
    def sizes(self) -> str:
        """What a study of the file asks for, in words."""
        study = self.config.study
        return f"{words.integer(study.complete)} people answer {study.items} items each"

    def report_result(self, outlooks: Sequence[PlanOutlook[Setting]]) -> ReportResult:
        """The report of all `plans`."""
        config, table = self.config, self.plans_table(outlooks)
        studies = f"{words.integer(config.studies)} simulated studies of each {config.each}"
        return ReportResult(
            title=config.title,
            lines=[f"{config.title}: {studies}; {self.sizes}.", str(self.costs)],
            tables=[table],
            notes=self.notes,
            data={outlook.plan.name: row for outlook, row in zip(outlooks, table.records(), strict=True)},
        )

    @classmethod
    def plans_table(
        cls, outlooks: Sequence[PlanOutlook[Setting]], *, name: str = "", title: str = "What the study would find"
    ) -> Table:
        """A row for each plan."""
        columns = [*(cls.columns or columns_of(outlooks))]
        others = [column for column in columns if isinstance(column, BudgetColumn)]
        rows = [[outlook.plan.name, *(column.cell(outlook) for column in others)] for outlook in outlooks]
        plain = [column.plain if isinstance(column, BudgetColumn) else column for column in columns]
        return Table(name or cls.table, title, plain, rows, note=cls.note, views=cls.views)

    @property
    def needs_database(self) -> bool:
        """Whether it reads a bank."""
        return False

    @classmethod
    def larger_pools(cls, config: "StudyConfig", questions: "Sequence[Question]") -> "Sequence[PoolOutlook]":
        """What a study's later stages would find with its own pool, which comes first, and with larger ones: a
        simulation of some seconds over these questions. Empty where the planner simulates none, or none is larger."""
        return ()


@dataclass(frozen=True)
class PoolOutlook:
    """What a pool of that size would find: the expected share of answers with label 1 from the second stage on."""

    size: int
    share: float
