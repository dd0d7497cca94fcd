"""`manage.py score_uniform SLUG`: uniform pairs for stages that an earlier version scored without them."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.stages import scoring
from survey.services.studies import finding


class Command(HunchCommand):
    help = (
        "Draw uniform items and score them, for stages that an earlier version scored from all items and kept none of. "
        "Reports about all items need them. Nothing else of a stage changes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        study = finding.find_study(slug)
        lacking = scoring.without_uniform(study)
        if not lacking:
            self.stdout.write("every stage that was scored from all items has uniform ones")
        for stored in lacking:
            number = scoring.score_uniform(stored)
            self.stdout.write(f"stage {stored.stage.index}: {number} uniform items scored by {stored.predictor_run}")
