"""`manage.py next_token SLUG`, or `next_token --guesses FILE`: how often people and models guess the next token."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.exceptions import HunchError
from survey.instruments.next_token.reports.own_guesses import make
from survey.instruments.next_token.reports.study_report import NextTokenReport
from survey.services.studies.lookup import find_study


class Command(ReportCommand):
    help = (
        "How often people guess the next token of a text, and language models on the very same positions. Or the same "
        "of guesses that you have: --guesses FILE (person, passage, position, guess, truth, asked)."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a next-token study")
        add_report_arguments(parser, NextTokenReport)
        parser.add_argument("--guesses", type=Path, metavar="FILE", help="guesses that you have, instead of a study")
        self.add_output_arguments(parser)

    def handle(self, *args: Any, slug: str | None, guesses: Path | None, out: Path | None, **options: Any) -> None:
        if bool(slug) == bool(guesses):
            raise HunchError("SLUG: name a study, or give --guesses FILE, and not both")
        if guesses is not None:
            self.show_result(make(guesses), out=out)
            return
        self.require_database()
        self.show(find_study(slug or ""), "next_token", report_arguments_from(NextTokenReport, options), out=out)
