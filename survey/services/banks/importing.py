"""Importing a bank of questions: every row is checked first, then all are written at once, or none.

The line of a problem is the line of the file on which its row begins.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from predictors.markup import plain_text
from survey import letters
from survey.exceptions import HunchError, NotFound
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows
from survey.models import Bank, Question, Task
from survey.services.base.auditing import record
from survey.services.base.hashing import digest
from survey.services.base.rights import STARTER_BANK

from .markup import in_markup

LONGEST = {"id": 200, "source": 120, "question": 20_000, "answer": 20_000, "domain": 120, "reason": 20_000}
BANK_NAME = re.compile(r"^[A-Za-z0-9_-]{1,80}$")
BATCH = 2000
TRIES_FOR_A_VERSION = 5
FLAG_FIELDS = ("flag", "flag_reason", "flagged_by", "flagged_at")


@declared
class BankRow(TableRow):
    """A question with its key."""

    is_strict = True
    read_by = "`import_questions FILE --bank NAME`"
    id: str = column(f"The question's own id; at most {LONGEST['id']} characters.")
    source: str = column(f"The task that it belongs to; at most {LONGEST['source']} characters.")
    question: str = column(f"The text that people read; at most {LONGEST['question']:,} characters.")
    answer: str = column(f"The key; may be empty, and has at most {LONGEST['answer']:,} characters.")
    domain: str = column(f"The task's field, one for each task; at most {LONGEST['domain']} characters.", "")
    reason: str = column(f"Why the key is right; at most {LONGEST['reason']:,} characters.", "")


@dataclass(frozen=True)
class QuestionRow:
    """One question as a file gives it, and where it stands there. `text_column`: what the file calls its text."""

    id: str
    source: str
    question: str
    answer: str
    domain: str = ""
    reason: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    text_column: str = "question"
    file: str = ""
    line: int = 1

    @property
    def content(self) -> list[Any]:
        """What the bank's hash is taken of. Without further columns it is what it was before there were any."""
        content = [self.id, self.source, self.question, self.answer, self.domain, self.reason]
        return [*content, dict(self.extra)] if self.extra else content


def import_questions(path: Path | str, bank_name: str) -> Bank:
    """Import a table (id, source, question, answer; domain and reason are optional) as a bank's next version.

    Raises:
        FileErrors: lists every problem with its line; nothing is written.
        HunchError: the bank's name cannot be used.
    """
    problems = Problems()
    rows, _notes = in_markup(list(read_csv(path, problems)), None)
    return import_rows(rows, problems, bank_name=bank_name, source_file=str(path))


def import_rows(
    rows: Iterable[QuestionRow],
    problems: Problems,
    *,
    bank_name: str,
    source_file: str,
    adds: bool = False,
    tasks: Callable[[], Collection[str]] = frozenset,
    by: Any = None,
    via: str = "command",
) -> Bank:
    """Check rows, from whatever format, and write them as the next version of a bank.

    Args:
        adds: the new version also holds what the newest one has of other tasks, with the flags. Those questions come
            first.
        tasks: with `adds`, further tasks that the source has, asked for once the rows are read: of these nothing of the
            newest version stays, even where no row is left.

    Raises:
        FileErrors: with every problem that reading or checking found; nothing is written.
        HunchError: the bank's name cannot be used.
    """
    if not BANK_NAME.match(bank_name):
        raise HunchError(f"bank: {bank_name!r} is not a name: use up to 80 letters, digits, - and _")
    checked = checked_rows(rows, problems)
    if not checked and not problems:
        problems.add(source_file, 1, "file", "holds no question, or none that the filters leave: add at least one row")
    problems.raise_if_any()
    replaced = {row.source for row in checked} | set(tasks())
    for _try in range(TRIES_FOR_A_VERSION):
        # Read at each try: another version may have come meanwhile.
        kept_questions = list(_kept(bank_name, replaced)) if adds else []
        _refuse_same_ids(kept_questions, checked, problems)
        problems.raise_if_any()
        try:
            return _write(checked, bank_name, kept=kept_questions, source_file=source_file, by=by, via=via)
        except IntegrityError:  # Somebody else imported the same bank at the same time and took the version.
            continue
    raise HunchError(f"bank {bank_name!r} is being imported by others at this moment: try again")


