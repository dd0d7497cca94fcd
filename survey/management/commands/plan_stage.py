"""`manage.py plan_stage SLUG INDEX`: draw a stage's slots and deal them into booklets."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.plans import planning
from survey.services.stages import lifecycle
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Plan a stage. Planning a planned stage again changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("index", metavar="INDEX", type=int)
        parser.add_argument(
            "--short-booklets",
            action="store_true",
            help="if one question is in more slots than there are booklets: make more, shorter ones, paid in full",
        )
        parser.add_argument(
            "--uniform",
            action="store_true",
            help="if the previous stage left its predictor nothing to learn from: draw uniformly, which is final",
        )

    def handle(self, *args: Any, slug: str, index: int, short_booklets: bool, uniform: bool, **options: Any) -> None:
        stage = lookup.find_stage(lookup.find_study(slug), index)
        if uniform:
            stage = lifecycle.choose_uniform(stage)
        stage = planning.plan_stage(stage, short_booklets=short_booklets)
        strata = ", ".join(f"{stratum.slots} of {stratum.size} in {stratum.name}" for stratum in stage.strata.all())
        self.stdout.write(
            f"{stage} is {stage.state}: {stage.slots.count()} slots in {stage.booklets.count()} booklets ({strata}), "
            f"plan {stage.plan_sha256[:12]}"
        )
