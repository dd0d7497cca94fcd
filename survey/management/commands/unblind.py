"""`manage.py unblind SLUG --reason TEXT`: show the conditions of a blind study."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.answers import blinding
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Show the conditions of a blind study from now on, for good. The audit records it with the reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="why, in a sentence")

    def handle(self, *args: Any, slug: str, reason: str, **options: Any) -> None:
        study = blinding.unblind(lookup.find_study(slug), reason=reason)
        self.stdout.write(f"{study.slug}: everybody who sees the study sees its conditions from now on")
