"""What other people's packages bring is found by entry point, stays out of the core, and cannot bring it down."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import packages

ROOT = Path(__file__).parents[2]
CORE = ("survey", "frontend", "bandit", "predictors", "tools", "studies")
INSTRUMENTS = """
import json
import django
django.setup()
from survey.contracts import instruments
from django.urls import get_resolver
get_resolver().check()
said = {}
for name in NAMES:
    try:
        instruments.kind(name)
    except instruments.InstrumentMissing as exc:
        said[name] = exc.message
print(json.dumps([instruments.names(), said]))
"""
BUILT_IN = ["belief_update", "own_answers"]
APPS = """
from survey.contracts.apps import InstrumentApp


class Config(InstrumentApp):
    name = "NAME"
    label = "NAME"
    instrument = "NAME.instrument.Kind"
"""
WORKING = """
from survey.instruments.own_answers.instrument import OwnAnswers


class Kind(OwnAnswers):
    name = "NAME"
    contract = CONTRACT
"""
MODELS = """
from django.db import models


class Row(models.Model):
    pass
"""
ADMIN = """
from django.contrib import admin
from .models import Row

admin.site.register(Row)
"""


def names_of_packages() -> Iterator[str]:
    """Modules and plug-ins of the packages in tests/packages."""
    for file in sorted(packages.HERE.glob("*/pyproject.toml")):
        yield from (path.name for path in (file.parent / "src").iterdir() if path.name != "__pycache__")
        for of_group in tomllib.loads(file.read_text(encoding="utf-8"))["project"]["entry-points"].values():
            yield from of_group


def test_no_file_of_the_core_names_a_package_of_the_tests() -> None:
    names = "|".join(map(re.escape, sorted(set(names_of_packages()))))
    pattern = re.compile(rf"[\"'`/.]({names})[\"'`/.]|\b(import|from) ({names})\b")
    naming = [
        str(path.relative_to(ROOT))
        for folder in CORE
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".html", ".js", ".css", ".po", ".toml")
        and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert naming == []


def brought(folder: Path, name: str, **modules: str) -> None:
    """A package that brings an instrument called `name`, to be put on the path."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("")
    for module, source in {"apps": APPS, **modules}.items():
        (package / f"{module}.py").write_text(source.replace("NAME", name).replace("CONTRACT", "2"))
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[hunch.instruments]\n{name} = {name}.apps:Config\n")


def started(tmp_path: Path, *names: str) -> tuple[list[str], dict[str, str], str]:
    """The instruments that a fresh process knows, why the named ones cannot be used, and what it logged."""
    run = subprocess.run(
        [sys.executable, "-c", INSTRUMENTS.replace("NAMES", repr(list(names)))],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(tmp_path),
            "HUNCH_VAR": str(tmp_path / "var"),
            "DJANGO_SETTINGS_MODULE": "survey.settings",
        },
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    *logged, last = run.stdout.splitlines()
    known, said = json.loads(last)
    return known, said, "\n".join(logged)


BROKEN: dict[str, tuple[dict[str, str], str]] = {
    "no_module": ({"apps": "import nowhere_to_be_found"}, "No module named 'nowhere_to_be_found'"),
    "no_app": ({"apps": "class Config: pass"}, "is no InstrumentApp"),
    "other_label": ({"apps": APPS.replace('label = "NAME"', 'label = "survey"')}, "labelled 'survey'"),
    "bad_models": ({"models": "raise ValueError('no table')", "admin": ADMIN, "instrument": WORKING}, "no table"),
    "no_instrument": ({}, "No module named 'no_instrument.instrument'"),
    "fails": ({"instrument": "1 / 0"}, "division by zero"),
    "no_class": ({"instrument": "Kind = 3"}, "'int' object has no attribute 'name'"),
    "other_name": ({"instrument": WORKING.replace("NAME", "another")}, "it is called 'another'"),
    "old": ({"instrument": WORKING.replace("CONTRACT", "1")}, "written for contract 1, and this is contract 2"),
    "half": (
        {
            "instrument": "from survey.contracts.instruments import Instrument\n"
            "class Kind(Instrument):\n    name = 'NAME'\n    contract = 2\n"
        },
        "it lacks answer_values, ",
    ),
}


