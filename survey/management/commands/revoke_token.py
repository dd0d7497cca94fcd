"""`manage.py revoke_token PREFIX`: programs that use the token are refused from then on."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.models import ApiToken
from survey.services.base.tokens import revoke_token


class Command(HunchCommand):
    help = "Revoke an API token. It cannot be undone; a new one can be made at any time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("prefix", metavar="PREFIX", help="the token's first 8 characters, as the admin lists them")

    def handle(self, *args: Any, prefix: str, **options: Any) -> None:
        tokens = list(ApiToken.objects.select_related("user").filter(prefix=prefix))
        if len(tokens) != 1:
            raise NotFound(f"PREFIX: {len(tokens)} tokens begin with {prefix!r}; the admin lists them all")
        done = revoke_token(tokens[0])
        self.stdout.write(f"{tokens[0]} {'is revoked' if done else 'was revoked before'}")
