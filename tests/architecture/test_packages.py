"""What other people's packages bring is found by entry point, stays out of the core, and cannot bring it down."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from survey.contracts import panels
from survey.contracts.instruments import CONTRACT
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
from django.contrib import admin
from django.db.migrations.loader import MigrationLoader
pages = [f"{model._meta.app_label}.{model.__name__}" for model in admin.site._registry]
migrated = [app for app, _name in MigrationLoader(None).graph.leaf_nodes()]
print(json.dumps([instruments.names(), said, pages, migrated]))
"""
BUILT_IN = [
    "belief_update",
    "cloze",
    "next_token",
    "own_answers",
    "preference",
    "self_paced_reading",
    "token_comparison",
]
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
FIRST = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("survey", "0001_initial")]
    operations = [migrations.CreateModel("Row", [("id", models.BigAutoField(primary_key=True))])]
"""
SECOND = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("NAME", "0001_initial")]
    operations = []
"""


def names_of_packages() -> Iterator[str]:
    """Modules and plug-ins of the packages in tests/packages."""
    for file in sorted(packages.HERE.glob("*/pyproject.toml")):
        yield from (path.name for path in (file.parent / "src").iterdir() if path.name != "__pycache__")
        for of_group in tomllib.loads(file.read_text(encoding="utf-8"))["project"]["entry-points"].values():
            yield from of_group


@pytest.mark.slow
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
    for module, source in {"__init__": "", "apps": APPS, **modules}.items():
        (package / module).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{module}.py").write_text(source.replace("NAME", name).replace("CONTRACT", str(CONTRACT)))
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[hunch.instruments]\n{name} = {name}.apps:Config\n")


@dataclass(frozen=True)
class Started:
    """A fresh process: the instruments that it knows, why the named ones cannot be used, the rows that the admin has
    pages of, the apps whose migrations can be run, and what it logged."""

    known: list[str]
    said: dict[str, str]
    pages: list[str]
    migrated: list[str]
    logged: str


def started(tmp_path: Path, *names: str) -> Started:
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
    return Started(*json.loads(last), logged="\n".join(logged))


BROKEN: dict[str, tuple[dict[str, str], str]] = {
    "no_module": ({"apps": "import nowhere_to_be_found"}, "No module named 'nowhere_to_be_found'"),
    "no_app": ({"apps": "class Config: pass"}, "is no InstrumentApp"),
    "other_label": ({"apps": APPS.replace('label = "NAME"', 'label = "survey"')}, "labelled 'survey'"),
    "bad_models": ({"models": "raise ValueError('no table')", "admin": ADMIN, "instrument": WORKING}, "no table"),
    "no_instrument": ({}, "No module named 'no_instrument.instrument'"),
    "fails": ({"instrument": "1 / 0"}, "division by zero"),
    "no_class": ({"instrument": "Kind = 3"}, "'int' object has no attribute 'name'"),
    "other_name": ({"instrument": WORKING.replace("NAME", "another")}, "it is called 'another'"),
    "old": (
        {"instrument": WORKING.replace("CONTRACT", "1")},
        f"written for contract 1, and this is contract {CONTRACT}",
    ),
    "bad_migration": (
        {"instrument": WORKING, "migrations/__init__": "", "migrations/0001_initial": "raise OSError('no disk')"},
        "bad_migration.migrations.0001_initial cannot be loaded (OSError: no disk); repair the package",
    ),
    "no_migration": (
        {"instrument": WORKING, "migrations/__init__": "", "migrations/0001_initial": "x = 1"},
        "has no attribute 'Migration'); repair the package",
    ),
    "lost_migration": (
        {"instrument": WORKING, "models": MODELS, "migrations/__init__": "", "migrations/0002_word": SECOND},
        "0002_word follows lost_migration.0001_initial, which is not installed; repair the package",
    ),
    "two_ends": (
        {
            "instrument": WORKING,
            "models": MODELS,
            "migrations/__init__": "",
            "migrations/0001_initial": FIRST,
            "migrations/0002_word": SECOND,
            "migrations/0002_line": SECOND,
        },
        "two_ends.migrations ends in 0002_line and in 0002_word; repair the package",
    ),
    "half": (
        {
            "instrument": "from survey.contracts.instruments import Instrument\n"
            "class Kind(Instrument):\n    name = 'NAME'\n    contract = CONTRACT\n"
        },
        "it lacks answer_values, ",
    ),
}


