"""`manage.py import_judgements FILE --study SLUG`: judges' verdicts that one has, on the replies of a study."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.instruments.preference.judging_runs import import_judgements
from survey.services.studies.lookup import find_study


class Command(HunchCommand):
    help = "Load judges' verdicts (prompt, model_a, model_b, judge, outcome or rating_a, first). All rows or none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path)
        parser.add_argument("--study", required=True, metavar="SLUG", help="the study whose replies were judged")

    def handle(self, *args: Any, path: Path, study: str, **options: Any) -> None:
        for name, count in import_judgements(path, find_study(study), say=self.stderr.write).items():
            self.stdout.write(f"{name}: {count} new verdicts")
