"""`manage.py backup FILE`: write the database, the files that it names and the keys to one encrypted file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.backups import making
from survey.console.command import HunchCommand
from survey.console.passphrases import add_passphrase, passphrase_for
from survey.services.base import erasures


class Command(HunchCommand):
    help = (
        "Write the database as it is at one moment, the files that it names and the keys to one new file, encrypted "
        "with a passphrase. The study may run meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="a new file")
        add_passphrase(parser)
        parser.add_argument(
            "--leave-out",
            action="append",
            default=[],
            metavar="TABLE",
            help="a table of no installed package, which could not be restored; may be given again",
        )

        parser.add_argument(
            "--copy-erasures",
            type=Path,
            metavar="FILE",
            help="then copy the list of erasures there, which a restore needs; lines of an earlier copy stay",
        )

    def handle(
        self,
        *args: Any,
        file: Path,
        passphrase_file: Path | None,
        leave_out: list[str],
        copy_erasures: Path | None,
        **options: Any,
    ) -> None:
        passphrase = passphrase_for(passphrase_file, new=True)
        made = making.make(file, passphrase, leave_out=frozenset(leave_out))
        for sha256 in made.missing_files:
            self.stderr.write(f"the file {sha256} is named in the database and is missing or has changed: left out")
        self.stdout.write(
            f"{file}: {made.rows} rows of {len(made.tables)} tables, {len(made.files)} files and the keys, "
            f"as they were at {made.made_at:.19} UTC"
        )
        if copy_erasures is not None:
            lines = erasures.copy_list(copy_erasures)
            self.stdout.write(f"{copy_erasures}: the list of erasures, {lines} lines")
