"""`manage.py open_stage SLUG`: let respondents in."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.sittings.capacity import free_capacity
from survey.services.stages import lifecycle
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Open a stage, or go on with a paused one. A pilot and the first main stage are planned first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--stage", type=int, metavar="N", help="default: the first that is not frozen")

    def handle(self, *args: Any, slug: str, stage: int | None, **options: Any) -> None:
        study = lookup.find_study(slug)
        opened = lifecycle.open_stage(lookup.find_stage(study, stage))
        self.stdout.write(f"{opened} is open for {free_capacity(opened)} people at {opened.study.get_absolute_url()}")
        now = lookup.find_study(slug)
        if now.locked_at is not None and study.locked_at is None:
            self.stdout.write(f"the study file is locked ({now.locked_sha256}); amend_study changes what still may be")