@dataclass(frozen=True)
class KeptQuestion:
    """A question of the version before that the next one holds too, with its flag."""

    row: QuestionRow
    flag: Mapping[str, Any]


def _kept(bank_name: str, replaced: Collection[str]) -> Iterator[KeptQuestion]:
    """The questions of the bank's newest version that are not of these tasks, in their order."""
    newest = Bank.objects.filter(name=bank_name).order_by("-version").first()
    if newest is None:
        return
    questions = newest.questions.exclude(task__name__in=replaced).select_related("task").order_by("position")
    for question in questions.iterator(chunk_size=BATCH):
        row = QuestionRow(
            id=question.external_id,
            source=question.task.name,
            question=question.text,
            answer=question.answer,
            domain=question.task.domain,
            reason=question.reason,
            extra=question.extra,
            file=str(newest),
        )
        yield KeptQuestion(row, {name: getattr(question, name) for name in FLAG_FIELDS})


def _refuse_same_ids(kept_questions: Sequence[KeptQuestion], rows: Sequence[QuestionRow], problems: Problems) -> None:
    known = {question.row.id: question.row for question in kept_questions}
    for row in rows:
        if (other := known.get(row.id)) is not None:
            problems.add(
                row.file,
                row.line,
                "id",
                f"{row.id[:60]!r} stands already in {other.file}, in the task {other.source[:60]}: import it under "
                "another bank's name",
            )


def find_bank(wanted: str) -> Bank:
    """The newest version of the bank called `wanted`, or the one that NAME@VERSION names.

    Raises:
        NotFound: there is none; lists the banks that exist.
    """
    name, at, version = wanted.partition("@")
    banks = Bank.objects.filter(name=name).order_by("-version")
    if at:
        banks = banks.filter(version=int(version)) if version.isdecimal() else banks.none()
    bank = banks.first()
    if bank is None:
        known = ", ".join(f"{bank.name}@{bank.version}" for bank in Bank.objects.all()[:10])
        raise NotFound(f"there is no bank {wanted!r}; there are: {known or 'none'}; `hunch import_questions` adds one")
    return bank


def load_starter_bank() -> Bank:
    """The bank that comes with Hunch; imported only if no version of it holds the same questions."""
    return load_bank(Path(__file__).with_name("starter.csv"), read_csv, name=STARTER_BANK)


def load_bank(
    path: Path,
    read: Callable[[Path, Problems], Iterable[QuestionRow]],
    *,
    name: str,
) -> Bank:
    """A bank that comes with Hunch or an instrument; imported only if no version of it holds the same questions."""
    problems = Problems()
    rows = list(read(path, problems))
    problems.raise_if_any()
    known = Bank.objects.filter(name=name, sha256=digest([row.content for row in rows])).first()
    return known or import_rows(rows, problems, bank_name=name, source_file=path.name)


def benchmark_files(
    folder: Path, pattern: str, problems: Problems, *, inside: Sequence[str], needed: str
) -> Sequence[Path]:
    """The files of a published benchmark in a folder, or in the first of its folders `inside` that holds some."""
    for place in (folder, *(folder / name for name in inside)):
        if files := sorted(place.glob(pattern)):
            return files
    problems.add(str(folder), 1, "folder", needed)
    return ()


def read_csv(path: Path | str, problems: Problems) -> Iterator[QuestionRow]:
    """The questions of a table with a header; what cannot be read goes to `problems`. Texts are taken as they stand."""
    for row in read_rows(BankRow, path, problems, limits=None):
        yield QuestionRow(
            row.id, row.source, row.question, row.answer, row.domain, row.reason, file=str(path), line=row.line
        )


