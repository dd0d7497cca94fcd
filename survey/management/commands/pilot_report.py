"""`manage.py pilot_report SLUG`: what a study's pilot showed; the same as `report SLUG pilot`."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand
from survey.services.results.reports import PILOT
from survey.services.studies import finding


class Command(ReportCommand):
    help = "What a pilot showed: minutes and drop-outs by screen, failed checks, remarks, and pay by the hour."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        self.add_output_arguments(parser)

    def handle(self, *args: Any, slug: str, out: Path | None, **options: Any) -> None:
        self.show(finding.find_study(slug), PILOT, {}, out=out)
