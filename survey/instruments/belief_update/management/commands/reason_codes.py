"""`manage.py reason_codes SLUG FILE [FILE ...]`: how far coders of a study's reasons agree.

The files are filled-in copies of `to_code.csv`, which the report `reasons` writes.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand
from survey.contracts.reports import ReceivedFile
from survey.input_tables.decoding import read_bytes
from survey.services.results import reports
from survey.services.studies import lookup

from ...reports.reasons.codes import codes_of
from .evaluate_predictors import whole_number


class Command(ReportCommand):
    help = (
        "Read the codes that people gave to a study's reasons (columns answer and code, a file for each coder): the "
        "codes by outcome and change, Cohen's kappa of every two coders, and Krippendorff's alpha of all together."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="to_code.csv with codes, one a coder")
        parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S", help="of the resamples (0)")
        parser.add_argument(
            "--store", action="store_true", help="keep the codes with the study: the report reasons then shows them"
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="write agreement.csv, alpha.csv and codes.csv")

    def handle(
        self, *args: Any, slug: str, files: list[Path], seed: int, store: bool, out: Path | None, **options: Any
    ) -> None:
        study = lookup.find_study(slug)
        if store:
            taken = [ReceivedFile(path.name, read_bytes(path)) for path in files]
            self.stdout.write(reports.take(study, "reasons", taken))
        self.show_result(codes_of(study, files, seed=seed), out=out)
