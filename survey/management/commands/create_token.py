"""`manage.py create_token USER`: a token for the researchers' API, shown once."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model

from survey.console.command import HunchCommand
from survey.exceptions import HunchError, NotFound
from survey.models import ApiToken
from survey.models.audit import MAX_TOKEN_DAYS, TOKEN_DAYS
from survey.services.base.tokens import issue_token
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Make an API token for a user. It is shown once: only its hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--name", default="", help="what it is for, to distinguish your tokens")
        parser.add_argument(
            "--scope",
            choices=ApiToken.Scope.values,
            default=ApiToken.Scope.READ,
            help="run: it also opens, pauses and closes stages; default: read",
        )
        parser.add_argument(
            "--study", action="append", metavar="SLUG", help="only this study; several times for several"
        )
        parser.add_argument("--days", type=int, default=TOKEN_DAYS, metavar="N", help=f"default: {TOKEN_DAYS}")

    def handle(
        self,
        *args: Any,
        username: str,
        name: str = "",
        scope: str = ApiToken.Scope.READ,
        study: list[str] | None = None,
        days: int = TOKEN_DAYS,
        **options: Any,
    ) -> None:
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise NotFound(f"no active user is called {username!r}; `hunch createsuperuser` or the admin makes one")
        if not 1 <= days <= MAX_TOKEN_DAYS:
            raise HunchError(f"--days: 1 to {MAX_TOKEN_DAYS}, not {days}", code="invalid")
        studies = [lookup.find_study(slug) for slug in study] if study else None
        token, secret = issue_token(user=user, name=name, scope=scope, studies=studies, days=days)
        self.stdout.write(secret)
        self.stderr.write(
            f"This is the only time that it is shown. It expires on {token.expires_at:%Y-%m-%d}. Send it in the "
            "header: Authorization: Token ..."
        )
