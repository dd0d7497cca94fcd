"""`manage.py purge_identities --older-than 90d`: remove panels' ids of people; shows first what would be removed."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from survey.console.command import HunchCommand
from survey.models import Study
from survey.panels import purging
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Remove panels' ids of people, in studies that have nobody left to pay. The keyed hashes that bar a second "
        "participation stay; --with-hashes removes them too once a study is over. Shows what would be removed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than", required=True, metavar="DAYS", help="of people who came longer ago than this: 90d"
        )
        parser.add_argument("--study", metavar="SLUG", help="default: every study")
        parser.add_argument(
            "--with-hashes", action="store_true", help="also remove the keyed hashes of studies that are over"
        )
        parser.add_argument("--yes", action="store_true", help="do it")

    def handle(
        self, *args: Any, older_than: str, study: str | None, with_hashes: bool, yes: bool, **options: Any
    ) -> None:
        before = timezone.now() - purging.read_age(older_than)
        chosen = [lookup.find_study(study)] if study else list(Study.objects.order_by("slug"))
        for chosen_study in chosen:
            plan = purging.plan_purge(chosen_study, before=before, with_hashes=with_hashes)
            if plan.why_not:
                self.stdout.write(f"{chosen_study.slug}: kept, {plan.why_not}")
                continue
            if yes and (plan.identities or plan.submissions or plan.hashes):
                plan = purging.purge(chosen_study, before=before, with_hashes=with_hashes)
            done = "removed" if yes else "would be removed"
            self.stdout.write(
                f"{chosen_study.slug}: ids of {plan.identities} people and {plan.submissions} submissions {done}"
                + (f", and the hashes of {plan.hashes} people" if plan.hashes else "")
            )
            if plan.why_keep_hashes:
                self.stdout.write(f"  hashes kept: {plan.why_keep_hashes}")
            elif not with_hashes and plan.identities:
                self.stdout.write(
                    "  keyed hashes stay, so that nobody takes part twice (--with-hashes once the study is over)"
                )
        if not yes:
            self.stdout.write("nothing was removed; repeat with --yes to do it")
