"""`manage.py demographics SLUG`: what the panel knows of a study's people, by pseudonym."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.panels import demographics
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Ask the panel for what it knows of the people of a study (age, sex, country ...), and write it by pseudonym "
        "and without the panel's ids. Who withdrew is left out; the audit records that you asked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv", help="only you can read it")

    def handle(self, *args: Any, slug: str, out: Path, **options: Any) -> None:
        table = demographics.read_demographics(lookup.find_study(slug))
        demographics.write_demographics(table, out)
        self.stdout.write(f"wrote {out} ({len(table.rows)} people, {len(table.columns) - 1} facts)")
        if table.unknown:
            self.stdout.write(f"{table.unknown} of the panel's people never began here, or have withdrawn")
