"""The formats that `import_questions` reads, by name. Imports services and below."""

from collections.abc import Iterable
from pathlib import Path

from survey.exceptions import HunchError
from survey.input_tables.problems import Problems

from . import bbh, mmlu, texts
from .filters import PAPER_CHARACTERS, Filters
from .importing import QuestionRow, read_csv
from .markup import in_markup

FORMATS = ("csv", "mmlu", "bbh", *texts.FORMATS)
# A published benchmark is a part of a bank: it is added to what the bank's newest version holds.
BENCHMARKS = ("mmlu", "bbh")


def read(path: Path, problems: Problems, *, format: str = "csv", html: bool | None = None) -> Iterable[QuestionRow]:
    """The questions of a folder (mmlu, bbh) or of a file (all others), in the bank's markup.

    Args:
        html: whether a file's texts are in this markup; None: as they look.
    """
    if format == "mmlu":
        return mmlu.read(path, problems)
    if format == "bbh":
        return bbh.read(path, problems)
    own = texts.read(path, problems, format=format) if format in texts.FORMATS else read_csv(path, problems)
    rows, notes = in_markup(list(own), html)
    problems.notes += notes
    return rows


def filters_of(
    format: str, *, max_characters: int | None = None, paper_tasks: bool = False, paper: bool = False
) -> Filters:
    """What is left out of a source.

    Args:
        paper_tasks: the tasks that the paper leaves out. paper: these, and texts above its limit.

    Raises:
        HunchError: the format has no such tasks, or there are two limits.
    """
    if paper_tasks and format != "bbh":
        raise HunchError(f"--paper-tasks: only --format bbh has tasks that the paper leaves out, not {format}")
    if paper and format not in BENCHMARKS:
        raise HunchError(f"--paper: the paper's filters are for --format {' or '.join(BENCHMARKS)}, not {format}")
    if paper and max_characters not in (None, PAPER_CHARACTERS):
        raise HunchError(f"--max-characters: --paper sets it to {PAPER_CHARACTERS}; leave one of the two out")
    if max_characters is not None and max_characters < 1:
        raise HunchError(f"--max-characters: {max_characters} is no length; use 1 or more")
    left_out = (
        [f"bbh_{task}" for task in bbh.LEFT_OUT_BY_THE_PAPER] if format == "bbh" and (paper or paper_tasks) else []
    )
    return Filters(PAPER_CHARACTERS if paper else max_characters, tuple(left_out))
