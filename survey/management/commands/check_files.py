"""`manage.py check_files`: whether every file of plans and predictors is in the storage, with its hash."""

from typing import Any

from django.conf import settings

from survey.console.command import HunchCommand
from survey.services.stages import needed_files


class Command(HunchCommand):
    help = "Read every file that plans and predictors need, and name those that are lost or changed; status 1 then."

    def handle(self, *args: Any, **options: Any) -> None:
        count = len(needed_files.needed_files())
        faults = list(needed_files.faults())
        for fault in faults:
            self.stderr.write(f"{fault.sha256} ({fault.of}) {fault.what}")
        if faults:
            self.stderr.write(f"{len(faults)} of {count} files are missing in {settings.HUNCH_STORAGE_URL}: copy them")
            self.stderr.write("from where they were, or restore a backup")
            raise SystemExit(1)
        self.stdout.write(f"all {count} files that plans and predictors need are in {settings.HUNCH_STORAGE_URL}")
