"""`manage.py purge_identities --older-than 90d`: forget what a panel calls people; what goes is shown first."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from survey.console.command import HunchCommand
from survey.models import Study
from survey.panels import purging
from survey.services.studies import finding


class Command(HunchCommand):
    help = (
        "Remove panels' ids of people, of studies that have nobody left to pay. The keyed hashes that bar a second "
        "participation stay, but with --with-hashes once a study is over. Shows what would go."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--older-than", required=True, metavar="DAYS", help="of people who came before: 90d")
        parser.add_argument("--study", metavar="SLUG", help="default: every study")
        parser.add_argument("--with-hashes", action="store_true", help="the keyed hashes too, of studies that are over")
        parser.add_argument("--yes", action="store_true", help="do it")

    def handle(
        self, *args: Any, older_than: str, study: str | None, with_hashes: bool, yes: bool, **options: Any
    ) -> None:
        before = timezone.now() - purging.read_age(older_than)
        chosen = [finding.find_study(study)] if study else list(Study.objects.order_by("slug"))
        for one in chosen:
            found = purging.plan_purge(one, before=before, with_hashes=with_hashes)
            if found.why_not:
                self.stdout.write(f"{one.slug}: kept, {found.why_not}")
                continue
            if yes and (found.identities or found.submissions or found.hashes):
                found = purging.purge(one, before=before, with_hashes=with_hashes)
            done = "removed" if yes else "would be removed"
            self.stdout.write(
                f"{one.slug}: ids of {found.identities} people and {found.submissions} submissions {done}"
                + (f", and the hashes of {found.hashes} people" if found.hashes else "")
            )
            if found.why_keep_hashes:
                self.stdout.write(f"  hashes kept: {found.why_keep_hashes}")
            elif not with_hashes and found.identities:
                self.stdout.write(
                    "  keyed hashes stay: by them nobody takes part twice (--with-hashes, once it is over)"
                )
        if not yes:
            self.stdout.write("nothing was removed; repeat with --yes to do it")
