"""`manage.py next_token SLUG`, or `next_token --guesses FILE`: how often people and models guess the next token."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.console.sources import sources_of
from survey.exceptions import HunchError
from survey.instruments.next_token.reports.own_guesses import make
from survey.instruments.next_token.reports.study_report import NextTokenReport
from survey.services.banks import passages
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
        parser.add_argument(
            "--model",
            action="append",
            default=[],
            metavar="NAME=SOURCE",
            help="with --guesses: a language model that reads the same texts, endpoint:MODEL, local:FOLDER, ngram:NAME "
            "or file:TABLE",
        )
        parser.add_argument(
            "--texts",
            type=Path,
            metavar="FILE",
            help="with --guesses: whole texts (id, text), unless guesses spell them, for models and lengths of words",
        )
        parser.add_argument("--tokenizer", default="", metavar="SOURCE", help=f"what cut the texts: {passages.SOURCES}")
        parser.add_argument(
            "--without", action="append", default=[], metavar="PERSON", help="with --guesses: leave this person out"
        )
        self.add_output_arguments(parser)

    def handle(
        self,
        *args: Any,
        slug: str | None,
        guesses: Path | None,
        model: list[str],
        texts: Path | None,
        tokenizer: str,
        without: list[str],
        out: Path | None,
        **options: Any,
    ) -> None:
        if bool(slug) == bool(guesses):
            raise HunchError("SLUG: name a study, or give --guesses FILE, and not both")
        if guesses is None and (model or texts or tokenizer or without):
            raise HunchError(
                "--model, --texts, --tokenizer, --without: go with --guesses FILE; the study's file names its models"
            )
        if model or tokenizer or guesses is None:
            self.require_database()
        if guesses is not None:
            made = make(guesses, models=sources_of(model), texts=texts, tokenizer=tokenizer, without=without)
            self.show_result(made, out=out)
            return
        self.show(find_study(slug or ""), "next_token", report_arguments_from(NextTokenReport, options), out=out)
