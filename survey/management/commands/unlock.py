"""`manage.py unlock USER`: let a researcher log in again who failed too often, or has lost the device with codes."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.services.base import second_factor
from survey.web import lockout


class Command(HunchCommand):
    help = "Let a user log in again who failed too often, or who has lost the device that shows codes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--remove-codes", action="store_true", help="ask for no codes, until they are set up again")

    def handle(self, *args: Any, username: str, remove_codes: bool, **options: Any) -> None:
        user = get_user_model().objects.filter(username=username).first()
        if user is None:
            raise NotFound(f"no user is called {username!r}")
        was_counted = lockout.unlock(user)
        self.stdout.write(f"{username}: failed log-ins are forgotten" if was_counted else f"{username}: was not locked")
        if remove_codes:
            was_there = second_factor.remove(user)
            self.stdout.write(f"{username}: codes are {'no longer' if was_there else 'not'} asked for")
