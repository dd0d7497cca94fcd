"""A study's screens as a job: all of them as pages in a ZIP, and as a PDF of each language."""

import shutil
import zipfile
from collections.abc import Mapping
from typing import Any

from survey.contracts.reports import Argument
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right

from .files import find_browser
from .printing import print_screens


def _languages(study: Study) -> list[str]:
    return list(study.config.languages)


def make(work: Work) -> Mapping[str, Any]:
    study, folder = work.study, work.folder / "files"
    languages = work.arguments["language"] or tuple(study.config.languages)
    total = 2 * len(languages)
    steps: list[str] = []

    def say(line: str) -> None:
        steps.append(line)
        work.progress(min(len(steps) - 1, total), total, line)

    try:
        browser, why = find_browser(), ""
    except HunchError:
        # The pages in the ZIP print as well from any browser.
        browser, why = "", "there is no Chromium on the worker's machine: open all.html in the ZIP and print it"
    written = print_screens(study, folder, languages=languages, browser=browser, say=say)
    for pdf in written.pdfs:
        shutil.move(pdf, work.folder / f"{study.slug}-{pdf.name}")
    with zipfile.ZipFile(work.folder / f"{study.slug}-screens.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, path.relative_to(folder).as_posix())
    shutil.rmtree(folder)
    return {"screens": written.count, "without_pdf": why}


KIND = JobKind(
    name="screens",
    title="Screens",
    summary="Every screen in each language and under each condition, as a PDF and as pages in a ZIP, for reviewers.",
    right=Right.SEE,
    make=make,
    arguments=(
        Argument("language", "only this one; all without it", many=True, choices=_languages, label="Languages"),
    ),
)
