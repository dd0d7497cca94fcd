"""The wheel: it holds every file of the packages, and an installation from it runs in an empty folder."""

import fcntl
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands

from survey import cli
from survey.documents import pages, reference

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PACKAGES = ("bandit", "frontend", "predictors", "survey")
# Runs a script as Python does, and prints every file of the checkout that it opened or listed. The folder of the
# libraries may be inside the checkout and is ignored.
WITNESS = """
import os, runpy, sys
root, libraries, *sys.argv = sys.argv[1:]
used = set()
def note(event, details):
    if event in ("open", "os.listdir", "os.scandir", "exec", "import") and details:
        name = getattr(details[0], "co_filename", details[0])
        if event == "import":
            name = details[1]
        if isinstance(name, (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(name))
            if path.startswith(root + os.sep) and not (path + os.sep).startswith(libraries + os.sep):
                used.add(path)
sys.addaudithook(note)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    sys.stderr.writelines(f"USED {path}\\n" for path in sorted(used))
"""


def files_of_the_packages() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()
    for path in (ROOT / "studies").rglob("*.toml"):
        yield f"survey/studies/{path.relative_to(ROOT / 'studies').as_posix()}"
    for path in (ROOT / "docs").rglob("*"):
        if path.is_file():
            yield f"survey/docs/{path.relative_to(ROOT / 'docs').as_posix()}"
    yield from ("survey/docs/mkdocs.yml", *(f"survey/docs/{path}" for path in pages.OUTSIDE.values()))


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of all processes that run these tests. The first one that asks makes it; the others wait for it."""
    shared = Path(os.environ["HUNCH_TEST_FOLDER"], "wheel")
    shared.mkdir(parents=True, exist_ok=True)
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            make(shared / f"{name}.part")
            (shared / f"{name}.part").rename(shared / name)
    return shared / name


def pip(*arguments: str) -> None:
    run = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def wheel() -> Path:
    offline = ("wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps")
    folder = made_once("built", lambda folder: pip(*offline, "--wheel-dir", str(folder), str(ROOT)))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The folder into which the wheel was installed."""
    offline = ("install", "--quiet", "--no-index", "--no-deps", "--no-compile")
    return made_once("installed", lambda folder: pip(*offline, "--target", str(folder), str(wheel)))


def hunch(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the installed command in this folder. Without -S an editable install would put the checkout on the path."""
    libraries = sysconfig.get_path("purelib")
    run = subprocess.run(
        [sys.executable, "-S", "-c", WITNESS, str(ROOT), libraries, str(installed / "bin" / "hunch"), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(installed), libraries])},
        capture_output=True,
        text=True,
    )
    assert [line for line in run.stderr.splitlines() if line.startswith("USED ")] == []
    return run


def test_it_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == set(files_of_the_packages())
    assert {Path(name).suffix for name in held} >= {".py", ".html", ".css", ".js", ".mo", ".csv", ".toml", ".typed"}


def test_it_carries_the_licences(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        carried = {name.partition("/licenses/")[2] for name in archive.namelist() if "/licenses/" in name}
    assert carried == set(project["license-files"])


def test_help_lists_our_commands_first_and_makes_nothing(installed: Path, tmp_path: Path) -> None:
    run = hunch(installed, "--help", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    listed = [line.split()[0] for line in run.stdout.splitlines() if re.match("  [a-z]", line)]
    assert listed[:2] == ["demo", "up"]
    assert set(listed) == {name for name, app in get_commands().items() if app.partition(".")[0] == "survey"}
    assert run.stdout.index("fake_prolific") < run.stdout.index("createsuperuser")
    assert f"Study files to start from: {installed}/survey/studies" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_it_knows_its_version(installed: Path, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert hunch(installed, "--version", cwd=tmp_path).stdout == f"Hunch {project['version']}\n"


@pytest.mark.slow
def test_study_files_are_checked_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    shipped = installed / "survey/studies/demo.toml"
    run = hunch(installed, "check_study", str(shipped), cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 problems" in run.stdout
    assert f"made the database {tmp_path}/var/hunch.sqlite3" in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["var"]
    (tmp_path / "mine.toml").write_text(shipped.read_text(encoding="utf-8").replace("slug = ", "slugg = "))
    run = hunch(installed, "check_study", "mine.toml", cwd=tmp_path)
    assert run.returncode == 1
    assert "slugg" in run.stdout
    assert "made the database" not in run.stderr


@pytest.mark.slow
def test_plans_from_the_wheel_have_the_code_digest_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    """A plan drawn by a checkout can be verified by an installation, and the other way round."""
    program = "from survey.services.base.hashing import code_digest; print(code_digest())"
    here = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, env=os.environ)
    (tmp_path / "digest.py").write_text(f"import django; django.setup(); {program}", encoding="utf-8")
    there = subprocess.run(
        [sys.executable, "-S", "digest.py"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_path("purelib")]),
            "DJANGO_SETTINGS_MODULE": "survey.settings",
        },
        capture_output=True,
        text=True,
    )
    assert there.stdout.strip(), there.stderr
    assert there.stdout == here.stdout


@pytest.mark.slow
def test_the_documents_are_shown_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    program = """
import django; django.setup()
from survey.documents import pages, reference
shown = [pages.document(name) for name in pages.names() if name not in reference.TITLES]
assert pages.picture("idea.svg")
print(len(shown), all(shown))
"""
    (tmp_path / "show.py").write_text(program, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-S", "show.py"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_path("purelib")]),
            "DJANGO_SETTINGS_MODULE": "survey.settings",
        },
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == [str(len(pages.names()) - len(reference.TITLES)), "True"], run.stderr


def test_every_sentence_of_the_help_is_of_a_command_that_there_is() -> None:
    named = [name for commands in cli.GROUPS.values() for name in commands]
    ours = {name for name, app in get_commands().items() if app.partition(".")[0] == "survey"}
    assert len(named) == len(set(named))
    assert set(named) == ours


def test_a_command_without_a_sentence_of_its_own_is_listed_with_that_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = {
        heading: {name: entry for name, entry in commands.items() if name != "up"}
        for heading, commands in cli.GROUPS.items()
    }
    monkeypatch.setattr(cli, "GROUPS", groups)
    others = cli.help_text("hunch").split("\nOthers\n")[1]
    assert others.startswith("  up ")
    assert "all services under one process manager" in others
