"""`manage.py import_questions FILE --bank NAME`: a bank's next version."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.console.text_tables import table
from survey.models import Bank, LanguageModel
from survey.services.banks import filters, formats, importing
from survey.services.banks.filters import Filters


class Command(HunchCommand):
    help = (
        "Import questions as the next version of a bank: all of them, or none if one is wrong. A published benchmark "
        "(mmlu, bbh) is added to the tasks that the bank has; any other file takes their place."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", help="CSV file, or the folder of a published benchmark")
        parser.add_argument("--bank", required=True, metavar="NAME")
        parser.add_argument("--format", choices=formats.FORMATS, default="csv")
        parser.add_argument(
            "--max-characters", type=int, metavar="N", help="leave out longer questions (the paper: 750)"
        )
        parser.add_argument("--paper-tasks", action="store_true", help="bbh: only the 22 tasks that the paper uses")
        parser.add_argument(
            "--paper",
            action="store_true",
            help="mmlu, bbh: the paper's filters, which are its tasks and at most 750 characters",
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
        **options: Any,
    ) -> None:
        chosen = formats.filters_of(format, max_characters=max_characters, paper_tasks=paper_tasks, paper=paper)
        problems = importing.Problems()
        rows = chosen.taken(formats.read(Path(path), problems, format=format))
        made = importing.import_rows(
            rows,
            problems,
            bank_name=bank,
            source_file=path,
            adds=format in formats.BENCHMARKS,
            tasks=lambda: list(chosen.counts),
        )
        if chosen.drop_something:
            self.stdout.write(_dropped(chosen))
        self._tell(made, new=chosen.total.kept if chosen.counts else made.question_count)

    def _tell(self, made: Bank, *, new: int) -> None:
        text = f"imported {new} questions into {made.name} version {made.version}"
        if earlier := made.question_count - new:
            text += (
                f", beside {earlier} of version {made.version - 1}: {made.question_count} questions in "
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
    return table(header, [[count.task, *(column(count) for column in columns)] for count in counts])
