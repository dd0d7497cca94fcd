"""`manage.py restore FILE`: fill an empty database from a backup, and erase again what was erased since."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils import timezone

from survey.backups import archive, restoring
from survey.backups.archive import BackupContents
from survey.console.command import HunchCommand
from survey.console.passphrases import add_passphrase, passphrase_for
from survey.exceptions import HunchError
from survey.models import ApiToken, StudyInvitation, StudyMembership
from survey.services.base import erasures
from survey.services.base.erasures import ListedErasure


class Command(HunchCommand):
    help = (
        "Fill an empty database, the folder of files and the keys from a backup. Everything is checked before anything "
        "is written. What was erased after the backup, by the list of erasures, is erased again."
    )
    needs_database = False  # It makes the tables itself.

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        add_passphrase(parser)
        parser.add_argument(
            "--check", action="store_true", help="only read the backup to its end and compare all hashes"
        )
        parser.add_argument(
            "--keys-to",
            type=Path,
            metavar="FOLDER",
            help="only write the keys to secret_key and identity_key in FOLDER",
        )
        parser.add_argument("--replace", action="store_true", help="delete all that is in the database first")
        parser.add_argument(
            "--erasures", type=Path, metavar="FILE", help="the list of erasures; default: HUNCH_ERASURES"
        )
        parser.add_argument(
            "--without-erasures",
            action="store_true",
            help="the list is lost: what was erased after the backup will be back",
        )

    def handle(
        self,
        *args: Any,
        file: Path,
        passphrase_file: Path | None,
        check: bool,
        keys_to: Path | None,
        replace: bool,
        erasures: Path | None,
        without_erasures: bool,
        **options: Any,
    ) -> None:
        passphrase = passphrase_for(passphrase_file)
        if check or keys_to:
            contents, keys = archive.verified(file, passphrase)
            if keys_to:
                self.write_keys(keys_to, keys)
            self.describe(file, contents)
            return
        listed = None if without_erasures else read_list(erasures)
        done = restoring.restore(file, passphrase, listed=listed, replace=replace)
        self.describe(file, done.contents)
        self.stdout.write(
            "restored. What was paid and who came after that time is unknown here: run reconcile for every study. No "
            "bonus is paid before you have looked at the panel and said what was paid (pay_bonuses --settle)"
        )
        self.describe_rights()
        for name in done.new_keys:
            self.stdout.write(f"{name}: the backup's is in force now, in {settings.HUNCH_VAR}")
        for what, count in done.erased_again.items():
            self.stdout.write(f"erased again: {what} of {count}")
        if listed is None:
            self.stderr.write(
                f"WITHOUT A LIST OF ERASURES: what people had deleted after {done.contents.made_at:.19} UTC is back. "
                "Withdraw them again before anything else is done with the data."
            )

    def describe(self, file: Path, contents: BackupContents) -> None:
        self.stdout.write(
            f"{file}: of {contents.made_at:.19} UTC, Hunch {contents.version}, {contents.rows} rows of "
            f"{len(contents.tables)} tables, {len(contents.files)} files; all hashes agree"
        )
        for sha256 in contents.missing_files:
            self.stderr.write(f"the file {sha256} is named in the database and was missing when the backup was made")

    def describe_rights(self) -> None:
        """What else is as it was, and lets people in whom somebody has shut out since."""
        tokens = ApiToken.objects.filter(revoked_at__isnull=True, expires_at__gt=timezone.now()).order_by("pk")
        invitations = StudyInvitation.objects.filter(
            accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=timezone.now()
        )
        names = ", ".join(f"{token.prefix} of {token.user}" for token in tokens.select_related("user")) or "none"
        lines = [
            "who may do what is as it was then. Before you start again, undo what was changed since:",
            f"  {get_user_model().objects.filter(is_active=True).count()} accounts may log in, with the passwords and "
            "second factors of that time: disable those that were disabled since, and give new passwords to those "
            "whose password or device was lost (admin, Users; hunch unlock USER --remove-codes)",
            f"  {StudyMembership.objects.count()} members of studies: remove those who were removed since "
            "(hunch members SLUG remove USER)",
            f"  {invitations.count()} invitations to studies can be accepted: revoke those that were revoked since",
            f"  API tokens that hold: {names}: revoke those that were revoked since (hunch revoke_token PREFIX)",
        ]
        for line in lines:
            self.stdout.write(line)

    def write_keys(self, folder: Path, keys: dict[str, str]) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, file in restoring.KEY_FILES.items():
                restoring.write_key(folder / file, keys[name])
                self.stdout.write(f"{name} is in {folder / file}")
        except OSError as exc:
            raise HunchError(f"--keys-to: {exc.filename}: {exc.strerror}; name a new folder") from exc


def read_list(named: Path | None) -> list[ListedErasure]:
    path = named or settings.HUNCH_ERASURES
    if not path.is_file():
        raise HunchError(
            f"{path}: there is no list of erasures, so what people had deleted after the backup would come back. Name "
            "a copy of the list with --erasures, or go on without it: --without-erasures"
        )
    return erasures.read_list(path)
