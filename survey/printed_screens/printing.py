"""A study's screens from the walks to the files, as the command and the job write them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from survey.exceptions import HunchError, StateRefused
from survey.models import Study

from .copying import open_copy
from .files import print_pdf, write_screens
from .walking import Walk, undone


@dataclass(frozen=True)
class PrintedScreens:
    """How many screens were written, and the PDF of each language."""

    count: int
    pdfs: Sequence[Path]


def print_screens(
    study: Study,
    folder: Path,
    *,
    languages: Sequence[str] = (),
    browser: str = "",
    say: Callable[[str], None] = lambda line: None,
) -> PrintedScreens:
    """Write every screen of the study into the folder. Nothing is left in the database.

    Args:
        languages: only these; all of the study's without them.
        browser: the Chromium that prints a PDF of each language; none is printed without it.
        say: called with what is done next.

    Raises:
        HunchError: the study lacks one of the languages, its items cannot be shown, or the folder cannot be written.
    """
    if study.is_blind:
        raise StateRefused(f"{study.slug} is blind, and its screens are named by condition: unblind it first")
    known = study.config.languages
    if strangers := [code for code in languages if code not in known]:
        raise HunchError(f"--language: {study.slug} is not in {', '.join(strangers)}; it is in {', '.join(known)}")
    walks = []
    with undone():
        stage, kinds = open_copy(study)
        for code in dict.fromkeys(languages or known):
            say(f"walking through {study.slug} in {code}")
            walk = Walk(stage=stage, kinds=kinds, language=code)
            walk.run()
            walks.append(walk)
    count = write_screens(study, walks, folder, now=timezone.now())
    pdfs = []
    for walk in walks if browser else ():
        say(f"printing the screens in {walk.language}")
        target = folder / f"screens-{walk.language}.pdf"
        print_pdf(browser, folder / walk.language / "all.html", target)
        pdfs.append(target)
    return PrintedScreens(count, pdfs)
