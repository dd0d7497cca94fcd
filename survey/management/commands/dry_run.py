"""`manage.py dry_run SLUG --out DIR`: simulated people fill every figure and table of a study's test copy."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.services.studies import lookup
from survey.simulator import dry_run


class Command(HunchCommand):
    help = (
        "Send simulated people through every stage of a study's test copy, train and plan as in the study, then make "
        "every report, estimate and export, and name what could not be filled. The study itself is not touched."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder for all that is made")
        parser.add_argument("--people", type=int, metavar="N", help="in each stage; default: as many as have a place")

    def handle(self, *args: Any, slug: str, out: Path, people: int | None, **options: Any) -> None:
        if people is not None and people < 1:
            raise HunchError(f"--people: {people} is not 1 or more")
        study = lookup.find_study(slug)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise HunchError(f"--out {out}: cannot be made ({exc.strerror}): choose another folder") from exc
        rehearsal = dry_run.run(study, out, people=people, say=lambda done, total, words: self.stderr.write(words))
        for stage in rehearsal.stages:
            self.stdout.write(f"stage {stage['stage']}: {stage['people']} people, {stage['state']}")
        for note in rehearsal.notes:
            self.stdout.write(f"note: {note}")
        for report in rehearsal.filled:
            self.stdout.write(f"{report.title}: {f'not filled: {report.why}' if report.why else 'filled'}")
