"""`manage.py new_instrument NAME`: Write the package of a new instrument, to be filled in."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console import new_package
from survey.console.command import HunchCommand


class Command(HunchCommand):
    help = "Write an installable package with a new instrument that works, and one failing test that says what is next."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="small letters, digits and _, such as word_order")
        parser.add_argument("--out", default=".", metavar="DIR", help="where the folder is written (default: here)")

    def handle(self, *args: Any, name: str, out: str, **options: Any) -> None:
        folder = new_package.write(new_package.INSTRUMENT, name, Path(out))
        self.stdout.write(f"wrote {folder}")
        self.stdout.write(f"next: pip install -e {folder}, then hunch test {name}, whose one failure says what to do")
