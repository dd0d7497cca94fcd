"""The package that new_instrument writes works as it is, and docs/adding-an-instrument.md says how to go on."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from survey.console import new_instrument
from survey.exceptions import HunchError
from tests import databases, packages

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-instrument.md").read_text(encoding="utf-8")
NAME = "word_order"


def hunch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own that has the package in `folder` on its path."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder / NAME),
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
    folder = new_instrument.write(NAME, tmp_path)
    listed = re.findall(r"(?m)^\| `([^`]+/?)` \|", PAGE)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = path.relative_to(folder).as_posix()
        if path.name not in ("README.md", "__init__.py"):
            assert any(place == entry or (entry.endswith("/") and place.startswith(entry)) for entry in listed), place


def test_what_is_written_has_no_place_holder_left_and_is_python(tmp_path: Path) -> None:
    for path in new_instrument.write(NAME, tmp_path).rglob("*"):
        assert "INSTRUMENT" not in path.name
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            compile(text, str(path), "exec")
            assert "INSTRUMENT" not in text and "Instrument_" not in text


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
        new_instrument.write(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(HunchError, match="is there already"):
        new_instrument.write(NAME, tmp_path)
    assert list((tmp_path / NAME).iterdir()) == []
