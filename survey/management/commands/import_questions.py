"""`manage.py import_questions FILE --bank NAME`: a bank's next version."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import FileErrors, HunchError, Problem
from survey.figures.rendering import aligned
from survey.input_tables import reader
from survey.input_tables.problems import PROBLEMS_SHOWN, Problems
from survey.models import Bank, LanguageModel
from survey.services.banks import columns, filters, formats, importing, uploads
from survey.services.banks.alike import Alike, equal_options, same_questions
from survey.services.banks.columns import ColumnChoice
from survey.services.banks.filters import Filters

OF_TABLES = ("column", "number", "task", "encoding", "delimiter", "sheet", "look")
PAIRS_SHOWN = 10
ROWS_SHOWN = 5
WIDTH = 60  # characters of a text
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}


class Command(HunchCommand):
    help = (
        "Import questions as the next version of a bank: all of them, or none if one is wrong. A published benchmark "
        "(mmlu, bbh) is added to the tasks that the bank has; any other file takes their place. A table may be CSV "
        "with commas, semicolons or tabs in any usual encoding, or XLSX; how it is read is said."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", help="CSV file, or the folder of a published benchmark")
        parser.add_argument("--bank", required=True, metavar="NAME")
        parser.add_argument("--format", choices=formats.FORMATS, default="csv")
        parser.add_argument(
            "--max-characters", type=int, metavar="N", help="leave out longer questions (the paper: 750)"
        )
        tags = parser.add_mutually_exclusive_group()
        tags.add_argument(
            "--html", action="store_true", help="<b>, </b> and <br> in the texts are markup, as in the paper's bank"
        )
        tags.add_argument("--letters", action="store_true", help="they are letters, and are shown as such")
        parser.add_argument("--paper-tasks", action="store_true", help="bbh: only the 22 tasks that the paper uses")
        parser.add_argument(
            "--paper",
            action="store_true",
            help="mmlu, bbh: the paper's filters, which are its tasks and at most 750 characters",
        )
        of_tables = parser.add_argument_group("tables (--format csv)")
        of_tables.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="NAME=COLUMN",
            help=f"which column of the file is what ({', '.join(columns.COLUMNS)}); all others are left out",
        )
        of_tables.add_argument("--number", action="store_true", help="make the ids from the rows' order")
        of_tables.add_argument("--task", default="", metavar="NAME", help="the one task of all questions")
        of_tables.add_argument("--encoding", default="", choices=reader.ENCODINGS, help="instead of finding out")
        of_tables.add_argument("--delimiter", default="", choices=DELIMITERS, help="instead of finding out")
        of_tables.add_argument("--sheet", default="", metavar="NAME", help="of a spreadsheet; the first visible one")
        of_tables.add_argument(
            "--look", action="store_true", help="say how the file is read and what stands in it twice; store nothing"
        )

    def handle(
        self,
        *args: Any,
        path: str,
        bank: str,
        format: str,
        max_characters: int | None,
        paper_tasks: bool,
        paper: bool,
        html: bool,
        letters: bool,
        **options: Any,
    ) -> None:
        chosen = formats.filters_of(format, max_characters=max_characters, paper_tasks=paper_tasks, paper=paper)
        tags = True if html else False if letters else None
        problems = Problems()
        if format == "csv":
            proposal = self._proposal(path, tags, **options)
            problems.found += proposal.problems
            problems.notes += proposal.notes
            rows, pairs = proposal.rows, proposal.alike
            if options["look"]:
                self._look(proposal)
        else:
            if wrong := [name for name in OF_TABLES if options.get(name)]:
                raise HunchError(f"--{wrong[0]}: is for --format csv, not {format}")
            if tags is not None and format in formats.BENCHMARKS:
                raise HunchError(f"--{'html' if html else 'letters'}: is for tables, not --format {format}")
            read = chosen.taken(formats.read(Path(path), problems, format=format, html=tags))
            rows = importing.checked_rows(read, problems)
            problems.notes += equal_options(rows)
            pairs = same_questions(rows)
        problems.raise_if_any()
        for note in problems.notes:
            self.stderr.write(note)
        if pairs is not None:
            self._alike(pairs)
        if options["look"]:
            return
        made = importing.import_rows(
            rows if format != "csv" else chosen.taken(rows),
            problems,
            bank_name=bank,
            source_file=path,
            adds=format in formats.BENCHMARKS,
            tasks=lambda: list(chosen.counts),
        )
        if chosen.drop_something:
            self.stdout.write(_dropped(chosen))
        self._tell(made, new=chosen.total.kept if chosen.counts else made.question_count)

    def _proposal(self, path: str, tags: bool | None, **options: Any) -> uploads.BankProposal:
        """A table of any kind, by the same code as the page that takes uploads."""
        reading = reader.TableReading(options["encoding"], DELIMITERS.get(options["delimiter"], ""), options["sheet"])
        named = columns.said(options["column"], numbered=options["number"], task=options["task"])
        read = reader.read_path(path, reading)
        if read.said != PLAIN or options["look"]:
            self.stdout.write(f"{path}: {read.said}" + (" (a guess: look at the letters)" if read.is_guess else ""))
        return uploads.proposal_of(read, replace(named or _exactly(read), html=tags))

    def _look(self, proposal: uploads.BankProposal) -> None:
        chosen_columns = {**proposal.choice.columns, **({"id": "the rows' order"} if proposal.choice.numbered else {})}
        if proposal.choice.task:
            chosen_columns["source"] = f"{proposal.choice.task!r} for all"
        self.stdout.write(
            aligned(["of a question", "column"], [[name, chosen_columns.get(name, "-")] for name in columns.COLUMNS])
        )
        if proposal.left_out:
            self.stdout.write(f"left out: {', '.join(proposal.left_out)}")
        self.stdout.write(
            f"{len(proposal.rows):,} questions in {proposal.tasks:,} tasks, {proposal.without_key:,} without a key"
        )
        printed_rows = [
            [str(row.line), row.id, row.source, _short(row.question), _short(row.answer)] for row in proposal.rows
        ]
        self.stdout.write(aligned(["line", "id", "task", "question", "answer"], printed_rows[:ROWS_SHOWN]))

    def _alike(self, alike: Alike) -> None:
        for pairs, count, what in (
            (alike.same, alike.same_count, "the same question under two ids"),
            (alike.near, alike.near_count, "nearly the same question"),
        ):
            for pair in pairs[:PAIRS_SHOWN]:
                self.stderr.write(
                    f"lines {pair.first.line} and {pair.second.line}: {what} ({pair.first.id}, {pair.second.id})"
                    + ("" if pair.same_answer else ", with different keys")
                )
            if count > PAIRS_SHOWN:
                self.stderr.write(f"and {count - PAIRS_SHOWN:,} more: {what}")
        if not alike.is_whole:
            self.stderr.write("the table is large: not every pair of questions was compared")

    def _tell(self, made: Bank, *, new: int) -> None:
        text = f"imported {new} questions into {made.name} version {made.version}"
        if earlier := made.question_count - new:
            text += (
                f", in addition to {earlier} of version {made.version - 1}: {made.question_count} questions in "
                f"{made.tasks.count()} tasks"
            )
        self.stdout.write(text)
        answered = LanguageModel.objects.filter(
            answers__question__bank__name=made.name, answers__question__bank__version=made.version - 1
        )
        if earlier and (count := answered.distinct().count()):
            self.stdout.write(
                f"answers of {count} language models stay with version {made.version - 1}: import_answers adds them to "
                "the new one"
            )
        if filters.holds_the_papers_tasks(made):
            self.stdout.write(
                f"{made.question_count:,} questions pass the paper's filters; the paper prints {filters.PAPER_PRINTS:,}"
            )


PLAIN = "UTF-8, fields separated by commas"


def _exactly(read: reader.ReadTable) -> ColumnChoice:
    """The columns by their exact names, and no others.

    Raises:
        FileErrors: the header has other names; with every problem.
    """
    known = importing.BankRow.required(), importing.BankRow.optional()
    if problems := read.header_problems(*known):
        guess = columns.guessed(read.header).columns
        if options := " ".join(f"--column {name}={column!r}" for name, column in guess.items()):
            message = f"or say which column is what, for example: {options}"
            problems.append(Problem(read.file, read.header_line, "header", message))
        raise FileErrors(problems, shown=PROBLEMS_SHOWN)
    return ColumnChoice({name: name for name in read.header})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _dropped(chosen: Filters) -> str:
    """What each filter dropped, task by task."""
    header, columns = ["task", "read"], [lambda count: str(count.read)]
    if chosen.tasks_left_out:
        header.append("task left out")
        columns.append(lambda count: str(count.task_left_out))
    if chosen.max_characters is not None:
        header.append(f"over {chosen.max_characters} characters")
        columns.append(lambda count: str(count.too_long))
    header.append("kept")
    columns.append(lambda count: str(count.kept))
    counts = [*sorted(chosen.counts.values(), key=lambda count: count.task), chosen.total]
    return aligned(header, [[count.task, *(column(count) for column in columns)] for count in counts])
