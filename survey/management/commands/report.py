"""`manage.py report SLUG [NAME] [ARGUMENT=VALUE ...]`: which reports a study has, and any one of them."""

import json
from argparse import ArgumentParser
from typing import Any

from survey.console.command import by_argument
from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.results import reports
from survey.services.studies import lookup


class Command(ReportCommand):
    help = "List the reports of a study, or show one: tables, figures and files, as its instrument has them."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        # Arguments may come before and after --out; argparse by default expects them together.
        parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("name", metavar="NAME", nargs="?", default="", help="without it: list the reports")
        parser.add_argument(
            "given", metavar="ARGUMENT=VALUE", nargs="*", help="arguments of the report; the list of reports shows them"
        )
        self.add_output_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print JSON instead, all of it")

    def handle(self, *args: Any, slug: str, name: str, given: list[str], **options: Any) -> None:
        study = lookup.find_study(slug)
        if name:
            self.show(study, name, by_argument(given), out=options["out"], as_json=options["json"])
        elif options["out"] is not None:
            raise HunchError("--out: name a report; without --out the command lists them")
        elif options["json"]:
            self.stdout.write(json.dumps(reports.lines_as_json(study), ensure_ascii=False, indent=1))
        else:
            self._list(study)

    def _list(self, study: Study) -> None:
        lines = reports.lines_of(study)
        if not lines:
            self.stdout.write(f"{study.slug}: studies of the kind {study.instrument} have no report")
        for line in lines:
            self.stdout.write(f"{line.entry.name}: {line.entry.summary}")
            if line.obstacle:
                self.stdout.write(f"  not now: {line.obstacle}")
            for argument in line.arguments:
                marks = [
                    word
                    for word, holds in (
                        ("required", argument.required),
                        ("may be given again", argument.many),
                        (f"default {argument.default}", bool(argument.default)),
                    )
                    if holds
                ]
                more = f" ({', '.join(marks)})" if marks else ""
                self.stdout.write(f"  {argument.name}=...  {argument.help}{more}")
