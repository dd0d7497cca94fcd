"""`manage.py estimate SLUG`: what a study's answers say about all items, with intervals."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from functools import partial
from pathlib import Path
from typing import Any

from survey.console.command import add_condition
from survey.console.reports import ReportCommand
from survey.contracts.reports import ReportFile, ReportResult
from survey.contracts.tables import ExtraFile
from survey.services.answers.conditions import read_condition
from survey.services.results import reports
from survey.services.results.estimates import estimate_tables, estimates_report, study_estimates
from survey.services.results.estimates.design_rows import design_files
from survey.services.results.estimates.population import read_weighting
from survey.services.results.export.check_programs import check_programs
from survey.services.results.export.files import streamed
from survey.services.studies import lookup


def thresholds_of(text: str) -> list[int]:
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = [-1]
    if not all(0 <= value < 100 for value in values) or len(set(values)) != len(values):
        raise ArgumentTypeError(f"{text!r} is not a list of different whole numbers from 0 to 99, such as 0,5,10")
    return values


class Command(ReportCommand):
    help = "Estimate, from all answers that count by now, what respondents would answer over all items."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument(
            "--by",
            action="append",
            default=[],
            metavar="DIVISION",
            help="also inside each part of a division that the instrument names, level of a condition, or group of "
            "people by a question of a form; may be given again (a name that there is not shows those that there are)",
        )
        parser.add_argument(
            "--threshold",
            type=thresholds_of,
            default=[],
            metavar="T,...",
            help="changes up to this size count as none (points); --by shows the first one",
        )
        add_condition(parser)
        parser.add_argument(
            "--weighting",
            type=Path,
            metavar="FILE",
            help="also weight people to the population of this TOML file, which has the keys of [weighting]; in "
            "place of the study file's",
        )
        parser.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="write estimates.csv, slots.csv, leaving.csv, noise.csv, with a weighting population.csv, a codebook "
            "of them, and estimates.json; and design.csv, figures.csv and check.R, which computes every figure again "
            "with R",
        )

    def handle(
        self,
        *args: Any,
        slug: str,
        by: list[str],
        threshold: list[int],
        condition: list[str],
        weighting: Path | None,
        out: Path | None,
        **options: Any,
    ) -> None:
        study = lookup.find_study(slug)
        population = None if weighting is None else read_weighting(weighting, study)
        report = study_estimates.estimate(study, thresholds=threshold, by=by, condition=condition, weighting=population)
        findings = estimates_report.report_result(report, study)
        self.stdout.write(f"{report.study}: {report.title}")
        self.print_page(findings, out=False)
        if out is not None:
            content = json.dumps(report.as_json(), indent=1, allow_nan=False)
            levels = read_condition(study, condition)
            design = design_files(study, levels=levels, thresholds=report.thresholds, by=by)
            result = ReportResult(
                "",
                tables=[*findings.tables, estimate_tables.codebook_table(design)],
                files=[
                    ReportFile("estimates.json", content.encode),
                    *(ReportFile(file.name, partial(_in_bytes, file)) for file in design),
                    *(ReportFile(name, text.encode) for name, text in check_programs(study).items()),
                ],
            )
            for path in reports.write_files(reports.writers_of(result), out):
                self.stdout.write(f"wrote {path}")


def _in_bytes(file: ExtraFile) -> bytes:
    return "".join(streamed(file)).encode()
