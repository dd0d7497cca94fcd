"""`manage.py human_calibration SLUG --people-study SLUG2`: do people foresee what people and models get right?"""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from survey.console.command import HunchCommand, add_condition
from survey.console.tables import percent, table
from survey.exceptions import HunchError
from survey.instruments.belief_update.reports import calibrating
from survey.instruments.belief_update.reports.figure7 import Calibration, RegionAccuracy, calibration_svg
from survey.services.base.writing import replace_file
from survey.services.studies import finding


def names_of(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class Command(HunchCommand):
    help = (
        "Accuracy of people and of language models by what a belief study's respondents expected of them (figure 7): "
        "in the regions 0-30, 30-70 and 70-100 % of posterior belief, with standard errors."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="the belief study")
        parser.add_argument(
            "--people-study", required=True, metavar="SLUG", help="the study in which people answer questions"
        )
        parser.add_argument("--models", type=names_of, default=[], metavar="A,B,...", help="only these (all)")
        add_condition(parser)
        parser.add_argument("--out", type=Path, metavar="DIR", help="write figure7.csv and figure7.svg")

    def handle(
        self,
        *args: Any,
        slug: str,
        people_study: str,
        models: list[str],
        condition: list[str],
        out: Path | None,
        **options: Any,
    ) -> None:
        found = calibrating.human_calibration(
            finding.find_study(slug),
            people_study=finding.find_study(people_study),
            models=models,
            condition=condition,
        )
        for note in found.notes:
            self.stderr.write(f"note: {note}")
        self.stdout.write(
            f"Accuracy of the answerers by posterior belief: {found.beliefs} beliefs, {found.people} people answering"
        )
        rows = [row_of(line.name, region) for line in found.lines for region in line.regions]
        header = ["answerers", "belief", "accuracy", "standard error", "mean belief", "beliefs", "answerers", "matches"]
        self.stdout.write(table(header, rows))
        self.stdout.write(
            "\nA belief counts where an answerer has the outcome that was shown and answered the target question too. "
            "Standard errors by respondent, question answered and answerer."
        )
        if out is not None:
            self._write(out, found.lines)

    def _write(self, folder: Path, lines: Sequence[Calibration]) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replace_file(folder / "figure7.csv") as path:
                path.write_text("".join(calibrating.figure7_csv(lines)), encoding="utf-8", newline="")
            with replace_file(folder / "figure7.svg") as path:
                path.write_text(calibration_svg(lines), encoding="utf-8", newline="")
        except OSError as exc:
            raise HunchError(f"--out {folder}: cannot be written ({exc.strerror}): choose another folder") from exc
        for name in ("figure7.csv", "figure7.svg"):
            self.stdout.write(f"wrote {folder / name}")


def row_of(name: str, region: RegionAccuracy) -> list[str]:
    return [
        name,
        f"{region.lower}-{region.upper} %",
        shown(region.accuracy),
        shown(region.standard_error),
        shown(region.mean_belief / 100),
        str(region.beliefs),
        str(region.answerers),
        str(region.matches),
    ]


def shown(share: float) -> str:
    return percent(share if np.isfinite(share) else None)