@pytest.fixture(scope="module")
def with_broken_ones(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, str], str]:
    folder = tmp_path_factory.mktemp("site")
    for name, (modules, _reason) in BROKEN.items():
        brought(folder, name, **modules)
    brought(folder, "own_answers", instrument=WORKING)  # a name that is taken
    brought(folder, "other", instrument=WORKING, models=MODELS, admin=ADMIN)
    return started(folder, "other", "own_answers", *BROKEN)


def test_an_installed_package_brings_an_instrument_whatever_the_others_do(with_broken_ones: Any) -> None:
    known, said, _logged = with_broken_ones
    assert known == sorted([*BUILT_IN, "other"])
    assert set(said) == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_one_is_named_in_a_warning_with_the_reason(name: str, with_broken_ones: Any) -> None:
    _known, said, logged = with_broken_ones
    reason = BROKEN[name][1]
    assert said[name].startswith(f"the instrument '{name}' cannot be used: ") and reason in said[name]
    (line,) = [line for line in logged.splitlines() if f"the instrument {name} cannot be used: " in line]
    assert "WARNING" in line and reason in line


def test_a_name_that_is_taken_stays_with_who_has_it(with_broken_ones: Any) -> None:
    _known, said, logged = with_broken_ones
    assert "the instrument own_answers cannot be used: TypeError: another installed app has this name" in logged
    assert "own_answers" not in said


def test_a_broken_copy_of_a_working_package_leaves_its_neighbours_running(tmp_path: Path) -> None:
    """As after an update that went wrong: the toy cannot be imported any more, and the cloze beside it goes on."""
    for name in ("toy_instrument", "cloze"):
        (source,) = (path for path in (packages.HERE / name / "src").iterdir() if path.name != "__pycache__")
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        packages.write_metadata(packages.HERE / name, tmp_path)
    known, _said, logged = started(tmp_path)
    assert known == sorted([*BUILT_IN, "cloze", "toy"]) and "cannot be used" not in logged
    with (tmp_path / "toy_instrument" / "priority.py").open("a") as file:
        file.write("\n\n1 / 0\n")
    known, said, logged = started(tmp_path, "toy", "cloze")
    assert known == sorted([*BUILT_IN, "cloze"]) and list(said) == ["toy"]
    assert said["toy"].startswith("the instrument 'toy' cannot be used: ") and "division by zero" in said["toy"]
    (line,) = [line for line in logged.splitlines() if "cannot be used" in line]
    assert "WARNING" in line and "the instrument toy cannot be used: ZeroDivisionError" in line


def test_the_files_that_name_the_toy_instrument_are_its_own_and_those_of_tests() -> None:
    """It learns, has a ratio, replicates, priorities and a report, and no file but its own and tests knows of it."""
    pattern = re.compile(r"toy[_-]instrument|[\"']?kind[\"']?(: | = )[\"']toy[\"']")
    own = "tests/packages/toy_instrument/"
    naming = [
        name
        for folder in (*CORE, "tests")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".html", ".js", ".css", ".po", ".toml", ".md")
        and not (name := path.relative_to(ROOT).as_posix()).startswith(own)
        and pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert naming == [
        "tests/architecture/test_packages.py",
        "tests/packages/README.md",
        "tests/survey/instruments/test_toy_instrument.py",
        "tests/survey/instruments/test_toy_learning.py",
        "tests/survey/instruments/test_toy_study.py",
        "tests/survey/plans/test_designs.py",
        "tests/survey/plans/test_roles.py",
        "tests/survey/results/test_estimating.py",
        "tests/survey/sittings/test_unfinished.py",
        "tests/survey/stages/test_leaderboard.py",
        "tests/survey/toy.py",
    ]
