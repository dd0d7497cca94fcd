"""`manage.py open_stage SLUG`: let respondents in."""

from argparse import ArgumentParser
from typing import Any

from survey.management.command import HunchCommand
from survey.selectors.stages import free_capacity
from survey.services import staging, studies


class Command(HunchCommand):
    help = "Open a stage, or go on with a paused one. Stage 1 is planned first where it is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--stage", type=int, metavar="N", help="default: the first that is not frozen")

    def handle(self, *args: Any, slug: str, stage: int | None, **options: Any) -> None:
        opened = staging.open_stage(studies.find_stage(studies.find_study(slug), stage))
        self.stdout.write(f"{opened} is open for {free_capacity(opened)} people at {opened.study.get_absolute_url()}")
