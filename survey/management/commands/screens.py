"""`manage.py screens SLUG --out DIR`: every screen, condition and language of a study, for its reviewers."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.printed_screens.files import find_browser
from survey.printed_screens.printing import print_screens
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Write every screen of a study as HTML (and PDF), for the ethics board, the preregistration and the appendix: "
        "each language, each level of its conditions, each kind of item, refused answers and all ends. Nothing is left "
        "in the database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write to")
        parser.add_argument("--language", action="append", default=[], metavar="CODE", help="only this one (all)")
        parser.add_argument("--pdf", action="store_true", help="also one PDF for each language, printed by a Chromium")
        parser.add_argument("--browser", default="", metavar="PATH", help="the Chromium to print with")

    def handle(
        self, *args: Any, slug: str, out: Path, language: list[str], pdf: bool, browser: str, **options: Any
    ) -> None:
        study = lookup.find_study(slug)
        printer = find_browser(browser) if pdf else ""
        written = print_screens(study, out, languages=language, browser=printer, say=self.stderr.write)
        self.stdout.write(f"wrote {written.count} screens; begin at {out / 'index.html'}")
        for target in written.pdfs:
            self.stdout.write(f"wrote {target}")