@pytest.fixture(scope="module")
def with_broken_ones(tmp_path_factory: pytest.TempPathFactory) -> Started:
    folder = tmp_path_factory.mktemp("site")
    for name, (modules, _reason) in BROKEN.items():
        brought(folder, name, **modules)
    brought(folder, "own_answers", instrument=WORKING)  # a name that is taken
    other = {"migrations/__init__": "", "migrations/0001_initial": FIRST, "migrations/0002_word": SECOND}
    brought(folder, "other", instrument=WORKING, models=MODELS, admin=ADMIN, **other)
    brought(folder, "no_pages", instrument=WORKING, models=MODELS, admin=ADMIN + "\n1 / 0\n")
    return started(folder, "other", "no_pages", "own_answers", *BROKEN)


def test_an_installed_package_brings_an_instrument_whatever_the_others_do(with_broken_ones: Any) -> None:
    assert with_broken_ones.known == sorted([*BUILT_IN, "no_pages", "other"])
    assert set(with_broken_ones.said) == set(BROKEN)
    assert {"other.Row", "belief_update.Pair"} <= set(with_broken_ones.pages)
    assert {"other", "survey", "belief_update", "own_answers"} <= set(with_broken_ones.migrated)


def test_an_instrument_whose_admin_fails_runs_without_pages_and_is_named_in_a_warning(with_broken_ones: Any) -> None:
    assert "no_pages.Row" not in with_broken_ones.pages
    (line,) = [line for line in with_broken_ones.logged.splitlines() if "no_pages" in line]
    assert "WARNING" in line and "the instrument no_pages has no admin pages: no_pages.admin cannot be loaded" in line
    assert "ZeroDivisionError: division by zero); repair the package or install another version" in line


def test_broken_migrations_keep_no_other_app_from_migrating(with_broken_ones: Any) -> None:
    named = {name for name, (modules, _reason) in BROKEN.items() if "migrations/__init__" in modules}
    assert len(named) == 4 and not named & set(with_broken_ones.migrated)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_one_is_named_in_a_warning_with_the_reason(name: str, with_broken_ones: Any) -> None:
    said, logged = with_broken_ones.said, with_broken_ones.logged
    reason = BROKEN[name][1]
    assert said[name].startswith(f"the instrument '{name}' cannot be used: ") and reason in said[name]
    (line,) = [line for line in logged.splitlines() if f"the instrument {name} cannot be used: " in line]
    assert "WARNING" in line and reason in line


def test_a_name_that_is_taken_stays_with_who_has_it(with_broken_ones: Any) -> None:
    said, logged = with_broken_ones.said, with_broken_ones.logged
    assert "the instrument own_answers cannot be used: TypeError: another installed app has this name" in logged
    assert "own_answers" not in said


@pytest.mark.thorough
def test_a_broken_copy_of_a_working_package_leaves_its_neighbours_running(tmp_path: Path) -> None:
    """As after an update that went wrong: the toy cannot be imported any more, and its neighbour goes on."""
    name = "toy_instrument"
    (source,) = (path for path in (packages.HERE / name / "src").iterdir() if path.name != "__pycache__")
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    packages.write_metadata(packages.HERE / name, tmp_path)
    brought(tmp_path, "neighbour", instrument=WORKING)
    whole = started(tmp_path)
    assert whole.known == sorted([*BUILT_IN, "neighbour", "toy"]) and "cannot be used" not in whole.logged
    with (tmp_path / "toy_instrument" / "priority.py").open("a") as file:
        file.write("\n\n1 / 0\n")
    broken = started(tmp_path, "toy", "neighbour")
    said = broken.said
    assert broken.known == sorted([*BUILT_IN, "neighbour"]) and list(said) == ["toy"]
    assert said["toy"].startswith("the instrument 'toy' cannot be used: ") and "division by zero" in said["toy"]
    (line,) = [line for line in broken.logged.splitlines() if "cannot be used" in line]
    assert "WARNING" in line and "the instrument toy cannot be used: ZeroDivisionError" in line


@pytest.mark.slow
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
        "tests/survey/results/test_study_estimates.py",
        "tests/survey/sittings/test_unfinished.py",
        "tests/survey/stages/test_leaderboard.py",
        "tests/survey/toy.py",
    ]


def test_every_panel_of_hunch_is_named_in_the_rule_about_single_panels() -> None:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (rule,) = [rule for rule in rules if rule["name"] == "What every panel shares knows no single one"]
    assert set(rule["forbidden_modules"]) == {".".join(path.split(".")[:3]) for path in panels.BUILT_IN.values()}
