"""What `hunch plan_budget` does with the file of a belief study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey.contracts.budgets import BudgetPlanner, PoolOutlook
from survey.contracts.reports import ReportResult
from survey.models import Question
from survey.services.results.budget_files import checked
from survey.study_file import StudyConfig

from . import budgeting, pools
from . import tables as budget_tables
from .budgeting import BudgetConfig


@dataclass(frozen=True)
class BeliefBudget(BudgetPlanner):
    """A file such as `studies/example-budget.toml`."""

    config: BudgetConfig

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> "BeliefBudget":
        config = checked(BudgetConfig, raw, path)
        return cls(config if studies is None else config.model_copy(update={"studies": studies}))

    @classmethod
    def larger_pools(cls, config: StudyConfig, questions: Sequence[Question]) -> Sequence[PoolOutlook]:
        return pools.larger_pools(config, questions)

    @property
    def needs_database(self) -> bool:
        return bool(self.config.bank.name)

    @property
    def simulated(self) -> int:
        return budgeting.simulated_studies(self.config)

    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        return budget_tables.report_result(budgeting.plan_budget(self.config, jobs=jobs, progress=progress))
