"""`manage.py create_token USER`: a token for the researchers' API, shown once."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.models import ApiToken
from survey.services.base.auditing import record


class Command(HunchCommand):
    help = "Make an API token for a user. It is shown once: only its hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--name", default="", help="what it is for, to distinguish your tokens")

    def handle(self, *args: Any, username: str, name: str, **options: Any) -> None:
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise NotFound(f"no active user is called {username!r}; `hunch createsuperuser` or the admin makes one")
        token, secret = ApiToken.issue(user=user, name=name)
        record("create_token", token, token_user=username)
        self.stdout.write(secret)
        self.stderr.write("This is the only time that it is shown. Send it in the header: Authorization: Token ...")
