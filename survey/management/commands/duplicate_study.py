"""`manage.py duplicate_study SLUG`: a study's file for another study, with a slug and a seed of its own."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.studies import file_texts
from survey.services.studies.lookup import find_study


class Command(HunchCommand):
    help = "Print a study's file with another slug and another seed; create_study makes a study of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("new_slug", nargs="?", default="", metavar="NEW", help="by default the next free one")

    def handle(self, *args: Any, slug: str, new_slug: str, **options: Any) -> None:
        text = file_texts.with_fitting_seed(file_texts.copied_text(find_study(slug), new_slug))
        self.stdout.write(text, ending="")
