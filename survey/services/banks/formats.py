"""The formats that `import_questions` reads, by name. Imports services and below."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from survey.exceptions import HunchError
from survey.models.question import plain_text

from . import bbh, mmlu, texts
from .importing import Problems, QuestionRow, read_csv

FORMATS = ("csv", "mmlu", "bbh", *texts.FORMATS)


def read(path: Path, problems: Problems, *, format: str = "csv", paper_tasks: bool = False) -> Iterator[QuestionRow]:
    """The questions of a folder (mmlu, bbh) or of a file (all others).

    Raises:
        HunchError: `paper_tasks` with a format that has no such tasks.
    """
    if paper_tasks and format != "bbh":
        raise HunchError(f"--paper-tasks: only --format bbh has tasks that the paper leaves out, not {format}")
    if format == "mmlu":
        return mmlu.read(path, problems)
    if format == "bbh":
        return bbh.read(path, problems, paper_tasks=paper_tasks)
    if format in texts.FORMATS:
        return texts.read(path, problems, format=format)
    return read_csv(path, problems)


def no_longer_than(rows: Iterable[QuestionRow], characters: int) -> Iterator[QuestionRow]:
    """Rows whose text, as a reader sees it, is at most that long. The paper's bank has no text above 750."""
    return (row for row in rows if len(plain_text(row.question)) <= characters)
