"""`manage.py first_account`: the address that makes the first account of an empty server."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from survey.console.command import HunchCommand
from survey.exceptions import StateRefused
from survey.services.base import first_account


class Command(HunchCommand):
    help = "Print the address that makes the first account. It works once, for a day, while there is no account."

    def add_arguments(self, parser: ArgumentParser) -> None:
        host = f"https://{settings.ALLOWED_HOSTS[0]}" if settings.IN_PRODUCTION else None
        parser.add_argument(
            "--root",
            default=host or f"http://127.0.0.1:{settings.HUNCH_PORT}",
            metavar="URL",
            help="the beginning of this server's addresses",
        )

    def handle(self, *args: Any, root: str, **options: Any) -> None:
        secret = first_account.offer()
        if secret is None:
            raise StateRefused("there is an account already: it makes further ones in the admin, under Users")
        self.stdout.write(f"{root.rstrip('/')}{first_account.path(secret)}")
        self.stderr.write("It works once, for 24 hours, and makes an account that may do everything.")
