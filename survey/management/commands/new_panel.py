"""`manage.py new_panel NAME`: Write the package of a new panel, to be filled in."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console import new_package
from survey.console.command import HunchCommand


class Command(HunchCommand):
    help = "Write an installable package with a new panel: its class, a client of its HTTP API, a fake one, and tests."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="small letters, digits and _, such as crowdly")
        parser.add_argument("--out", default=".", metavar="DIR", help="where the folder is written (default: here)")

    def handle(self, *args: Any, name: str, out: str, **options: Any) -> None:
        folder = new_package.write(new_package.PANEL, name, Path(out))
        self.stdout.write(f"wrote {folder}")
        self.stdout.write(
            f"next: pip install -e {folder}, then hunch test {name}; {name}/client.py has the calls to be put into the "
            "panel's own words"
        )
