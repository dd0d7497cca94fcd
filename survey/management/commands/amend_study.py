"""`manage.py amend_study FILE --reason "..."`: replace a study's file with a changed one."""

from argparse import ArgumentParser
from typing import Any

from survey import study_file
from survey.console.command import HunchCommand
from survey.services.studies import amending, creating, lookup
from survey.study_file import StudyFileError


class Command(HunchCommand):
    help = (
        "Replace a study's file with a changed one. Until the first main stage opens, any key may change. After that, "
        "only keys that change nothing that was drawn or measured. Every change is kept, with its reason."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")
        parser.add_argument("--reason", default="", metavar="WHY", help="kept with the change and exported with it")
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")

    def handle(self, *args: Any, path: str, reason: str, dry_run: bool, **options: Any) -> None:
        text = creating.read_study_file(path)
        try:
            slug = study_file.parse(text).slug
        except StudyFileError as exc:
            raise exc.in_file(path) from exc
        study = lookup.find_study(slug)
        proposal = amending.propose(study, text=text, source_name=path)
        for change in proposal.changes:
            refused = proposal.refusals.get(change.key)
            self.stdout.write(amending.in_words(change) + (f"  (refused: {refused})" if refused else ""))
        if dry_run:
            self.stdout.write("nothing was changed" + ("; the file would be refused" if proposal.refusals else ""))
            return
        made = amending.amend(study, text=text, source_name=path, reason=reason)
        self.stdout.write(f"amended {slug}: its file is now {made.new_sha256}")
