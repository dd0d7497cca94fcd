"""What plans the budget of a study that does not exist yet, from a file. Imports only contracts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .reports import ReportResult

if TYPE_CHECKING:
    from survey.models import Question
    from survey.study_file import StudyConfig


@dataclass(frozen=True)
class PoolOutlook:
    """What a pool of that size would find: the expected share of answers with label 1 from the second stage on."""

    size: int
    share: float


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

    @classmethod
    def larger_pools(cls, config: "StudyConfig", questions: "Sequence[Question]") -> Sequence[PoolOutlook]:
        """What a study's later stages would find with its own pool, which comes first, and with larger ones: a
        simulation of some seconds over these questions. Empty where the planner simulates none, or none is larger."""
        return ()

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
