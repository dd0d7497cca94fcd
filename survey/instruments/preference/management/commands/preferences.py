"""`manage.py preferences SLUG`, or `preferences --comparisons FILE`: whose replies people and judges prefer."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.contracts.reports import ReportFile
from survey.exceptions import HunchError
from survey.instruments.preference.analysis.analysing import AnalysisSettings, analyse
from survey.instruments.preference.analysis.bradley_terry import RIDGE, NoRanking
from survey.instruments.preference.reports.preferences_report import PreferencesReport
from survey.instruments.preference.reports.reading_files import read_material
from survey.instruments.preference.reports.tables import report_result
from survey.services.studies.lookup import find_study

SEED = 20261123


class Command(ReportCommand):
    help = (
        "The ranking of models by people's preferences, agreement, and judges against people: of a study or of files."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a preference study; or use --comparisons")
        parser.add_argument("--comparisons", type=Path, metavar="FILE", help="comparisons that you have, as a table")
        parser.add_argument("--judgements", type=Path, metavar="FILE", help="judges' verdicts on the same items")
        parser.add_argument("--no-side", action="store_true", help="no side bias in the model")
        parser.add_argument(
            "--each-answer", action="store_true", help="rank by each judgement; of files, else by each item's majority"
        )
        add_report_arguments(parser, PreferencesReport)
        self.add_output_arguments(parser)

    def handle(
        self,
        *args: Any,
        slug: str | None,
        comparisons: Path | None,
        judgements: Path | None,
        no_side: bool,
        each_answer: bool,
        out: Path | None,
        **options: Any,
    ) -> None:
        arguments = report_arguments_from(PreferencesReport, options)
        if slug is not None and comparisons is not None:
            raise HunchError("give either a study's SLUG or --comparisons FILE, not both")
        if slug is not None:
            if judgements is not None or each_answer:
                raise HunchError("--judgements, --each-answer: only with --comparisons; a study has both of its own")
            self.require_database()
            if no_side:
                arguments["side"] = ["no"]
            self.show(find_study(slug), "preferences", arguments, out=out)
            return
        if comparisons is None:
            raise HunchError("give a study's SLUG or --comparisons FILE")
        if wrong := [name for name in arguments if name not in ("ridge", "tie")]:
            raise HunchError(f"{', '.join(wrong)}: only with a study")
        settings = AnalysisSettings(
            each_answer=each_answer,
            ridge=_ridge(arguments.get("ridge", [str(RIDGE)])[0]),
            side=not no_side,
            tie=_tie(arguments.get("tie", ["none"])[0]),
        )
        material = read_material(comparisons, judgements)
        try:
            analysis = analyse(material, settings, rng=np.random.default_rng(SEED))
        except NoRanking as exc:
            raise HunchError(f"{comparisons}: {exc}") from exc
        report = report_result(analysis, title=f"Preferences in {comparisons.name}")
        self.show_result(
            replace(report, files=[*report.files, ReportFile.of_json("preferences.json", report.data)]), out=out
        )


def _ridge(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1000:
        raise HunchError(f"--ridge: {text!r} is not a number from 0 to 1000")
    return value


def _tie(text: str) -> str:
    if text not in ("none", "4-5"):
        raise HunchError(f'--tie: {text!r} is neither "none" nor "4-5"')
    return text
