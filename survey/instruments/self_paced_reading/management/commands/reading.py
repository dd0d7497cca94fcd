"""`manage.py reading SLUG`, or `reading --times FILE --readings FILE`: reading times next to language models."""

from argparse import ArgumentParser
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from survey.console.progress_bars import read_with_bar
from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.exceptions import HunchError
from survey.instruments.self_paced_reading.analysis.cleaning import CleaningRules
from survey.instruments.self_paced_reading.model_words import read_models
from survey.instruments.self_paced_reading.reports.gamm import SCRIPT
from survey.instruments.self_paced_reading.reports.own_times import LAYOUTS, OWN, Layout, TimeSettings, make
from survey.instruments.self_paced_reading.reports.reading_results import GAMM, LINEAR
from survey.instruments.self_paced_reading.reports.study_report import ReadingReport
from survey.services.banks.frequencies import NGRAM
from survey.services.studies.lookup import find_study

RULES = CleaningRules()


class Command(ReportCommand):
    help = (
        "Reading times of a study, and what language models' surprisal adds to predicting them. Or the same of times "
        "that you have: --times FILE (passage, position, word, time; person, right, marks) and --readings FILE "
        "(model, passage, position, surprisal)."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a study of self-paced reading")
        add_report_arguments(parser, ReadingReport)
        parser.add_argument("--read", action="store_true", help="let the study's [[models]] read its passages first")
        parser.add_argument("--times", type=Path, metavar="FILE", help="times that you have, instead of a study")
        parser.add_argument("--readings", type=Path, metavar="FILE", help="what models gave to the same words")
        parser.add_argument("--layout", choices=LAYOUTS, help="the columns of the times as this corpus calls them")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="OURS=THEIRS",
            help="what the times call a column, such as passage=Text_ID",
        )
        parser.add_argument(
            "--measure",
            action="append",
            default=[],
            metavar="COLUMN",
            help="a column of times (time); several stand side by side, such as first fixation and gaze",
        )
        parser.add_argument("--first-position", type=int, metavar="N", help="the number of a text's first word (0)")
        parser.add_argument(
            "--frequencies", default="", metavar="FILE", help="word and log_frequency or count; or ngram:NAME"
        )
        parser.add_argument(
            "--shortest", type=float, default=RULES.shortest, metavar="MS", help="shorter times are left out"
        )
        parser.add_argument(
            "--longest", type=float, default=RULES.longest, metavar="MS", help="longer times are left out"
        )
        parser.add_argument(
            "--least-right",
            type=float,
            default=RULES.least_right,
            metavar="SHARE",
            help="people with fewer questions right are left out",
        )
        parser.add_argument(
            "--previous", type=int, default=2, metavar="N", help="words before a word that enter with it, 1 to 3"
        )
        parser.add_argument(
            "--keep-punctuation",
            action="store_true",
            help="words with punctuation and other non-letters count, and those after them",
        )
        self.add_output_arguments(parser)

    def handle(
        self, *args: Any, slug: str | None, times: Path | None, readings: Path | None, out: Path | None, **options: Any
    ) -> None:
        if bool(slug) == bool(times):
            raise HunchError("SLUG: name a study, or give --times FILE, and not both")
        fit = (options["model"] or [LINEAR])[-1]
        if fit == GAMM and out is None:
            raise HunchError("--out: is missing; the script for R and its data are written there")
        if times is not None:
            if readings is None:
                raise HunchError("--readings: is missing; --times needs it: model, passage, position, surprisal")
            if options["read"] or options["condition"]:
                raise HunchError("--read, --condition: they are for a study; leave them out with --times")
            if options["frequencies"].startswith(NGRAM):
                self.require_database()
            self.show_result(make(times, readings, _settings(options, fit)), out=out)
        else:
            self._of_study(slug or "", readings, out, options)
        if fit == GAMM and out is not None:
            self.stdout.write(f"run: Rscript {out / SCRIPT}")

    def _of_study(self, slug: str, readings: Path | None, out: Path | None, options: dict[str, Any]) -> None:
        if any(options[name] for name in ("layout", "column", "measure")) or options["first_position"] is not None:
            raise HunchError("--layout, --column, --measure, --first-position: they are for --times; leave them out")
        if readings is not None or options["frequencies"]:
            raise HunchError(
                "--readings, --frequencies: a study's models stand in its file as [[models]], and its frequencies in "
                "the option frequencies; leave them out"
            )
        self.require_database()
        study = find_study(slug)
        if options["read"]:
            if study.instrument != "self_paced_reading":
                raise HunchError(f"{study.slug}: is of the kind {study.instrument}; --read is for self_paced_reading")
            read_with_bar(partial(read_models, study), study, noun="passages", say=self.stdout.write)
        self.show(study, "reading", report_arguments_from(ReadingReport, options), out=out)


def _settings(options: dict[str, Any], fit: str) -> TimeSettings:
    return TimeSettings(
        rules=CleaningRules(
            options["shortest"],
            options["longest"],
            options["least_right"],
            keeps_marked=(options["marked"] or ["leave_out"])[-1] == "keep",
        ),
        previous=options["previous"],
        frequencies=options["frequencies"],
        keeps_punctuation=options["keep_punctuation"],
        fit=fit,
        layout=_layout(options),
        measures=tuple(options["measure"]),
    )


def _layout(options: dict[str, Any]) -> Layout:
    """The named one, with what else was said of the columns."""
    layout = LAYOUTS[options["layout"]] if options["layout"] else OWN
    columns = dict(layout.columns)
    for text in options["column"]:
        ours, equals, theirs = text.partition("=")
        if not (equals and ours and theirs):
            raise HunchError(f"--column: {text!r}: write OURS=THEIRS, such as passage=Text_ID")
        if ours == "time":
            raise HunchError(f"--column: {text!r}: name columns of times by --measure {theirs}")
        columns[ours] = theirs
    first = options["first_position"]
    return replace(layout, columns=columns, first_position=layout.first_position if first is None else first)
