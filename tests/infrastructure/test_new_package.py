"""The packages that new_instrument and new_panel write work as they are, and the documents say how to go on."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from survey.console import new_package
from survey.console.new_package import INSTRUMENT, PANEL, Kind
from survey.exceptions import HunchError
from tests import databases, packages

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-instrument.md").read_text(encoding="utf-8")
PANELS = (ROOT / "docs" / "panels.md").read_text(encoding="utf-8")
NAME = "word_order"


def hunch(folder: Path, *arguments: str, package: str = NAME) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own that has the package in `folder` on its path."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder / package),
            "HUNCH_VAR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "survey.settings",
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.thorough
@pytest.mark.slow
def test_following_the_page_leads_to_an_instrument_that_works(tmp_path: Path, django_db_setup: None) -> None:
    assert f"hunch new_instrument {NAME} " in PAGE
    call_command("new_instrument", NAME, "--out", str(tmp_path), stdout=io.StringIO())
    # With --keepdb only the package's own migration is left to be run.
    databases.copy_for_a_process(tmp_path / "var" / "test.sqlite3")
    packages.write_metadata(tmp_path / NAME, tmp_path / NAME)
    run = hunch(tmp_path, "makemigrations", NAME, "--check", "--dry-run")
    assert run.returncode == 0, run.stdout + run.stderr
    failing = hunch(tmp_path, "test", NAME, "--keepdb")
    assert re.findall(r"(?m)^(?:FAIL|ERROR): (\w+)", failing.stderr) == ["test_it_has_a_title_of_its_own"]
    assert "System check identified no issues" in failing.stdout + failing.stderr
    assert f"change `title` in {NAME}/instrument.py" in failing.stderr and "Ran 2 tests" in failing.stderr
    old, new = (code.strip("\n") for code in re.findall(r"(?s)```python\n(.*?)```", PAGE))
    file = tmp_path / NAME / NAME / "instrument.py"
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    passing = hunch(tmp_path, "test", NAME, "--keepdb")
    assert passing.returncode == 0, passing.stderr


def test_the_page_lists_every_place(tmp_path: Path) -> None:
    folder = new_package.write(INSTRUMENT, NAME, tmp_path)
    listed = re.findall(r"(?m)^\| `([^`]+/?)` \|", PAGE)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = path.relative_to(folder).as_posix()
        if path.name not in ("README.md", "__init__.py"):
            assert any(place == entry or (entry.endswith("/") and place.startswith(entry)) for entry in listed), place


@pytest.mark.thorough
@pytest.mark.slow
def test_a_new_panel_passes_its_own_tests(tmp_path: Path, django_db_setup: None) -> None:
    assert "hunch new_panel crowdly " in PANELS and "hunch test crowdly" in PANELS
    call_command("new_panel", "crowdly", "--out", str(tmp_path), stdout=io.StringIO())
    databases.copy_for_a_process(tmp_path / "var" / "test.sqlite3")
    packages.write_metadata(tmp_path / "crowdly", tmp_path / "crowdly")
    run = hunch(tmp_path, "test", "crowdly", "--keepdb", package="crowdly")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Ran 9 tests" in run.stderr


def test_every_file_of_a_new_panel_is_named_where_it_is_explained(tmp_path: Path) -> None:
    folder = new_package.write(PANEL, "crowdly", tmp_path)
    for path in sorted(path for path in (folder / "crowdly").glob("*.py") if path.name != "__init__.py"):
        assert f"`crowdly/{path.name}`" in PANELS, path.name


@pytest.mark.parametrize(("kind", "name"), [(INSTRUMENT, NAME), (PANEL, "crowd_of_mine")])
def test_what_is_written_has_no_place_holder_left_and_is_python(kind: Kind, name: str, tmp_path: Path) -> None:
    place_holders = (kind.word, f"{kind.word.capitalize()}_", "IN_CAPITALS_")
    for path in new_package.write(kind, name, tmp_path).rglob("*"):
        assert not any(word in path.name for word in place_holders)
        if path.suffix in (".py", ".toml", ".md"):
            text = path.read_text(encoding="utf-8")
            assert not any(word in text for word in place_holders), path
            if path.suffix == ".py":
                compile(text, str(path), "exec")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Word", "is no name for a package"),
        ("word-order", "is no name for a package"),
        ("class", "is no name for a package"),
        ("x" * 31, "is no name for a package"),
        ("own_answers", "something that is installed is called own_answers"),
        ("json", "something that is installed is called json"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(HunchError, match=why):
        new_package.write(INSTRUMENT, name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(HunchError, match="is there already"):
        new_package.write(INSTRUMENT, NAME, tmp_path)
    assert list((tmp_path / NAME).iterdir()) == []


@pytest.mark.parametrize("name", ["prolific", "generic", "json"])
def test_a_panel_does_not_take_the_name_of_another_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(HunchError, match=f"something that is installed is called {name}"):
        new_package.write(PANEL, name, tmp_path)
