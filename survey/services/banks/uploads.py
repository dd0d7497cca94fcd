"""A bank from a file that somebody sends: kept until it is confirmed, looked at, and then stored at once or not at all.

The file is kept by its hash, for who sent it alone, for an hour. The same file sent twice is kept once.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any

from django.db import transaction

from survey.exceptions import FileErrors, HunchError, NotFound, Problem, StateRefused
from survey.input_tables import reader
from survey.input_tables.problems import Problems
from survey.input_tables.reader import ReadTable, TableReading
from survey.models import Bank, Upload

from . import columns, texts
from .alike import Alike, alike, equal_options
from .columns import ColumnChoice
from .importing import BANK_NAME, QuestionRow, checked_rows, import_rows
from .markup import in_markup

KEPT = timedelta(hours=1)
SHEETS_TRIED = 10  # of a spreadsheet, to find the one whose columns fit
MAX_KEPT = 3  # files of one person; the oldest go
NO_SUCH_FILE = "This file is not here any more: it is kept for an hour, and for who sent it. Send it again."


@transaction.atomic
def keep(*, user: Any, name: str, content: bytes, now: datetime) -> Upload:
    """Keep a file that can be read as a table.

    Raises:
        FileErrors: it is no table, or too large; nothing is kept.
    """
    file_name = PurePath(name.replace("\\", "/")).name[:255] or "file"
    _read(content, file_name, None)
    forget_old(now)
    upload, _made = Upload.objects.update_or_create(
        user=user,
        sha256=hashlib.sha256(content).hexdigest(),
        name=file_name,
        defaults={"content": content, "created_at": now, "expires_at": now + KEPT},
    )
    newest = Upload.objects.filter(user=user).order_by("-created_at", "-pk").values_list("pk", flat=True)[:MAX_KEPT]
    Upload.objects.filter(user=user).exclude(pk__in=list(newest)).delete()
    return upload


def find(key: int, *, user: Any, now: datetime) -> Upload:
    """
    Raises:
        NotFound: there is none, it is over, or somebody else sent it.
    """
    upload = Upload.objects.filter(pk=key, user=user, expires_at__gt=now).first()
    if upload is None:
        raise NotFound(NO_SUCH_FILE)
    return upload


def forget(upload: Upload) -> None:
    upload.delete()


def forget_old(now: datetime) -> int:
    """Files that nobody confirmed in time; how many there were."""
    return Upload.objects.filter(expires_at__lte=now).delete()[0]


@dataclass(frozen=True)
class BankProposal:
    """What a file would become, with everything that is wrong or worth a look. Nothing is stored."""

    table: ReadTable
    choice: ColumnChoice
    rows: Sequence[QuestionRow]
    problems: Sequence[Problem]
    alike: Alike | None
    notes: Sequence[str] = ()
    """What is said of it before it is stored."""

    @property
    def tasks(self) -> int:
        return len({row.source for row in self.rows})

    @property
    def without_key(self) -> int:
        return sum(not row.answer.strip() for row in self.rows)

    @property
    def kind_of_text(self) -> str:
        """`sentences` or `passages`, where the columns say that it is a bank of these; empty elsewhere."""
        return _kind_of_text(self.table, self.choice)

    @property
    def left_out(self) -> list[str]:
        """Columns of the file that nothing is taken from."""
        taken = set(self.choice.columns.values())
        if self.kind_of_text:
            taken |= set(self.table.header)
        return [name for name in self.table.header if name and name not in taken]

    @property
    def seen(self) -> str:
        """What was shown: a hash of how the file is read. Storing another reading than the shown one is refused."""
        facts = [
            asdict(self.table.reading),
            dict(sorted(self.choice.columns.items())),
            self.choice.numbered,
            self.choice.task,
            self.choice.html,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def propose(
    content: bytes, name: str, *, reading: TableReading | None = None, choice: ColumnChoice | None = None
) -> BankProposal:
    """What the file would become.

    Args:
        choice: which column is what; None: as `columns.proposed` takes them.

    Raises:
        FileErrors: it cannot be read as a table at all.
    """
    table = _read(content, name, reading)
    if choice is None:
        choice = columns.guessed(table.header)
        if not _kind_of_text(table, choice):
            choice = columns.proposed(table, name=name_of(name))
    return proposal_of(table, choice)


def name_of(file: str) -> str:
    """A bank's name from its file's."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePath(file).stem).strip("-")[:80] or "questions"


