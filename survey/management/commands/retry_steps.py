"""`manage.py retry_steps SLUG`: queue failed steps again."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.stages import lifecycle
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Queue every failed step of a study again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        count = sum(lifecycle.retry_steps(stage) for stage in lookup.find_study(slug).stages.all())
        self.stdout.write(f"queued {count} step{'' if count == 1 else 's'} again" if count else "no step has failed")
