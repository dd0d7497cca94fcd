"""`manage.py keys`: say whether the keys are those that this database was used with, or accept new ones."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.models import KeyFingerprint
from survey.services.base import keys
from survey.services.base.auditing import record


class Command(HunchCommand):
    help = "Say whether the keys in force are those that this database was used with; status 1 if they are not."
    checks_keys = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--accept-secret-key",
            action="store_true",
            help="the old SECRET_KEY is lost: go on with this one; people come back to their sittings by the panel's "
            "address only, and everybody logs in again",
        )
        parser.add_argument(
            "--accept-identity-key",
            action="store_true",
            help="go on with this HUNCH_IDENTITY_KEY; refused while anything is here that the old one has encrypted",
        )

    def handle(self, *args: Any, accept_secret_key: bool, accept_identity_key: bool, **options: Any) -> None:
        for name, accepted in ((keys.SECRET, accept_secret_key), (keys.IDENTITY, accept_identity_key)):
            if accepted:
                keys.accept(name)
                record("accept_key", name)
        keys.check()
        for row in KeyFingerprint.objects.all():
            self.stdout.write(f"{row.name}: the one that this database is used with, since {row.since:%Y-%m-%d}")
