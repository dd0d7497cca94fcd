"""`manage.py compare_policies SLUG`: what other policies would have found in each stage, from its logs."""

import csv
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.console.text_tables import table
from survey.exceptions import HunchError
from survey.services.base.writing import replace_file
from survey.services.results import comparing, policies_report
from survey.services.results.comparing import StageComparison
from survey.services.studies import finding


class Command(HunchCommand):
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
        stages = comparing.compare(
            finding.find_study(slug),
            epsilons=epsilon,
            top_fractions=top_fraction,
            designs=[comparing.parse_design(text) for text in design],
            predictors=predictor or None,
            say=lambda text: self.stderr.write(f"training, {text}"),
        )
        for line in _page(stages):
            self.stdout.write(line)
        if out is not None:
            self.stdout.write(f"wrote {_write(stages, out)}")


def _page(stages: Sequence[StageComparison]) -> Iterator[str]:
    yield from policies_report.INTRODUCTION
    for stage in stages:
        yield ""
        yield policies_report.stage_in_words(stage)
        if not stage.reason:
            yield table(
                ["policy", "predictor", "self-normalised", "plain", "more than planned", "ESS", "note"],
                [policies_report.shown_row(line, stage.unit, nothing="-") for line in stage.policies],
            )


def _write(stages: Sequence[StageComparison], folder: Path) -> Path:
    path = folder / "policies.csv"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column.name for column in policies_report.POLICIES])
            writer.writerows(policies_report.policy_rows(stages))
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return path
