"""`manage.py human_calibration SLUG --people-study SLUG2`: do people foresee what people and models get right?

The same as the report `human_calibration`.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import add_condition
from survey.console.reports import ReportCommand
from survey.services.studies import finding


def names_of(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class Command(ReportCommand):
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
        self.add_output_arguments(parser)

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
        study = finding.find_study(slug)
        finding.find_study(people_study)  # If there is none, the error lists the existing studies.
        given = {"people_study": [people_study], "model": models, "condition": condition}
        self.show(study, "human_calibration", given, out=out)
