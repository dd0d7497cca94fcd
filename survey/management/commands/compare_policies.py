"""`manage.py compare_policies SLUG`: what other policies would have found in each stage, from its logs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.services.results.policies import comparing, policies_report
from survey.services.studies import lookup


class Command(ReportCommand):
    help = "Say what another epsilon, top fraction, design or predictor would have found in each frozen stage."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--epsilon", type=float, nargs="+", default=[], metavar="E")
        parser.add_argument("--top-fraction", type=float, nargs="+", default=[], metavar="F")
        parser.add_argument(
            "--design",
            action="append",
            default=[],
            metavar="KIND[:NAME=VALUE,...]",
            help="for instance uniform or softmax:temperature=0.05,floor=0.1; may be given again",
        )
        parser.add_argument(
            "--predictor",
            action="append",
            default=[],
            metavar="NAME",
            help="trained on the answers before each stage alone; may be given again (default: the last of "
            "the instrument's baselines, which is quick; bert takes as long as it took in the study)",
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="write policies.csv")

    def handle(
        self,
        *args: Any,
        slug: str,
        epsilon: list[float],
        top_fraction: list[float],
        design: list[str],
        predictor: list[str],
        out: Path | None,
        **options: Any,
    ) -> None:
        for name, values in (("--epsilon", epsilon), ("--top-fraction", top_fraction)):
            if any(not 0 < value < 1 for value in values):
                raise HunchError(f"{name}: must lie strictly between 0 and 1, not {values}")
        study = lookup.find_study(slug)
        stages = comparing.compare(
            study,
            epsilons=epsilon,
            top_fractions=top_fraction,
            designs=[comparing.parse_design(text) for text in design],
            predictors=predictor or None,
            say=lambda text: self.stderr.write(f"training, {text}"),
        )
        self.show_result(policies_report.report_result(study, stages), out=out)
