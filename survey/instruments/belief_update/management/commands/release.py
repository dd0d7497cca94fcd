"""`manage.py release SLUG --out DIR`: a study in the columns of the paper's released data. The same as the report
`release`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.services.results import reports
from survey.services.studies import lookup

from ...reports.release.releasing import TEST


class Command(ReportCommand):
    help = (
        "Write a belief study in the columns of the paper's released data: train.csv (every frozen answer that "
        "predictors may learn from), test.csv (the majority label of each item of the test stage) and a README "
        "of counts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write to")
        parser.add_argument(
            "--columns",
            default="",
            metavar="people,models",
            help="further columns, of how hard q2 is: the priors of training rows, the share of models that is right",
        )

    def handle(self, *args: Any, slug: str, out: Path, columns: str, **options: Any) -> None:
        study = lookup.find_study(slug)
        arguments = {"columns": [columns]} if columns else {}
        findings = reports.make(study, "release", arguments)
        if TEST not in {file.name for file in findings.files} and (out / TEST).exists():
            raise HunchError(
                f"--out {out}: holds a {TEST} of another release, and this one has none; choose another folder"
            )
        reports.record_reading(study, "release", arguments, by=None, via="command")
        self.print_page(findings, out=True)
        for path in reports.write(study, "release", findings, out):
            self.stdout.write(f"wrote {path}")
