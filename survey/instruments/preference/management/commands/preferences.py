"""`manage.py preferences SLUG`, or `preferences --comparisons FILE`: whose replies people and judges prefer."""

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.instruments.preference.analysis.analysing import AnalysisSettings, analyse
from survey.instruments.preference.analysis.bradley_terry import RIDGE, NoRanking
from survey.instruments.preference.analysis.style import tokens_of
from survey.instruments.preference.material import lengths_in_tokens
from survey.instruments.preference.reports.harness import HarnessResult, read_results, with_harness
from survey.instruments.preference.reports.preferences_report import PreferencesReport
from survey.instruments.preference.reports.reading_files import read_material
from survey.instruments.preference.reports.tables import lengths_table, report_result
from survey.models import Study
from survey.services.studies.lookup import find_study

SEED = 20261123


class Command(ReportCommand):
    help = (
        "The ranking of models by people's preferences, agreement, and judges against people: of a study or of files."
    )
    needs_database = False
    harness: Sequence[HarnessResult] = ()
    count: Callable[[str], int] | None = None
    study: Study | None = None

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a preference study; or use --comparisons")
        parser.add_argument("--comparisons", type=Path, metavar="FILE", help="comparisons that you have, as a table")
        parser.add_argument("--judgements", type=Path, metavar="FILE", help="judges' verdicts on the same items")
        parser.add_argument(
            "--harness",
            action="append",
            default=[],
            metavar="MODEL=FILE",
            help="results of lm-evaluation-harness for a model; may be given again",
        )
        parser.add_argument(
            "--tokenizer", type=Path, metavar="FOLDER", help="count lengths in the tokens of the model in this folder"
        )
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
        harness: list[str],
        tokenizer: Path | None,
        out: Path | None,
        **options: Any,
    ) -> None:
        self.harness = [result for named in harness for result in read_results(named)]
        self.count = None if tokenizer is None else counter(tokenizer)
        arguments = report_arguments_from(PreferencesReport, options)
        if slug is not None and comparisons is not None:
            raise HunchError("give either a study's SLUG or --comparisons FILE, not both")
        if slug is not None:
            if judgements is not None or each_answer:
                raise HunchError("--judgements, --each-answer: only with --comparisons; a study has both of its own")
            self.require_database()
            if no_side:
                arguments["side"] = ["no"]
            self.study = find_study(slug)
            self.show(self.study, "preferences", arguments, out=out)
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
        material = read_material(comparisons, judgements, count=self.count or tokens_of)
        try:
            analysis = analyse(material, settings, rng=np.random.default_rng(SEED))
        except NoRanking as exc:
            raise HunchError(f"{comparisons}: {exc}") from exc
        report = self.with_more(report_result(analysis, title=f"Preferences in {comparisons.name}"))
        self.show_result(
            replace(report, files=[*report.files, ReportFile.of_json("preferences.json", report.data)]), out=out
        )

    def with_more(self, findings: ReportResult) -> ReportResult:
        if self.count is not None:
            findings = self._in_tokens(findings, self.count)
        return with_harness(findings, self.harness) if self.harness else findings

    def _in_tokens(self, findings: ReportResult, count: Callable[[str], int]) -> ReportResult:
        note = "In the tokens of the model that --tokenizer names."
        if self.study is None:  # Of files, lengths were counted so when they were read.
            tables = [replace(table, note=note) if table.name == "lengths" else table for table in findings.tables]
            return replace(findings, tables=tables)
        lengths = lengths_in_tokens(self.study, count)
        tables = [lengths_table(lengths, note) if table.name == "lengths" else table for table in findings.tables]
        data = {**findings.data, "lengths": [vars(length) for length in lengths]}
        return replace(findings, tables=tables, data=data)


def counter(folder: Path) -> Callable[[str], int]:
    """How many tokens a text has, by the tokenizer of a model on disk.

    Raises:
        HunchError: the folder has no tokenizer.json that can be read.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as exc:  # tokenizers raises Exception itself
        raise HunchError(f"--tokenizer: {folder} has no tokenizer.json that can be read ({exc})") from exc
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


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
