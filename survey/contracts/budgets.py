"""What plans the budget of a study that does not exist yet, from a file. Imports only contracts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from .reports import ReportResult


class BudgetPlanner(ABC):
    """Simulates the studies that a file describes, as `hunch plan_budget FILE` does.

    The file is TOML. Its key `instrument` says whose planner reads it; all other keys are the planner's own.
    """

    most_studies: ClassVar[int] = 10_000

    @classmethod
    @abstractmethod
    def read(cls, raw: Mapping[str, Any], *, path: Path, studies: int | None) -> Self:
        """
        Args:
            raw: what the file holds, without `instrument`. studies: simulated studies of each policy, in place of the
                file's number.

        Raises:
            FileErrors: values are wrong; lists every problem.
        """

    @property
    def needs_database(self) -> bool:
        """Whether it reads a bank."""
        return False

    @property
    @abstractmethod
    def simulated(self) -> int:
        """How many studies are simulated in all."""

    @abstractmethod
    def report_result(self, *, jobs: int, progress: Callable[[], None]) -> ReportResult:
        """Simulate all of them.

        Args:
            jobs: processes. progress: is called after each study.

        Raises:
            FileErrors: a policy does not fit the sizes.
        """
