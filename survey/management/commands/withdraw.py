"""`manage.py withdraw RESPONDENT`: delete a person's answers at their request; shows first what would be deleted."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from survey.console.command import HunchCommand
from survey.models import Withdrawal
from survey.services.sittings import withdrawal


class Command(HunchCommand):
    help = "Delete all that a person gave, at their request. Shows what would be deleted; --yes deletes it for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("pseudonym", metavar="RESPONDENT", help="as exports and the admin name them: r-...")
        parser.add_argument("--reason", default="", help="how you came to know (a letter of 3 May), kept with the date")
        parser.add_argument("--yes", action="store_true", help="do it")

    def handle(self, *args: Any, pseudonym: str, reason: str, yes: bool, **options: Any) -> None:
        respondent = withdrawal.find_respondent(pseudonym)
        if earlier := Withdrawal.objects.filter(respondent=respondent).first():
            self.stdout.write(f"{respondent} was withdrawn on {earlier.at:%Y-%m-%d %H:%M} UTC: there is nothing left")
            return
        for line in withdrawal.plan_withdrawal(respondent).lines():
            self.stdout.write(line)
        if not yes:
            self.stdout.write("nothing was deleted; repeat with --yes to do it")
            return
        done = withdrawal.withdraw(respondent=respondent, now=timezone.now(), reason=reason)
        self.stdout.write(f"withdrawn: {done.answers} answers of {respondent} are deleted")
