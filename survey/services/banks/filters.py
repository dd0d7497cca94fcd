"""Filters of an import: tasks that are left out, questions that are too long; and how many questions each one dropped.

The paper's filters are 750 characters and its 79 tasks (section 3): all 57 of MMLU and 22 of the 27 of BIG-Bench Hard.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from predictors.markup import plain_text
from survey.models import Bank

from . import bbh, mmlu
from .importing import QuestionRow

PAPER_CHARACTERS = 750
# What the paper prints as the size of its bank. The questions that pass are counted, never taken from here.
PAPER_PRINTS = 16_347


def paper_tasks() -> frozenset[str]:
    """The names of the paper's tasks, as `import_questions` gives them."""
    own = (f"bbh_{task}" for task in bbh.TASKS if task not in bbh.LEFT_OUT_BY_THE_PAPER)
    return frozenset([*(f"mmlu_{subject}" for subject in mmlu.DOMAIN_OF), *own])


@dataclass
class TaskCount:
    """How many questions of a task were read, dropped by each filter, and kept."""

    task: str
    read: int = 0
    task_left_out: int = 0
    too_long: int = 0

    @property
    def kept(self) -> int:
        return self.read - self.task_left_out - self.too_long


@dataclass
class Filters:
    """Which questions of a source enter a bank. `counts` is filled while the rows are taken.

    `max_characters`: of a question's text as a reader sees it. A question is counted under the first filter that drops
    it: its task comes before its length.
    """

    max_characters: int | None = None
    tasks_left_out: Collection[str] = ()
    counts: dict[str, TaskCount] = field(default_factory=dict)

    @property
    def drop_something(self) -> bool:
        return self.max_characters is not None or bool(self.tasks_left_out)

    def taken(self, rows: Iterable[QuestionRow]) -> Iterator[QuestionRow]:
        """The rows that pass, in their order."""
        for row in rows:
            count = self.counts.setdefault(row.source, TaskCount(row.source))
            count.read += 1
            if row.source in self.tasks_left_out:
                count.task_left_out += 1
            elif self.max_characters is not None and len(plain_text(row.question)) > self.max_characters:
                count.too_long += 1
            else:
                yield row

    @property
    def total(self) -> TaskCount:
        task_count = TaskCount("all")
        for count in self.counts.values():
            task_count.read += count.read
            task_count.task_left_out += count.task_left_out
            task_count.too_long += count.too_long
        return task_count


def holds_the_papers_tasks(bank: Bank) -> bool:
    """Whether the bank has each of the paper's tasks and no other one, and no question that is longer than its
    limit."""
    if set(bank.tasks.values_list("name", flat=True)) != paper_tasks():
        return False
    texts = bank.questions.values_list("text", flat=True).iterator(chunk_size=2000)
    return all(len(plain_text(text)) <= PAPER_CHARACTERS for text in texts)