def _read(content: bytes, name: str, reading: TableReading | None) -> ReadTable:
    """The file's table. Of several sheets of which nobody has chosen one, the first whose columns fit best.

    Raises:
        FileErrors: it cannot be read as a table at all; of several sheets, what is wrong with the first.
    """
    sheets = reader.sheets_of(content, name)[:SHEETS_TRIED] if reading is None else []
    if len(sheets) < 2:
        return reader.read(content, name, reading)
    best, most, first_error = None, 0, None
    for sheet in sheets:
        try:
            table = reader.read(content, name, TableReading(sheet=sheet))
        except FileErrors as exc:
            first_error = first_error or exc
            continue
        fitting = len(columns.guessed(table.header).columns)
        if fitting > most or (best is None and first_error is None):
            best, most = table, fitting
        if fitting == len(columns.COLUMNS):
            break
    if best is None:
        raise first_error or FileErrors([])
    return best


def proposal_of(table: ReadTable, choice: ColumnChoice | None = None) -> BankProposal:
    choice = columns.guessed(table.header) if choice is None else choice
    if kind := _kind_of_text(table, choice):
        return _texts(table, choice, kind)
    problems = Problems()
    problems.notes += table.notes
    try:
        rows = list(columns.questions(table, choice))
    except FileErrors as exc:
        return BankProposal(table, choice, [], exc.problems, None, table.notes)
    return _proposal(table, choice, rows, problems, "question")


def _proposal(
    table: ReadTable, choice: ColumnChoice, rows: Sequence[QuestionRow], problems: Problems, what: str
) -> BankProposal:
    rows, notes = in_markup(rows, choice.html)
    checked = checked_rows(rows, problems)
    if not rows and not problems:
        problems.add(table.file, table.header_line, "file", f"holds no {what}: add at least one row below the header")
    return BankProposal(
        table,
        choice,
        checked,
        problems.found,
        alike(checked) if checked else None,
        [*problems.notes, *notes, *equal_options(checked)],
    )


def _kind_of_text(table: ReadTable, choice: ColumnChoice) -> str:
    format = texts.format_of(table.header)
    return "" if format == "sentences" and "answer" in choice.columns else format


def _texts(table: ReadTable, choice: ColumnChoice, kind: str) -> BankProposal:
    """A bank of sentences, or of passages with questions, whose columns say themselves what they are."""
    problems = Problems()
    rows = list(texts.of_table(table, problems, format=kind))
    return _proposal(table, choice, rows, problems, kind[:-1])


@transaction.atomic
def store(proposal: BankProposal, *, bank_name: str, by: Any = None, via: str = "admin") -> Bank:
    """The proposal as the bank's next version.

    Raises:
        FileErrors: something is wrong with the file; nothing is written.
        HunchError: the bank's name cannot be used.
    """
    refuse_name(bank_name, by)
    problems = Problems()
    problems.found += proposal.problems
    return import_rows(proposal.rows, problems, bank_name=bank_name, source_file=proposal.table.file, by=by, via=via)


def refuse_name(bank_name: str, by: Any) -> None:
    """
    Raises:
        HunchError: it is no name.
        StateRefused: somebody else made the bank of this name. Another version would be taken by their studies.
    """
    if not BANK_NAME.match(bank_name):
        raise HunchError(f"bank: {bank_name[:100]!r} is not a name: use up to 80 letters, digits, - and _")
    if by is None or by.is_superuser:
        return
    newest = Bank.objects.filter(name=bank_name).order_by("-version").first()
    if newest is not None and newest.created_by_id != by.pk:
        raise StateRefused(
            f"bank: there is a bank {bank_name!r} of somebody else, and studies may follow its versions: choose "
            "another name"
        )
