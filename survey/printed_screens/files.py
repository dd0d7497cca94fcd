"""Screens as files to open from a disk: pages without scripts, a table of them, one page with all, and its PDF."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import override

from survey.exceptions import HunchError
from survey.models import Logo, Study
from survey.services.base.writing import replace_file

from .walking import PrintedScreen, Walk

STYLE, LOGO = "hunch.css", "logo.png"
BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("chromium-headless-shell", "chrome-headless-shell"),
)
PDF_SECONDS = 300
Changes = tuple[tuple[re.Pattern[str], str], ...]
# A page as it is where no script runs, with what one would have shown.
WITHOUT_SCRIPT: Changes = (
    (re.compile(r"<script\b.*?</script>", re.DOTALL), ""),
    # A script shows the slider, and is not in the file.
    (re.compile(r"(<\w+\b[^>]*\bdata-track\b[^>]*?) hidden\b"), r"\1"),
    # An element that a script shows, and that belongs into a file.
    (re.compile(r"(<\w+\b[^>]*?) data-printed\b([^>]*?) hidden\b"), r"\1\2"),
    # No number is asked for here before a direction is chosen either.
    (re.compile(r" data-track hidden"), " data-track"),
    (re.compile(r" autofocus"), ""),
)
# What is removed or replaced in a file: it cannot link to other pages or send anything.
CHANGES: Changes = (
    *WITHOUT_SCRIPT,
    (re.compile(r'<link rel="icon"[^>]*>'), ""),
    (re.compile(r'<link rel="stylesheet"[^>]*>'), f'<link rel="stylesheet" href="../{STYLE}">'),
    (re.compile(r' src="[^"]*/logo/[^"]*"'), f' src="../{LOGO}"'),
    (re.compile(r'<input type="hidden"[^>]*>'), ""),
    (re.compile(r' (?:form)?action="[^"]*"'), ""),
    (re.compile(r' data-beacon="[^"]*"'), ""),
    (re.compile(r' href="(?!#|\.\./)[^"]*"'), ' href="#"'),
    (re.compile(r'type="submit"'), 'type="button"'),
    (re.compile(r"\n\s*\n+"), "\n"),
)
MAIN = re.compile(r"<main\b[^>]*>(.*)</main>", re.DOTALL)


def find_browser(browser: str = "") -> str:
    """
    Raises:
        HunchError: there is no Chromium here.
    """
    for name in (browser,) if browser else BROWSERS:
        if path := shutil.which(name):
            return path
    looked_for = browser or ", ".join(BROWSERS)
    raise HunchError(
        f"--pdf: found no browser that can print (looked for {looked_for}): install Chromium, name one "
        "with --browser PATH, or print all.html from any browser"
    )


def write_screens(study: Study, walks: Sequence[Walk], folder: Path, *, now: datetime) -> int:
    """Write every page into a folder for its language, one page with all of them, and a table. Returns the number.

    Raises:
        HunchError: the folder cannot be written.
    """
    style = finders.find(f"frontend/{STYLE}")
    if not isinstance(style, str):
        raise HunchError(f"the pages' style frontend/{STYLE} is not among the static files of this installation")
    languages = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(style, folder / STYLE)
        for logo in Logo.objects.filter(name=study.config.texts.logo):
            (folder / LOGO).write_bytes(bytes(logo.content))
        for walk in walks:
            own = folder / walk.language
            if own.exists():
                shutil.rmtree(own)
            own.mkdir()
            listed = list(_write_language(walk, own))
            languages.append({"code": walk.language, "screens": listed})
        context = {"study": study, "now": now, "languages": languages, "factors": _factors(walks[0])}
        _write(folder / "index.html", _rendered("survey/screens_index.html", context))
    except OSError as exc:
        raise HunchError(f"--out {folder}: cannot be written ({exc.strerror}): choose another folder") from exc
    return sum(len(language["screens"]) for language in languages)


def print_pdf(browser: str, page: Path, target: Path) -> None:
    """Have the browser print a page.

    Raises:
        HunchError: it printed nothing; with what it said.
    """
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"),
        *(f"--print-to-pdf={target.resolve()}", page.resolve().as_uri()),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PDF_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise HunchError(f"--pdf: {browser} did not print {page}: {exc}") from exc
    if done.returncode or not target.exists():
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise HunchError(f"--pdf: {browser} did not print {page} (status {done.returncode}): {said}")


def _write_language(walk: Walk, folder: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    taken: dict[str, int] = {}
    for number, screen in enumerate(walk.found, start=1):
        levels = [f"{factor}-{level}" for factor, level in _common(walk, screen).items()]
        name = "-".join([screen.name, *_kind(walk, screen), *levels])
        taken[name] = taken.get(name, 0) + 1
        again = f"-{taken[name]}" if taken[name] > 1 else ""
        html = screen.html
        for pattern, by in CHANGES:
            html = pattern.sub(by, html)
        file = f"{number:03d}-{name}{again}.html"
        _write(folder / file, html)
        match = MAIN.search(html)
        listed.append(
            {
                "number": number,
                "file": file,
                "name": " ".join([screen.name, *_kind(walk, screen)]).replace("-", " "),
                "title": screen.title,
                "levels": ", ".join(f"{factor}: {level}" for factor, level in _common(walk, screen).items()),
                "main": mark_safe(match[1] if match else ""),  # noqa: S308 - as the page itself was rendered
            }
        )
    context = {"language": walk.language, "screens": listed, "title": walk.config.title}
    _write(folder / "all.html", _rendered("survey/screens_all.html", context))
    return listed


def _kind(walk: Walk, screen: PrintedScreen) -> list[str]:
    """The kinds of item that show this screen, if they are one or two of several; else empty."""
    few = 0 < len(screen.kinds) <= 2 and screen.kinds != walk.kinds_shown
    return [re.sub(r"[^a-z0-9]+", "-", kind.lower()) for kind in sorted(screen.kinds)] if few else []


def _common(walk: Walk, screen: PrintedScreen) -> Mapping[str, str]:
    """The levels that the screen needs: of each factor the level that all walks with this screen share, if any."""
    seen = [walk.combinations[number] for number in sorted(screen.combinations)]
    shared_levels = {}
    for condition in walk.config.conditions:
        levels = {levels[condition.factor] for levels in seen}
        if len(levels) == 1:
            shared_levels[condition.factor] = levels.pop()
        elif len(levels) < len(condition.levels):
            shared_levels[condition.factor] = "-or-".join(level for level in condition.levels if level in levels)
    return shared_levels


def _factors(walk: Walk) -> list[tuple[str, str]]:
    return [(condition.factor, ", ".join(condition.levels)) for condition in walk.config.conditions]


def _rendered(template: str, context: dict[str, Any]) -> str:
    with override("en"):
        return render_to_string(template, context)


def _write(path: Path, text: str) -> None:
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
