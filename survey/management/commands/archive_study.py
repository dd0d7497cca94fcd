"""`manage.py archive_study SLUG`: a study that is over leaves the lists; nothing of it is deleted."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.studies import archiving
from survey.services.studies.lookup import find_study


class Command(HunchCommand):
    help = "Archive a study: it leaves the lists and no stage opens. Nothing is deleted; --undo brings it back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--undo", action="store_true", help="bring an archived study back")

    def handle(self, *args: Any, slug: str, undo: bool, **options: Any) -> None:
        study = find_study(slug)
        if undo:
            archiving.bring_back(study)
        else:
            archiving.archive(study)
        self.stdout.write(f"{slug} is {'back in the lists' if undo else 'archived'}")
