"""`manage.py verify_stage SLUG INDEX`: draw a stage's plan again from its manifest and compare."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.results.estimates import interim
from survey.services.stages import verifying
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Rebuild a stage's plan from its manifest and say whether the hashes agree; status 1 if they do not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("index", metavar="INDEX", type=int)

    def handle(self, *args: Any, slug: str, index: int, **options: Any) -> None:
        stage = lookup.find_stage(lookup.find_study(slug), index)
        verification = verifying.verify_stage(stage)
        verification.differences += interim.verify_looks(stage)
        if not verification.agrees:
            for difference in verification.differences:
                self.stderr.write(difference)
            self.stderr.write(f"{stage} could not be rebuilt: {len(verification.differences)} differences")
            raise SystemExit(1)
        self.stdout.write(f"plan: {verification.slots} slots rebuilt, hash {stage.plan_sha256}")
        if verification.answers is not None:
            rest = f" except {verification.withdrawn} withdrawn" if verification.withdrawn else ""
            self.stdout.write(f"snapshot: {verification.answers} answers rebuilt{rest}, hash {stage.snapshot_sha256}")
        if looks := stage.looks.count():
            self.stdout.write(f"looks: {looks} agree with their stopping rule")
        self.stdout.write(f"{stage} agrees with its manifest")
