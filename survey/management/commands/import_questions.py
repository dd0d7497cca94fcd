"""`manage.py import_questions FILE --bank NAME`: a bank's next version."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.services.banks import formats, importing


class Command(HunchCommand):
    help = "Import questions as the next version of a bank: all of them, or none if one is wrong."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", help="CSV file, or the folder of a published benchmark")
        parser.add_argument("--bank", required=True, metavar="NAME")
        parser.add_argument("--format", choices=formats.FORMATS, default="csv")
        parser.add_argument(
            "--max-characters", type=int, metavar="N", help="leave out longer questions (the paper: 750)"
        )
        parser.add_argument("--paper-tasks", action="store_true", help="bbh: only the 22 tasks that the paper uses")

    def handle(
        self,
        *args: Any,
        path: str,
        bank: str,
        format: str,
        max_characters: int | None,
        paper_tasks: bool,
        **options: Any,
    ) -> None:
        problems = importing.Problems()
        rows = formats.read(Path(path), problems, format=format, paper_tasks=paper_tasks)
        if max_characters is not None:
            rows = formats.no_longer_than(rows, max_characters)
        made = importing.import_rows(rows, problems, bank_name=bank, source_file=path)
        self.stdout.write(f"imported {made.question_count} questions into {made.name} version {made.version}")
