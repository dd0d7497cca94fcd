"""`manage.py store_logo`: a logo for respondents' pages."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.input_tables import decoding
from survey.services.studies import logos


class Command(HunchCommand):
    help = "Store the logo of an institution under a name, which study files use as [texts] logo."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a PNG, at most 100 kB and 2,000 pixels a side")
        parser.add_argument("name", help="small letters, digits and hyphens")

    def handle(self, *args: Any, file: Path, name: str, **options: Any) -> None:
        content = decoding.read_bytes(file, largest=logos.LARGEST, too_large=logos.too_large)
        logo = logos.store(content, name=name)
        self.stdout.write(f"Stored the logo {logo}, {logo.width} by {logo.height} pixels.")
