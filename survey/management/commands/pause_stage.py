"""`manage.py pause_stage SLUG`: admit nobody for now."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.stages import lifecycle
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Admit nobody for now; those inside go on. open_stage opens it again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--stage", type=int, metavar="N", help="default: the first that is not frozen")

    def handle(self, *args: Any, slug: str, stage: int | None, **options: Any) -> None:
        paused = lifecycle.pause_stage(lookup.find_stage(lookup.find_study(slug), stage))
        self.stdout.write(f"{paused} is paused; `open_stage {slug}` opens it again")
