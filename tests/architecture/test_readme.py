"""What the README says is there: its commands, settings and files, and none is left out of it."""

import re
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands

ROOT = Path(settings.BASE_DIR)
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}


def read_by_settings() -> set[str]:
    source = (ROOT / "survey" / "settings.py").read_text(encoding="utf-8")
    return set(re.findall(r'read_\w+\(\s*"([A-Z_]+)"', source)) - NOT_OURS


def read_by_predictors() -> set[str]:
    """The libraries read their servers' addresses and keys where they are used."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "predictors").rglob("*.py"))
    return {name for source in sources for name in re.findall(r'"((?:HUNCH|VOYAGE)_[A-Z_]+[A-Z])"', source)}


def our_commands() -> set[str]:
    return {name for name, app in get_commands().items() if app == "survey"}


def test_every_setting_has_its_row_and_every_row_its_setting() -> None:
    rows = set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", README))
    assert rows == read_by_settings() | read_by_predictors()


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"manage\.py (\w+)", README))
    assert named
    assert named <= set(get_commands())


def test_every_command_of_ours_is_in_its_table() -> None:
    table = README.split("### What happens to an answer")[0]
    for command in sorted(our_commands()):
        assert re.search(rf"(?m)^\|.*`{command}[ `]", table), f"{command} has no row in the README"


def test_every_file_it_links_to_exists() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).is_file(), link