def checked_rows(rows: Iterable[QuestionRow], problems: Problems) -> list[QuestionRow]:
    """The rows; what is wrong with them goes to `problems`."""
    checked: list[QuestionRow] = []
    first_of: dict[str, QuestionRow] = {}
    domain_of: dict[str, QuestionRow] = {}
    alike = letters.LookAlikes[QuestionRow]()
    for row in rows:
        checked.append(row)
        for name, limit in LONGEST.items():
            if len(value := getattr(row, name)) > limit:
                column = row.text_column if name == "question" else name
                problems.add(
                    row.file, row.line, column, f"has {len(value):,} characters: at most {limit:,} can be stored"
                )
        for name in ("id", "source"):
            value = getattr(row, name)
            if not value.strip():
                problems.add(row.file, row.line, name, "is empty: give every question one")
            elif message := letters.problem_of(value):
                problems.add(row.file, row.line, name, message)
            elif (twin := alike.add(value, row, beside=name)) is not None:
                problems.note(row.file, row.line, name, f"{letters.differ(value, twin[0])} {_place(twin[1], row)}")
        for name in ("question", "answer", "domain", "reason"):
            column = row.text_column if name == "question" else name
            if message := letters.control_character(getattr(row, name)):
                problems.add(row.file, row.line, column, message)
            elif message := letters.lost_letters(getattr(row, name)):
                problems.note(row.file, row.line, column, message)
        if not plain_text(row.question):
            problems.add(row.file, row.line, row.text_column, "is empty: give every question a text")
        first = first_of.setdefault(row.id, row)
        if first is not row and row.id.strip():
            problems.add(
                row.file, row.line, "id", f"{row.id[:60]!r} stands already {_place(first, row)}: ids must differ"
            )
        other = domain_of.setdefault(row.source, row)
        if other.domain != row.domain:
            problems.add(
                row.file,
                row.line,
                "domain",
                f"{row.domain[:60]!r} differs from {other.domain[:60]!r} {_place(other, row)}: "
                f"a source ({row.source[:60]}) has one domain",
            )
    return checked


def _place(row: QuestionRow, seen_from: QuestionRow) -> str:
    return f"in line {row.line}" if row.file == seen_from.file else f"in {row.file}:{row.line}"


@transaction.atomic
def _write(
    new: list[QuestionRow], name: str, *, kept: Sequence[KeptQuestion], source_file: str, by: Any, via: str
) -> Bank:
    rows = [*(question.row for question in kept), *new]
    flags = [*(question.flag for question in kept), *({} for _row in new)]
    sha256 = digest([row.content for row in rows])
    newest = Bank.objects.filter(name=name).aggregate(newest=Max("version"))["newest"] or 0
    bank = Bank.objects.create(
        name=name,
        version=newest + 1,
        sha256=sha256,
        source_file=Path(source_file).name[:255],
        question_count=len(rows),
        created_by=by if getattr(by, "is_authenticated", False) else None,
    )
    domains = {row.source: row.domain for row in rows}
    tasks = Task.objects.bulk_create(
        [Task(bank=bank, name=source, domain=domain) for source, domain in domains.items()], batch_size=BATCH
    )
    task_of = {task.name: task for task in tasks}
    Question.objects.bulk_create(
        [
            Question(
                bank=bank,
                task=task_of[row.source],
                position=position,
                external_id=row.id,
                text=row.question,
                answer=row.answer,
                reason=row.reason,
                extra=dict(row.extra),
                **flag,
            )
            for position, (row, flag) in enumerate(zip(rows, flags, strict=True))
        ],
        batch_size=BATCH,
    )
    facts = {"kept": len(kept)} if kept else {}
    record("import_questions", bank, by=by, via=via, questions=len(rows), sha256=sha256, **facts)
    return bank
