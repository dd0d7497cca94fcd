"""`manage.py screens SLUG --out DIR`: every screen, condition and language of a study, for its reviewers."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils import timezone

from survey.console.command import HunchCommand
from survey.exceptions import HunchError, StateRefused
from survey.printed_screens.copying import open_copy
from survey.printed_screens.files import find_browser, print_pdf, write_screens
from survey.printed_screens.walking import Walk, undone
from survey.services.studies import finding


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
        study = finding.find_study(slug)
        if study.is_blind:
            raise StateRefused(f"{slug} is blind, and its screens are named by condition: unblind it first")
        known = study.config.languages
        if strangers := [code for code in language if code not in known]:
            raise HunchError(f"--language: {slug} is not in {', '.join(strangers)}; it is in {', '.join(known)}")
        printer = find_browser(browser) if pdf else ""
        walks = []
        with undone():
            stage, kinds = open_copy(study)
            for code in dict.fromkeys(language or known):
                self.stderr.write(f"walking through {slug} in {code}")
                walk = Walk(stage=stage, kinds=kinds, language=code)
                walk.run()
                walks.append(walk)
        count = write_screens(study, walks, out, now=timezone.now())
        self.stdout.write(f"wrote {count} screens; begin at {out / 'index.html'}")
        for walk in walks if printer else ():
            target = out / f"screens-{walk.language}.pdf"
            print_pdf(printer, out / walk.language / "all.html", target)
            self.stdout.write(f"wrote {target}")
